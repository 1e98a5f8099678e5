import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { verifyWebhook } from '../../../../sdk/src/verify-webhook.ts'
import { type ReceivedRequest, type Receiver, startReceiver } from '../../../test/support/receiver.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { issueCredential } from '../../../test/support/tenants.ts'
import type { RecordView } from '../../shared/records/record.ts'
import { recordUpdated, refusal, type WebhookClient, webhookClient } from './testing.ts'

/** From the request that subscribes to the receiver that verifies, through the whole service. */
let service: TestService
let receiver: Receiver
let live: WebhookClient
let status = 204
beforeAll(async () => {
  service = await startTestService()
  receiver = await startReceiver((_, response) => response.writeHead(status).end(status === 204 ? undefined : 'busy'))
  live = webhookClient(service, service.app.organizations.a.credentials.live.token)
})
afterAll(async () => {
  await service.stop()
  await receiver.close()
})
beforeEach(() => {
  status = 204
})

const created = { ...recordUpdated, eventKey: 'record.created' }

function subscribe(client = live, path = '/') {
  return client.create({ destinationUrl: `http://127.0.0.1:${receiver.port}${path}`, events: [created] })
}

async function createDeal(name: string): Promise<string> {
  const sent = { body: { fields: { name, amount: '12.50' } } }
  return (await live.ask<RecordView>('POST', '/objects/deal/records', sent)).json.recordId
}

/** What arrives at that path while `work` runs and everything that is due is sent. */
async function arriving(path: string, work: () => Promise<unknown>): Promise<ReceivedRequest[]> {
  const before = receiver.requests.length
  await work()
  await service.service.dispatcher.dispatchAll()
  await service.service.deliveries.deliverAll()
  return receiver.requests.slice(before).filter((request) => request.path === path)
}

test('an event arrives signed, with what the credential of each subscription may read', async () => {
  const { a } = service.app.organizations
  const plan = { displayName: 'support', envelope: { roles: ['support'], locations: 'all' as const } }
  const { token } = await service.db.database.as('portico_owner', (tx) =>
    issueCredential(tx, { ...a, appId: service.app.appId }, plan),
  )
  const whole = (await subscribe(live, '/whole')).json
  const narrow = (await subscribe(webhookClient(service, token), '/narrow')).json
  let deal = ''
  const [toWhole, ...more] = await arriving('/whole', async () => {
    deal = await createDeal('Signed')
  })
  expect(more).toEqual([])
  const toNarrow = receiver.requests.find(({ path }) => path === '/narrow')!
  for (const [request, { secret, subscriptionId }, fields] of [
    [toWhole!, whole, { name: 'Signed', amount: '12.50' }],
    [toNarrow, narrow, { name: 'Signed' }],
  ] as const) {
    const event = await verifyWebhook({ headers: request.headers, body: request.body, secret })
    expect(event).toMatchObject({
      type: 'record.created',
      subject: { type: 'record', id: deal },
      data: { record: { fields } },
    })
    const { items } = (await live.deliveries({ eventId: event.id, subscriptionId })).json
    expect(items).toMatchObject([{ state: 'delivered', attemptCount: 1, attempts: [{ httpStatus: 204 }] }])
    expect(request.headers['x-service-delivery']).toBe(items[0]!.deliveryId)
  }
  expect(toNarrow.body).not.toContain('amount')
  await expect(
    verifyWebhook({ headers: toWhole!.headers, body: toWhole!.body, secret: narrow.secret }),
  ).rejects.toMatchObject({ reason: 'signature_mismatch' })
  for (const { subscriptionId } of [whole, narrow]) await live.remove(subscriptionId)
})

test('while a secret is replaced both verify, and afterwards the new one alone', async () => {
  const { subscriptionId, secret: old } = (await subscribe()).json
  const { secret: next } = (await live.rotate(subscriptionId, { overlapSeconds: 3600 })).json
  const [both] = await arriving('/', () => createDeal('While both hold'))
  for (const secret of [old, next]) await verifyWebhook({ headers: both!.headers, body: both!.body, secret })
  const { secret: last } = (await live.rotate(subscriptionId)).json
  const [alone] = await arriving('/', () => createDeal('Afterwards'))
  await verifyWebhook({ headers: alone!.headers, body: alone!.body, secret: last })
  for (const secret of [old, next]) {
    await expect(verifyWebhook({ headers: alone!.headers, body: alone!.body, secret })).rejects.toMatchObject({
      reason: 'signature_mismatch',
    })
  }
  await live.remove(subscriptionId)
})

test('what failed is told with its evidence, ends when it is disabled, and comes by hand to where it is wanted now', async () => {
  const { subscriptionId } = (await subscribe()).json
  status = 503
  const [refused] = await arriving('/', () => createDeal('Unlucky'))
  const deliveryId = String(refused!.headers['x-service-delivery'])
  expect((await live.delivery(deliveryId)).json).toMatchObject({
    state: 'retrying',
    attempts: [{ category: 'http_5xx', httpStatus: 503, responseExcerpt: 'busy', responseTruncated: false }],
  })
  expect((await live.get(subscriptionId)).json.health.consecutiveFailures).toBe(1)
  const change = { destinationUrl: `http://127.0.0.1:${receiver.port}/moved`, events: [created] }
  await live.put(subscriptionId, { ...change, enabled: false })
  expect((await live.delivery(deliveryId)).json).toMatchObject({ state: 'failed', retryEligible: true })
  expect(await arriving('/moved', () => createDeal('Meanwhile'))).toEqual([])
  await live.put(subscriptionId, { ...change, enabled: true })
  status = 204
  const [again] = await arriving('/moved', () => live.retry(deliveryId))
  expect(again!.headers['x-service-delivery']).toBe(deliveryId)
  expect(again!.headers['x-service-event']).toBe(refused!.headers['x-service-event'])
  expect((await live.delivery(deliveryId)).json).toMatchObject({
    state: 'delivered',
    attempts: [{ trigger: 'schedule' }, { trigger: 'manual', category: 'success' }],
  })
  expect(refusal(await live.retry(deliveryId))).toEqual([409, 'webhook_delivery_not_retryable'])
  await live.remove(subscriptionId)
})

test('a test arrives, in one attempt', async () => {
  const { subscriptionId, secret } = (await subscribe()).json
  const [sent] = await arriving('/', () => live.test(subscriptionId))
  const event = await verifyWebhook({ headers: sent!.headers, body: sent!.body, secret })
  expect(event).toMatchObject({ type: 'webhook.test', data: { subscriptionId } })
  status = 500
  const [failed] = await arriving('/', () => live.test(subscriptionId))
  const { json } = await live.delivery(String(failed!.headers['x-service-delivery']))
  expect(json).toMatchObject({ state: 'failed', attempts: [{ trigger: 'test', category: 'http_5xx' }] })
  await live.remove(subscriptionId)
})
