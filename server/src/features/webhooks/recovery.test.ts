import sql, { raw, type Sql } from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { seedDelivery } from '../../../test/support/deliveries.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { recordCreated, refusal, type WebhookClient, webhookClient } from './testing.ts'

let service: TestService
let live: WebhookClient
let enveloped: WebhookClient
beforeAll(async () => {
  service = await startTestService()
  live = webhookClient(service, service.app.organizations.a.credentials.live.token)
  enveloped = webhookClient(service, service.app.organizations.a.credentials.enveloped.token)
})
afterAll(() => service?.stop())
beforeEach(async () => {
  await service.service.dispatcher.dispatchAll()
  for (const table of ['event', 'webhook_queue', 'webhook_delivery']) {
    await asSystem(sql`DELETE FROM ${raw(`portico.${table}`)}`)
  }
  await inA((tx) => tx.rows(sql`DELETE FROM portico.webhook_subscription`))
})

const asSystem = <Row>(statement: Sql) => service.db.database.as('portico_system', (tx) => tx.rows<Row>(statement))
const inA = <T>(work: (tx: Tx) => Promise<T>) =>
  service.db.database.inOrganization(service.app.organizations.a.organizationId, work)
const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString()
const queue = () =>
  asSystem<{ deliveryId: string; eventId: string; subscriptionId: string; trigger: string; left: number }>(
    sql`SELECT delivery_id AS "deliveryId", event_id AS "eventId", subscription_id AS "subscriptionId", trigger,
      max_attempts - attempt_count AS "left" FROM portico.webhook_queue ORDER BY delivery_id`,
  )

async function newDeal(name: string, more: object = {}): Promise<string> {
  const { appId, organizations } = service.app
  const answer = await service.call<{ recordId: string }>('POST', `/v1/apps/${appId}/objects/deal/records`, {
    token: organizations.a.credentials.live.token,
    body: { fields: { name }, ...more },
  })
  expect(answer.status, answer.text).toBe(201)
  await service.service.dispatcher.dispatchAll()
  return answer.json.recordId
}

async function subscribed(client: WebhookClient = live): Promise<string> {
  const { status, json, text } = await client.create({ events: [recordCreated] })
  expect(status, text).toBe(201)
  return json.subscriptionId
}

async function recovered(subscriptionId: string, body: object = { since: ago(5) }, client: WebhookClient = live) {
  const begun = await client.ask<{ statusUrl: string }>('POST', `/webhooks/${subscriptionId}/recover`, { body })
  expect(begun.status, begun.text).toBe(202)
  await service.service.operationRunner!.wake()
  const { token } = service.app.organizations.a.credentials.live
  const { json } = await service.call<{ status: string; result: object; error: object | null }>(
    'GET',
    begun.json.statusUrl,
    { token },
  )
  return json
}

test('what failed is tried again under its id, with a whole series of attempts; what was delivered is not', async () => {
  const subscriptionId = await subscribed()
  const { organizationId } = service.app.organizations.a
  const of = { organizationId, appId: service.app.appId, subscriptionId }
  const failed = await seedDelivery(service.db.database, { ...of, createdAt: Date.now() - 60_000 })
  await seedDelivery(service.db.database, { ...of, state: 'delivered' })
  await seedDelivery(service.db.database, { ...of, eventKey: 'webhook.test' })
  const early = await seedDelivery(service.db.database, { ...of, createdAt: Date.now() - 60 * 60_000 })
  expect(await recovered(subscriptionId)).toMatchObject({
    status: 'succeeded',
    result: { subscriptionId, resent: 1, missed: 0 },
  })
  expect(await queue()).toEqual([expect.objectContaining({ deliveryId: failed, trigger: 'recover', left: 10 })])
  expect((await live.delivery(failed)).json.state).toBe('pending')
  expect((await live.delivery(early)).json.state).toBe('failed')
  // Asked again, there is nothing left to do: it is on its way.
  expect(await recovered(subscriptionId)).toMatchObject({ result: { resent: 0, missed: 0 } })
})

test('events of the time when the subscription was disabled, or was not there yet, are delivered', async () => {
  const before = await newDeal('Before the subscription')
  const subscriptionId = await subscribed()
  const told = await newDeal('Told')
  await live.put(subscriptionId, { events: [recordCreated], enabled: false })
  const missed = await newDeal('Missed')
  await live.put(subscriptionId, { events: [recordCreated], enabled: true })
  await asSystem(sql`DELETE FROM portico.webhook_delivery WHERE category = 'subscription_disabled'`)
  const { json } = await live.events({ pageSize: 200 })
  const eventOf = (recordId: string) => json.items.find(({ subject }) => subject.id === recordId)!.id
  const outcome = await recovered(subscriptionId)
  expect(outcome).toMatchObject({ status: 'succeeded', result: { resent: 0 } })
  const rows = await queue()
  expect(rows.filter((row) => row.trigger === 'recover').map((row) => row.eventId)).toEqual(
    expect.arrayContaining([eventOf(before), eventOf(missed)]),
  )
  expect(rows.filter((row) => row.eventId === eventOf(told)).length).toBeLessThanOrEqual(1)
  expect(new Set(rows.map((row) => row.eventId)).size).toBe(rows.length)
})

test('a thousand events are found in their order, in several steps', async () => {
  const subscriptionId = await subscribed()
  await live.put(subscriptionId, { events: [recordCreated], enabled: false })
  const { appId, organizations } = service.app
  for (let batch = 0; batch < 6; batch++) {
    const items = Array.from({ length: 200 }, (_, index) => ({
      operation: 'create',
      fields: { name: `Item ${batch}-${index}` },
    }))
    const sent = { token: organizations.a.credentials.live.token, body: { items } }
    expect((await service.call('POST', `/v1/apps/${appId}/objects/deal/records:batch`, sent)).status).toBe(200)
  }
  await service.service.dispatcher.dispatchAll()
  await live.put(subscriptionId, { events: [recordCreated], enabled: true })
  expect(await recovered(subscriptionId)).toMatchObject({ result: { missed: 1200 } })
  const [sent, written] = [
    await queue(),
    await asSystem<{ id: string }>(sql`SELECT event_id AS id FROM portico.event
    ORDER BY position`),
  ]
  expect(sent.map((row) => row.eventId)).toEqual(written.map(({ id }) => id))
})

test('only what the credential of the subscription may read, whoever asks for the recovery', async () => {
  const subscriptionId = await subscribed(enveloped)
  const { dataRoles, locations } = service.app.organizations.a
  await inA((tx) => tx.rows(sql`UPDATE portico.webhook_subscription SET enabled = false, disabled_at = now()`))
  await newDeal('South', { dataRoleId: dataRoles['sales'], locationId: locations['south'] })
  await newDeal('North', { dataRoleId: dataRoles['sales'], locationId: locations['north'] })
  await inA((tx) => tx.rows(sql`UPDATE portico.webhook_subscription SET enabled = true, disabled_at = NULL`))
  expect(await recovered(subscriptionId)).toMatchObject({ result: { resent: 0, missed: 1 } })
})

test('of the objects that a subscription names, records and relationships are sent, now and when they were missed', async () => {
  const about = (eventKey: string) => ({ ...recordCreated, eventKey, objectKeys: ['deal'] })
  const events = [about('record.created'), about('relationship.created')]
  const { json } = await live.create({ events })
  const { subscriptionId } = json
  const post = async (path: string, body: object) => (await live.ask<{ recordId: string }>('POST', path, { body })).json
  const happen = async () => {
    const deal = await newDeal('Asked for')
    const companies = [
      await post('/objects/company/records', { fields: { name: 'One' } }),
      await post('/objects/company/records', { fields: { name: 'Other' } }),
    ]
    const partners = { relationshipKey: 'partners', fromRecordId: deal, toRecordId: companies[0]!.recordId }
    await post('/relationships', partners)
    await service.service.dispatcher.dispatchAll()
    return deal
  }
  const told = async () => {
    const { items } = (await live.events({ pageSize: 200 })).json
    const of = new Map(items.map((item) => [item.id, item]))
    return (await queue()).map(({ eventId }) => of.get(eventId)!)
  }
  const deal = await happen()
  expect((await told()).map(({ type }) => type)).toEqual(['record.created', 'relationship.created'])
  expect((await told())[0]!.subject.id).toBe(deal)
  await live.put(subscriptionId, { events, enabled: false })
  await happen()
  await live.put(subscriptionId, { events, enabled: true })
  expect(await recovered(subscriptionId)).toMatchObject({ result: { missed: 2 } })
  expect((await live.test(subscriptionId)).status).toBe(202)
  await service.service.dispatcher.dispatchAll()
  expect((await queue()).filter(({ trigger }) => trigger === 'test')).toHaveLength(1)
})

test('of scope app, lifecycle events of every organization are found, and nothing else of others', async () => {
  const userCreated = { eventKey: 'user.created', eventVersion: '2026-09-14' }
  const { json } = await live.create({ scope: 'app', events: [userCreated] })
  const { organizations } = service.app
  for (const { organizationId } of [organizations.a, organizations.b]) {
    await service.db.database.inOrganization(organizationId, (tx) =>
      tx.rows(sql`INSERT INTO portico.outbox (organization_id, app_id, event_key, event_version, subject_type, actor_kind,
          actor_id, event_id, occurred_at, subject_id, data)
        VALUES (${organizationId}, ${service.app.appId}, 'user.created', '2026-09-14', 'user', 'system', 'test',
          portico.uuid_at(now()), now(), portico.uuid_at(now()), '{}')`),
    )
  }
  await inA((tx) => tx.rows(sql`UPDATE portico.webhook_subscription SET enabled = false, disabled_at = now()`))
  await service.service.dispatcher.dispatchAll()
  await inA((tx) => tx.rows(sql`UPDATE portico.webhook_subscription SET enabled = true, disabled_at = NULL`))
  expect(await recovered(json.subscriptionId)).toMatchObject({ result: { missed: 2 } })
})

test.each([
  ['a time before all that is kept', { since: ago(31 * 24 * 60) }, [400, 'validation_failed', 'since']],
  ['an end before the beginning', { since: ago(5), until: ago(6) }, [400, 'validation_failed', 'until']],
  ['a beginning that is still to come', { since: ago(-5) }, [400, 'validation_failed', 'since']],
  ['no time', {}, [400, 'validation_failed', 'since']],
  ['what is no time', { since: 'yesterday' }, [400, 'validation_failed', 'since']],
])('%s is refused', async (_, body, expected) => {
  const subscriptionId = await subscribed()
  expect(refusal(await live.ask('POST', `/webhooks/${subscriptionId}/recover`, { body }))).toEqual(expected)
})

test('a subscription that is disabled, or somebody else’s, is not recovered', async () => {
  const subscriptionId = await subscribed()
  const ask = (client: WebhookClient) =>
    client.ask('POST', `/webhooks/${subscriptionId}/recover`, { body: { since: ago(5) } })
  expect(refusal(await ask(enveloped))).toEqual([404, 'webhook_subscription_not_found'])
  const foreign = webhookClient(service, service.app.organizations.b.credentials.live.token)
  expect(refusal(await ask(foreign))).toEqual([404, 'webhook_subscription_not_found'])
  await live.put(subscriptionId, { events: [recordCreated], enabled: false })
  expect(refusal(await ask(live))).toEqual([409, 'webhook_subscription_disabled'])
})
