import { afterAll, beforeAll, expect, test } from 'vitest'
import { dealModel, newModelBuilder } from '../../../../test/support/model-builder.ts'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform?.stop())

const base = '/v1/platform/applications'
interface Application {
  readonly saasAppId: string
  readonly appKey: string
  readonly revision: number
  readonly archivedAt: string | null
}

test('keys are unique within an account, and tell nothing of another one', async () => {
  const [{ token }, { token: other }] = [await platform.newAccount(), await platform.newAccount()]
  const body = { appKey: 'crm', name: 'CRM' }
  const first = await platform.call<Application>('POST', base, { token, body })
  expect([first.status, first.headers['location']]).toEqual([201, `${base}/${first.json.saasAppId}`])
  const again = await platform.call('POST', base, { token, body })
  expect([again.json.code, again.json.details![0]!.field]).toEqual(['application_key_taken', 'appKey'])
  expect((await platform.call('POST', base, { token: other, body })).status).toBe(201)
  const foreign = await platform.call('GET', `${base}/${first.json.saasAppId}`, { token: other })
  expect(foreign.json.code).toBe('application_not_found')
})

test('lists go by key, page by page', async () => {
  const { token } = await platform.newAccount()
  for (const appKey of ['c', 'a', 'b-2', 'b']) {
    await platform.call('POST', base, { token, body: { appKey, name: appKey } })
  }
  const keys: string[] = []
  for (let query = '?pageSize=3'; query !== ''; ) {
    const { json } = await platform.call<{ items: Application[]; nextCursor: string | null }>('GET', base + query, {
      token,
    })
    keys.push(...json.items.map(({ appKey }) => appKey))
    query = json.nextCursor === null ? '' : `?pageSize=3&cursor=${json.nextCursor}`
  }
  expect(keys).toEqual(['a', 'b', 'b-2', 'c'])
})

test('an archived application refuses the next request of every process, and takes it again when it is restored', async () => {
  const other = await platform.startAnother()
  const model = await newModelBuilder(platform)
  await model.released(dealModel())
  const customer = await model.customer()
  const asked = async () => {
    const answers = [platform, other].map((client) => customer.records('GET', '/deal/schema', undefined, client))
    return (await Promise.all(answers)).map(({ status, json }) => json.code ?? status)
  }
  expect(await asked()).toEqual([200, 200])
  const archived = await model.ask<Application>('DELETE', '?expectedRevision=1')
  expect([archived.status, archived.json.revision, archived.json.archivedAt !== null]).toEqual([200, 2, true])
  expect(await asked()).toEqual(['application_archived', 'application_archived'])
  expect((await model.ask<Application>('DELETE', '')).json.revision).toBe(2)
  const { token } = model.builder
  const listed = async (query: string) =>
    (await platform.call<{ items: object[] }>('GET', `${base}${query}`, { token })).json.items.length
  expect([await listed(''), await listed('?archived=false'), await listed('?archived=true')]).toEqual([0, 0, 1])
  expect((await model.ask('PATCH', '', { archived: false, expectedRevision: 1 })).json.code).toBe('revision_conflict')
  const restored = await model.ask<Application>('PATCH', '', { archived: false, name: 'Back', expectedRevision: 2 })
  expect([restored.json.archivedAt, restored.json.revision]).toEqual([null, 3])
  expect(await asked()).toEqual([200, 200])
})
