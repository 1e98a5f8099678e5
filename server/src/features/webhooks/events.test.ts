import sql from 'sql-template-tag'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { issueCredential } from '../../../test/support/tenants.ts'
import type { RecordView } from '../../shared/records/record.ts'
import { lookedAtMax } from './event-store.ts'
import { type FeedItem, refusal, type WebhookClient, webhookClient } from './testing.ts'

let service: TestService
let live: WebhookClient
let foreign: WebhookClient
let now = Date.now()
beforeAll(async () => {
  service = await startTestService({ clock: { now: () => now } })
  const { a, b } = service.app.organizations
  live = webhookClient(service, a.credentials.live.token)
  foreign = webhookClient(service, b.credentials.live.token)
})
afterAll(() => service.stop())

type Organization = TestService['app']['organizations']['a']

async function clientOf(plan: Partial<Parameters<typeof issueCredential>[2]>): Promise<WebhookClient> {
  const { a } = service.app.organizations
  const { token } = await service.db.database.as('portico_owner', (tx) =>
    issueCredential(tx, { ...a, appId: service.app.appId }, { displayName: 'reader', ...plan }),
  )
  return webhookClient(service, token)
}

async function createDeal(name: string, body: object = {}, client = live): Promise<string> {
  const sent = { body: { fields: { name, amount: '12.50' }, ...body } }
  const answer = await client.ask<RecordView>('POST', '/objects/deal/records', sent)
  expect(answer.status, answer.text).toBe(201)
  return answer.json.recordId
}

const dispatch = () => service.service.dispatcher.dispatchAll()

/** Where the feed ends. */
async function latest(client = live): Promise<string> {
  await dispatch()
  return (await client.events({ start: 'latest' })).json.nextCursor
}

/** Everything after the cursor, in pages of the given size. */
async function follow(client: WebhookClient, cursor: string, query: object = {}, pageSize = 50): Promise<FeedItem[]> {
  await dispatch()
  const items: FeedItem[] = []
  for (let at = cursor, hasMore = true; hasMore; ) {
    const { status, json, text } = await client.events({ ...query, pageSize, cursor: at })
    expect(status, text).toBe(200)
    expect(json.items.length).toBeLessThanOrEqual(pageSize)
    items.push(...json.items)
    at = json.nextCursor
    hasMore = json.hasMore
  }
  return items
}

test('the feed tells what happened in its order, and goes on from its cursor', async () => {
  const start = await latest()
  const ids = []
  for (let n = 0; n < 5; n++) ids.push(await createDeal(`Deal ${n}`))
  await live.ask('PATCH', `/objects/deal/records/${ids[0]}`, { body: { fields: { stage: 'won' } } })
  const items = await follow(live, start, {}, 2)
  expect(items.map(({ type, subject }) => [type, subject.id])).toEqual([
    ...ids.map((id) => ['record.created', id]),
    ['record.updated', ids[0]],
  ])
  expect(items.at(-1)).toMatchObject({
    appId: service.app.appId,
    version: '2026-11-20',
    actor: { kind: 'credential', id: service.app.organizations.a.credentials.live.keyId },
    data: { record: { recordId: ids[0], fields: { stage: 'won', amount: '12.50' } }, changedFields: ['stage'] },
  })
  const whole = (await live.events({ cursor: start })).json
  expect(whole).toMatchObject({ items, hasMore: false })
  const nothing = (await live.events({ cursor: whole.nextCursor })).json
  expect(nothing).toMatchObject({ items: [], hasMore: false })
  const more = await createDeal('One more')
  expect((await follow(live, nothing.nextCursor)).map(({ subject }) => subject.id)).toEqual([more])
})

test('without a cursor it begins with the oldest event that is kept', async () => {
  const id = await createDeal('Oldest or not')
  await dispatch()
  const [first] = (await live.events({ start: 'oldest', pageSize: 1 })).json.items
  expect((await live.events({ pageSize: 1 })).json.items).toEqual([first])
  const { nextCursor } = (await live.events({ pageSize: 1 })).json
  expect((await follow(live, nextCursor)).at(-1)!.subject.id).toBe(id)
  expect(refusal(await live.events({ start: 'latest', cursor: nextCursor }))).toEqual([
    400,
    'validation_failed',
    'start',
  ])
})

test('it narrows to types of events, and a cursor serves whatever is asked for', async () => {
  const start = await latest()
  const id = await createDeal('Narrow')
  await live.ask('PATCH', `/objects/deal/records/${id}`, { body: { fields: { stage: 'won' } } })
  await live.ask('DELETE', `/objects/deal/records/${id}`)
  await dispatch()
  const typesOf = async (query: string) =>
    (await live.events(`${query}&cursor=${start}`)).json.items.map(({ type }) => type)
  expect(await typesOf('eventKey=record.updated')).toEqual(['record.updated'])
  expect(await typesOf('eventKey=record.updated&eventKey=record.archived')).toEqual([
    'record.updated',
    'record.archived',
  ])
  expect(refusal(await live.events('eventKey=record.updated&eventKey=record.sung'))).toEqual([
    422,
    'webhook_event_unknown',
    'eventKey[1]',
  ])
  // What it is not for is behind it as well: the next question does not look at it again.
  const none = (await live.events({ cursor: start, eventKey: 'invitation.accepted' })).json
  expect(none).toMatchObject({ items: [], hasMore: false })
  expect((await live.events({ cursor: none.nextCursor })).json.items).toEqual([])
})

test('it narrows to objects: their records, and relationships that have one at an end', async () => {
  const start = await latest()
  const deal = await createDeal('By object')
  const company = await live.ask<RecordView>('POST', '/objects/company/records', { body: { fields: { name: 'N' } } })
  const ends = { fromRecordId: deal, toRecordId: company.json.recordId }
  await live.ask('POST', '/relationships', { body: { relationshipKey: 'partners', ...ends } })
  const typesOf = async (query: object) =>
    (await follow(live, start, query)).map(({ type, data }) => `${type} ${(data['record'] as RecordView)?.objectKey}`)
  const link = 'relationship.created undefined'
  expect(await typesOf({ objectKey: 'deal' })).toEqual(['record.created deal', link])
  expect(await typesOf({ objectKey: 'company' })).toEqual(['record.created company', link])
  expect(await typesOf({ objectKey: 'specimen' })).toEqual([])
  expect(await typesOf({ objectKey: 'deal', eventKey: 'record.created' })).toEqual(['record.created deal'])
  expect(refusal(await live.events('objectKey=deal&objectKey=deel'))).toEqual([
    400,
    'validation_failed',
    'objectKey[1]',
  ])
})

test('tests of subscriptions are not in it', async () => {
  const { subscriptionId } = (await live.create()).json
  const start = await latest()
  expect((await live.test(subscriptionId)).status).toBe(202)
  expect(await follow(live, start)).toEqual([])
  expect((await live.deliveries({ subscriptionId })).json.items).toHaveLength(1)
})

describe('what the credential may not read is not in it', () => {
  test('by scope', async () => {
    const bare = await clientOf({ scopes: ['webhooks.read'] })
    const start = await latest()
    const [deal, company] = [
      await createDeal('Scoped'),
      await live.ask<RecordView>('POST', '/objects/company/records', {
        body: { fields: { name: 'Northwind' } },
      }),
    ]
    await live.ask('POST', '/relationships', {
      body: { relationshipKey: 'partners', fromRecordId: deal, toRecordId: company.json.recordId },
    })
    expect(await follow(bare, start)).toEqual([])
    const records = await clientOf({ scopes: ['webhooks.read', 'records.read'] })
    expect((await follow(records, start)).map(({ type }) => type)).toEqual(['record.created', 'record.created'])
    const links = await clientOf({ scopes: ['webhooks.read', 'relationships.read'] })
    expect((await follow(links, start)).map(({ type }) => type)).toEqual(['relationship.created'])
    const refused = await bare.events({ eventKey: 'record.created' })
    expect(refusal(refused)).toEqual([403, 'scope_missing'])
    expect(refused.headers['www-authenticate']).toContain('scope="records.read"')
  })

  test('by role, location and field', async () => {
    const { dataRoles, locations } = service.app.organizations.a as Organization
    const support = await clientOf({ envelope: { roles: ['support'], locations: ['north'] } })
    const start = await latest()
    const place = (role: string, location: string) => ({
      dataRoleId: dataRoles[role],
      locationId: locations[location],
    })
    const shown = [await createDeal('Everyone'), await createDeal('Mine', place('support', 'north'))]
    await createDeal('Elsewhere', place('support', 'south'))
    await createDeal('Of others', place('sales', 'north'))
    await live.ask('POST', '/objects/vault/records', { body: { fields: { name: 'Hidden object' } } })
    const items = await follow(support, start, {}, 1)
    expect(items.map(({ subject }) => subject.id)).toEqual(shown)
    for (const { data } of items) {
      expect((data['record'] as { fields: object }).fields).not.toHaveProperty('amount')
    }
    expect(await follow(live, start)).toHaveLength(5)
  })

  test('and no page, empty or not, counts what is not shown', async () => {
    const { dataRoles, locations } = service.app.organizations.a as Organization
    const north = await clientOf({ envelope: { roles: ['support'], locations: ['north'] } })
    const start = await latest()
    const elsewhere = { dataRoleId: dataRoles['support'], locationId: locations['south'] }
    for (let n = 0; n < 3; n++) await createDeal(`Hidden ${n}`, elsewhere)
    await dispatch()
    expect((await north.events({ cursor: start, pageSize: 1 })).json).toMatchObject({ items: [], hasMore: false })
    const shown = await createDeal('Shown', { ...elsewhere, locationId: locations['north'] })
    await createDeal('Hidden again', elsewhere)
    await dispatch()
    const { items, hasMore } = (await north.events({ cursor: start, pageSize: 1 })).json
    expect([items.map(({ subject }) => subject.id), hasMore]).toEqual([[shown], false])
  })

  test('by organization', async () => {
    const start = await latest(foreign)
    const word = 'zqxfeedword'
    await createDeal(word)
    expect(await follow(foreign, start)).toEqual([])
    expect((await foreign.events({ pageSize: 200 })).text).not.toContain(word)
    expect(refusal(await foreign.events({ cursor: await latest() }))).toEqual([400, 'cursor_mismatch', 'cursor'])
  })
})

test('what is rare among very many is found in several answers, none of which looks at all of them', async () => {
  const start = await latest()
  const { organizationId } = service.app.organizations.a
  await service.db.database.as('portico_system', (tx) =>
    tx.rows(sql`INSERT INTO portico.event (organization_id, event_id, position, app_id, event_key, event_version, occurred_at,
        subject_type, subject_id, actor_kind, actor_id, data)
      SELECT ${organizationId}, portico.uuid_at(now() - interval '1 hour' + n * interval '1 millisecond'),
        nextval('portico.event_position'), ${service.app.appId}, 'user.created', '2026-09-14', now(), 'user',
        ${organizationId}, 'system', 'test', '{}'
      FROM generate_series(1, ${lookedAtMax + 10}) AS n`),
  )
  const id = await createDeal('Behind very many')
  await dispatch()
  const query = { eventKey: 'record.created' }
  const first = (await live.events({ ...query, cursor: start })).json
  expect(first).toMatchObject({ items: [], hasMore: true })
  const second = (await live.events({ ...query, cursor: first.nextCursor })).json
  expect(second).toMatchObject({ items: [{ subject: { id } }], hasMore: false })
  expect((await live.events({ ...query, cursor: second.nextCursor })).json).toMatchObject({ items: [], hasMore: false })
  await service.db.database.as('portico_system', (tx) =>
    tx.rows(sql`DELETE FROM portico.event WHERE actor_id = 'test'`),
  )
})

test('a reader misses nothing of what commits while it reads, and gets nothing twice', async () => {
  const start = await latest()
  const made: string[] = []
  const writing = Promise.all(
    Array.from({ length: 4 }, async (_, writer) => {
      for (let n = 0; n < 15; n++) made.push(await createDeal(`Writer ${writer} deal ${n}`))
    }),
  )
  const seen: string[] = []
  let cursor = start
  let isWriting = true
  void writing.finally(() => {
    isWriting = false
  })
  for (let last = false; !last; ) {
    last = !isWriting
    await dispatch()
    for (let hasMore = true; hasMore; ) {
      const { json } = await live.events({ cursor, pageSize: 7 })
      seen.push(...json.items.map(({ subject }) => subject.id))
      cursor = json.nextCursor
      hasMore = json.hasMore
    }
  }
  await writing
  expect(seen).toHaveLength(60)
  expect(new Set(seen)).toEqual(new Set(made))
})

test('a cursor of more than 30 days ago says that events may be gone', async () => {
  const start = await latest()
  const day = 24 * 60 * 60 * 1000
  try {
    now += 29 * day
    expect((await live.events({ cursor: start })).status).toBe(200)
    now += 2 * day
    expect(refusal(await live.events({ cursor: start }))).toEqual([400, 'cursor_expired', 'cursor'])
  } finally {
    now -= 31 * day
  }
})
