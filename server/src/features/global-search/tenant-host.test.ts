import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { hostOf, onHost, openSession } from '../../../test/support/tenant-host.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ modules: true })
})
afterAll(() => service?.stop())

test('a user counts the same on the host of the organization as through the API', async () => {
  const { app } = service
  const { a, b } = app.organizations
  const base = `/v1/apps/${app.appId}`
  const create = (token: string, body: object) =>
    service.call('POST', `${base}/objects/company/records`, {
      token,
      body: { fields: { name: 'Twinflower' }, ...body },
    })
  const { owner, sales } = a.users
  for (const body of [{}, { ownerUserId: owner.userId }, { ownerUserId: sales.userId }]) {
    expect((await create(owner.token, body)).status).toBe(201)
  }
  await create(b.credentials.live.token, {})
  for (const [user, wanted] of [
    [owner, 3],
    [sales, 2],
  ] as const) {
    const path = '/modules/global-search/count?query=twinflower'
    const api = await service.call<{ totalRecords: number }>('GET', `${base}${path}`, { token: user.token })
    const session = await openSession(service.db, app, a, user)
    const host = await onHost(service, hostOf(a))('GET', `/api${path}`, { session })
    expect([api.json.totalRecords, host.json]).toEqual([wanted, api.json])
  }
})
