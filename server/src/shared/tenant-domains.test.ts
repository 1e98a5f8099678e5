import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/support/database.ts'
import { createTenant } from '../../test/support/tenants.ts'
import { openDatabase } from './database/database.ts'
import { createTenantDomains, domainKeptMs } from './tenant-domains.ts'

let db: TestDatabase
let organizationId: string
beforeAll(async () => {
  db = await createTestDatabase()
  const { organizations } = await createTenant(db.database, { organizations: { northwind: {} } })
  organizationId = organizations.northwind.organizationId
})
afterAll(() => db.drop())

function setDomain(domain: string, verifiedAt: string | null = '2026-09-14T09:30:00Z'): Promise<unknown> {
  return db.database.inOrganization(organizationId, (tx) =>
    tx.rows({
      text: `UPDATE portico.organization SET custom_domain = $1, custom_domain_verified_at = $2
        WHERE organization_id = $3`,
      values: [domain, verifiedAt, organizationId],
    }),
  )
}

test('what was looked up, also in vain, is known for ten seconds without asking', async () => {
  let now = 0
  const { isTenantDomain } = createTenantDomains({ database: db.database, clock: { now: () => now } })
  await setDomain('portal.northwind.example')
  expect(await isTenantDomain('portal.northwind.example')).toBe(true)
  expect(await isTenantDomain('portal.other.example')).toBe(false)
  await setDomain('portal.other.example')
  now = domainKeptMs - 1
  expect(isTenantDomain('portal.northwind.example')).toBe(true)
  expect(isTenantDomain('portal.other.example')).toBe(false)
  now = domainKeptMs
  expect(await isTenantDomain('portal.northwind.example')).toBe(false)
  expect(await isTenantDomain('portal.other.example')).toBe(true)
})

test('a domain that is not verified is none', async () => {
  const { isTenantDomain } = createTenantDomains({ database: db.database, clock: { now: () => 0 } })
  await setDomain('pending.example', null)
  expect(await isTenantDomain('pending.example')).toBe(false)
})

test('a name is looked up once, however many ask for it', async () => {
  const { isTenantDomain } = createTenantDomains({ database: db.database, clock: { now: () => 0 } })
  const asked = isTenantDomain('many.example')
  expect(asked).toBeInstanceOf(Promise)
  expect(isTenantDomain('many.example')).toBe(asked)
  expect(await asked).toBe(false)
})

test('a database that is away is no answer, and is asked again', async () => {
  const away = openDatabase({ connection: { ...db.login, host: '127.0.0.1', port: 1 }, poolSize: 1 })
  const { isTenantDomain } = createTenantDomains({ database: away, clock: { now: () => 0 } })
  for (let count = 0; count < 2; count++) {
    await expect(isTenantDomain('portal.example')).rejects.toMatchObject({ code: 'database_unavailable' })
  }
  await away.close()
})
