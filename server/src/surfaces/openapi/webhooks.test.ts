import { afterAll, beforeAll, expect, test } from 'vitest'
import { lintProblems, unexplained, violations } from '../../../test/contract-checks.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { issueCredential } from '../../../test/support/tenants.ts'
import type { Caller } from '../../kernel/caller.ts'
import { allScopes } from '../../kernel/scopes.ts'
import { audibleEvents } from '../../shared/outbox/envelope-schema.ts'
import type { Json } from './json-schema.ts'

/** What the service sends is in the contract too, as far as a subscription of the caller could ask for it. */
let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.stop())

async function documentOf(token: string) {
  const path = `/v1/apps/${service.app.appId}/openapi.json`
  const { json, text } = await service.call<Json>('GET', path, { token })
  return { document: json, text, webhooks: (json['webhooks'] ?? {}) as Record<string, { post: Json }> }
}

async function tokenWith(plan: Partial<Parameters<typeof issueCredential>[2]>): Promise<string> {
  const { a } = service.app.organizations
  const { token } = await service.db.database.as('portico_owner', (tx) =>
    issueCredential(tx, { ...a, appId: service.app.appId }, { displayName: 'reader', ...plan }),
  )
  return token
}

const live = () => service.app.organizations.a.credentials.live.token

test('every event is described with its headers, its data and an example, in a valid document', async () => {
  const { document, text, webhooks } = await documentOf(live())
  const { json } = await service.call<{ items: { eventKey: string; description: string }[] }>(
    'GET',
    `/v1/apps/${service.app.appId}/webhook-event-types`,
    { token: live() },
  )
  expect(Object.keys(webhooks).toSorted()).toEqual(json.items.map(({ eventKey }) => eventKey).toSorted())
  for (const { eventKey, description } of json.items) {
    expect(webhooks[eventKey]!.post['description']).toContain(description)
  }
  const schemas = (document['components'] as Json)['schemas'] as Record<string, { properties: Record<string, Json> }>
  expect(webhooks['record.updated']!.post).toMatchObject({
    operationId: 'onRecordUpdatedEvent',
    requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/RecordUpdatedEvent' } } } },
    'x-required-scope': 'records.read',
  })
  expect(schemas['RecordUpdatedEvent']!.properties).toMatchObject({
    type: { const: 'record.updated' },
    data: { properties: { record: { $ref: '#/components/schemas/RecordOfEvent' }, changedFields: { type: 'array' } } },
  })
  const { anyOf } = schemas['RecordOfEvent']!.properties['fields'] as { anyOf: Json[] }
  expect(anyOf).toContainEqual({ $ref: '#/components/schemas/DealFields' })
  expect(await violations(document)).toEqual([])
  expect(await lintProblems(text)).toEqual([])
  expect(unexplained(document)).toEqual([])
})

test('it shows what the credential could subscribe to, and nothing where it could not', async () => {
  const keysOf = async (plan: Partial<Parameters<typeof issueCredential>[2]>) =>
    Object.keys((await documentOf(await tokenWith(plan))).webhooks)
  expect(await keysOf({ scopes: ['records.read'] })).toEqual([])
  expect(await keysOf({ scopes: ['webhooks.read', 'records.read'] })).not.toContain('relationship.created')
  const whole = await keysOf({ scopes: ['webhooks.read'] })
  expect(whole).toContain('user.created')
  expect(whole).not.toContain('record.created')
  // The same role and scopes, with an envelope: people are not told of.
  const enveloped = await keysOf({ scopes: ['webhooks.read'], envelope: { roles: ['sales'], locations: ['north'] } })
  expect(enveloped).toEqual(['webhook.test'])
})

test('no schema of an event is called as those of an object are: there may be an object `event`', () => {
  const titles = new Set<string>()
  const text = JSON.stringify(audibleEvents({ unrestricted: true, scopes: new Set(allScopes) } as unknown as Caller))
  JSON.parse(text, (key, value) => {
    if (key === 'title' && typeof value === 'string') titles.add(value)
    return value
  })
  expect(titles).toContain('RecordOfEvent')
  expect([...titles].filter((title) => /(Record|Fields|Create|Update)$/.test(title))).toEqual([])
})
