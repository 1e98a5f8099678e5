import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { callerOf, createTenant } from './tenants.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())

test('a tenant has what its plan says', async () => {
  const tenant = await createTenant(db.database, {
    dataRoles: ['sales', 'support'],
    organizations: {
      northwind: {
        locations: ['north', 'south'],
        users: {
          owner: { owner: true, locations: 'all' },
          sales: { roles: ['sales'], locations: ['north'] },
          outsider: {},
        },
        credentials: {
          live: {},
          enveloped: { scopes: ['records.read'], envelope: { roles: ['support'], locations: 'all' } },
          revoked: { revoked: true },
          expired: { expiresAt: new Date(0) },
        },
      },
      globex: { status: 'inactive', credentials: { live: {} } },
    },
  })
  const { northwind, globex } = tenant.organizations
  const sales = await callerOf(db.database, northwind.users.sales)
  expect(sales).toMatchObject({
    credentialKind: 'dat',
    appId: tenant.appId,
    organizationId: northwind.organizationId,
    user: { userId: northwind.users.sales.userId, isOwner: false },
    dataRoleIds: [northwind.dataRoles['sales']],
    locationIds: [northwind.locations['north']],
    unrestricted: false,
    epochs: { organization: expect.stringMatching(/^\d+$/), application: expect.stringMatching(/^\d+$/) },
  })
  expect((await callerOf(db.database, northwind.users.owner)).unrestricted).toBe(true)
  expect((await callerOf(db.database, northwind.credentials.live)).unrestricted).toBe(true)
  const enveloped = await callerOf(db.database, northwind.credentials.enveloped)
  expect(enveloped).toMatchObject({ unrestricted: false, locationIds: 'all' })
  expect([...enveloped.scopes]).toEqual(['records.read'])
  await expect(callerOf(db.database, northwind.credentials.revoked)).rejects.toMatchObject({
    code: 'credential_invalid',
  })
  await expect(callerOf(db.database, northwind.credentials.expired)).rejects.toMatchObject({
    code: 'credential_expired',
  })
  const inactive = await callerOf(db.database, globex.credentials.live)
  const visible = await db.database.transact('read', inactive, (tx) =>
    tx.rows<{ name: string }>(sql`SELECT name FROM portico.organization`),
  )
  expect(visible).toEqual([{ name: 'globex' }])
})
