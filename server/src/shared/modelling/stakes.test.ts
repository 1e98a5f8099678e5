import sql from 'sql-template-tag'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { sumOverOrganizations } from './stakes.ts'

/** Counting over organisations goes through the wall around each of them, not around it. */
let testbed: TestDatabase
let ours: Application
let theirs: Application
beforeAll(async () => {
  testbed = await createTestDatabase()
  ours = await newApplication()
  theirs = await newApplication()
})
afterAll(() => testbed.drop())

interface Application {
  readonly appId: string
  readonly accountId: string
}

/** Two organisations, of three users and of one. */
async function newApplication(): Promise<Application> {
  const { appId } = await createTenant(testbed.database, {
    organizations: { large: { users: { a: {}, b: {}, c: {} } }, small: { users: { a: {} } } },
  })
  const [row] = await testbed.database.as('portico_owner', (tx) =>
    tx.rows<{ accountId: string }>(
      sql`SELECT account_id AS "accountId" FROM portico.application WHERE app_id = ${appId}`,
    ),
  )
  return { appId, accountId: row!.accountId }
}

/** Names no organisation: what it counts is what row-level security lets it see. */
const careless = 'SELECT count(*) FROM portico.tenant_user WHERE $1::uuid IS NOT NULL AND $2::jsonb IS NOT NULL'

const boundTo = <T>({ accountId }: Application, work: (tx: Tx) => Promise<T>) =>
  testbed.database.as('portico_app', async (tx) => {
    await tx.rows(sql`SELECT set_config('portico.account_id', ${accountId}, true)`)
    return work(tx)
  })

describe('portico.sum_over_organizations', () => {
  test('sees each organisation of the application once, as if bound to it', async () => {
    expect(await boundTo(ours, (tx) => sumOverOrganizations(tx, ours.appId, careless))).toBe(4)
  })

  test('reaches nothing of an application of another account', async () => {
    expect(await boundTo(ours, (tx) => sumOverOrganizations(tx, theirs.appId, careless))).toBe(0)
  })

  test('leaves the transaction bound to what it was bound to', async () => {
    const seen = await boundTo(ours, async (tx) => {
      await sumOverOrganizations(tx, ours.appId, careless)
      return tx.rows(sql`SELECT FROM portico.tenant_user`)
    })
    expect(seen).toEqual([])
  })

  test('is for nobody who is bound to no account', async () => {
    const nobody = testbed.database.as('portico_app', (tx) => sumOverOrganizations(tx, ours.appId, careless))
    expect(await nobody).toBe(0)
  })
})
