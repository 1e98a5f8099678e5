import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { type Platform, startPlatform } from '../../../test/support/platform.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import type { AnyCaller } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import type { Database } from '../database/database.ts'
import { createLastUse } from './last-use.ts'

let db: TestDatabase
let tenant: Awaited<ReturnType<typeof newTenant>>
const warnings: unknown[] = []
const log = { warn: (...line: unknown[]) => void warnings.push(line) } as Parameters<typeof createLastUse>[0]['log']

const newTenant = (database: Database, accountId?: string) =>
  createTenant(database, {
    ...(accountId !== undefined && { accountId }),
    model: { objects: [], roles: {} },
    organizations: { a: { users: { owner: { owner: true } }, credentials: { live: {}, idle: {} } } },
  })

beforeAll(async () => {
  db = await createTestDatabase()
  tenant = await newTenant(db.database)
})
afterAll(() => db.drop())

const useOf = (keyId: string, credentialKind = 'live', status = 200) => ({
  caller: { keyId, credentialKind } as AnyCaller,
  status,
})

async function lastUseOf({ keyId }: { readonly keyId: string }): Promise<string | null> {
  const [row] = await db.database.as('portico_owner', (tx) =>
    tx.rows<{ at: string | null }>(sql`SELECT last_used_at AS at FROM portico.credential WHERE key_id = ${keyId}`),
  )
  return row!.at
}

test('the last use of each credential is written, of others none', async () => {
  let now = Date.parse('2026-09-14T09:30:00.000Z')
  const lastUse = createLastUse({ database: db.database, clock: { now: () => now }, log })
  const { live, idle } = tenant.organizations.a.credentials
  const { owner } = tenant.organizations.a.users
  lastUse.note(useOf(live.keyId))
  lastUse.note(useOf(owner.keyId, 'dat'))
  lastUse.note(useOf('192.0.2.1', 'none'))
  lastUse.note({ caller: undefined, status: 401 })
  lastUse.note(useOf(idle.keyId, 'live', 401))
  now += 1500
  lastUse.note(useOf(live.keyId))
  await lastUse.close()
  expect(await lastUseOf(live)).toBe('2026-09-14T09:30:01.500Z')
  expect(await lastUseOf(owner)).toBe('2026-09-14T09:30:00.000Z')
  expect(await lastUseOf(idle)).toBe(null)
})

test('a process whose clock is behind does not set it back', async () => {
  const { live } = tenant.organizations.a.credentials
  const before = await lastUseOf(live)
  const late = createLastUse({ database: db.database, clock: { now: () => 0 }, log })
  late.note(useOf(live.keyId))
  await late.close()
  expect(await lastUseOf(live)).toBe(before)
})

test('what the database did not take is written when it is back, and said once', async () => {
  let away = true
  const now = Date.parse('2026-09-15T00:00:00.000Z')
  const flaky: Database = {
    ...db.database,
    as: (role, work) => (away ? Promise.reject(fail('database_unavailable')) : db.database.as(role, work)),
  }
  const lastUse = createLastUse({ database: flaky, clock: { now: () => now }, log })
  const { idle } = tenant.organizations.a.credentials
  lastUse.note(useOf(idle.keyId))
  await lastUse.flush()
  await lastUse.flush()
  expect(warnings).toHaveLength(1)
  away = false
  await lastUse.flush()
  expect(await lastUseOf(idle)).toBe(new Date(now).toISOString())
  await lastUse.close()
})

test('requests to the service leave it, refused ones too, and a credential that is not proven does not', async () => {
  const platform: Platform = await startPlatform()
  try {
    const builder = await platform.newAccount()
    const { organizations } = await newTenant(platform.db.database, builder.accountId)
    const { organizationId, credentials } = organizations.a
    const forged = `${credentials.idle.token.slice(0, -1)}x`
    await platform.call('GET', `/v1/apps/${organizationId}/auth/context`, { token: credentials.live.token })
    await platform.call('GET', `/v1/apps/${organizationId}/auth/context`, { token: forged })
    const listed = async () => {
      const answer = await platform.call<{ items: { keyId: string; lastUsedAt: string | null }[] }>(
        'GET',
        `/v1/platform/organizations/${organizationId}/credentials`,
        { token: builder.token },
      )
      return new Map(answer.json.items.map((one) => [one.keyId, one.lastUsedAt]))
    }
    await vi.waitFor(async () => expect((await listed()).get(credentials.live.keyId)).not.toBe(null), {
      timeout: 15_000,
      interval: 200,
    })
    expect((await listed()).get(credentials.idle.keyId)).toBe(null)
    const sessionUsedAt = async () => {
      const text = sql`SELECT last_used_at AS at FROM portico.builder_session WHERE account_id = ${builder.accountId}`
      const [session] = await platform.db.database.as('portico_owner', (tx) => tx.rows<{ at: string | null }>(text))
      return session!.at
    }
    // Written with a batch of its own, where its use came in between.
    await vi.waitFor(async () => expect(await sessionUsedAt()).not.toBe(null), { timeout: 15_000, interval: 200 })
  } finally {
    await platform.stop()
  }
})
