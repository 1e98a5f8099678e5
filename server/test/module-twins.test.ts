import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from './support/service.ts'
import { hostOf, onHost, openSession } from './support/tenant-host.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ modules: true })
})
afterAll(() => service.stop())

test('a user counts as many contacts on the host of the organization as in the API', async () => {
  const { a, b } = service.app.organizations
  const base = `/v1/apps/${service.app.appId}/modules/contacts`
  const { north, south } = a.locations
  const places = [{}, { dataRoleId: a.dataRoles['sales'] }, { ownerUserId: a.users.owner.userId }]
  const items = places.flatMap((place) =>
    [undefined, north, south].map((locationId) => ({
      operation: 'create',
      lastName: 'Counted',
      ...place,
      ...(locationId && { locationId }),
    })),
  )
  for (const [token, body] of [
    [a.users.owner.token, { items }],
    [b.users.owner.token, { items: items.slice(0, 1) }],
  ] as const) {
    expect((await service.call('POST', `${base}:batch`, { token, body })).status).toBe(200)
  }
  const ask = onHost(service, hostOf(a))
  for (const [user, most] of [
    [a.users.owner, 9],
    [a.users.sales, 5],
    [a.users.salesSouth, 5],
  ] as const) {
    const session = await openSession(service.db, service.app, a, user)
    for (const [query, expected] of [
      ['', most],
      ['?search=counted', most],
      ['?search=uncounted', 0],
      [`?locationId=${north}`, undefined],
    ] as const) {
      const inApi = await service.call('GET', `${base}/count${query}`, { token: user.token })
      const onTenantHost = await ask('GET', `/api/modules/contacts/count${query}`, { session })
      expect(onTenantHost.json, query).toEqual(inApi.json)
      if (expected !== undefined) expect(inApi.json).toMatchObject({ totalRecords: expected, totalIsExact: true })
    }
  }
})
