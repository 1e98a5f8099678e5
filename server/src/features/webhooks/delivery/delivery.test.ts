import { setTimeout as pause } from 'node:timers/promises'
import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { verifyWebhook } from '../../../../../sdk/src/verify-webhook.ts'
import { type Receiver, startReceiver } from '../../../../test/support/receiver.ts'
import { newSigningSecret, sealedFor } from '../signing-secret.ts'
import { type DeliveryTestbed, startDeliveryTestbed, type TestSubscription } from './delivery-test-support.ts'
import type { DeliveryWorker } from './worker.ts'

let bed: DeliveryTestbed
let worker: DeliveryWorker
const receivers: Receiver[] = []

beforeAll(async () => {
  bed = await startDeliveryTestbed()
  worker = bed.startWorker()
})
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()))
  await bed.forget()
})
afterAll(() => bed.stop())

type Answer = Parameters<typeof startReceiver>[0]

async function receive(answer?: Answer): Promise<Receiver & { readonly url: string }> {
  const receiver = await startReceiver(answer)
  receivers.push(receiver)
  return Object.assign(receiver, { url: `http://127.0.0.1:${receiver.port}/hook` })
}

/** Answers with these statuses in turn, the last one for ever. */
function statuses(...codes: number[]): Answer {
  let turn = 0
  return (_request, response) => {
    response.writeHead(codes[Math.min(turn++, codes.length - 1)]!).end('said')
  }
}

/** The instant of the next attempt, and the attempt. */
async function untilDue(subscriptionId: string): Promise<void> {
  const { dueAt } = await bed.delivery(subscriptionId)
  bed.advance(Date.parse(dueAt!) - bed.clock.now())
  await worker.deliverAll()
}

async function attemptsCounted(): Promise<number> {
  const [row] = await bed.database.as('portico_system', (tx) =>
    tx.rows<{ total: number }>(sql`SELECT coalesce(sum(attempts), 0)::bigint AS total FROM portico.webhook_usage`),
  )
  return row!.total
}

const update = (subscription: TestSubscription, change: ReturnType<typeof sql>) =>
  bed.database.inOrganization(subscription.organizationId, (tx) =>
    tx.rows(sql`UPDATE portico.webhook_subscription SET ${change}
      WHERE organization_id = ${subscription.organizationId} AND subscription_id = ${subscription.subscriptionId}`),
  )

test('an event is delivered once, signed for both schemes, and kept with what the receiver said', async () => {
  const receiver = await receive((_request, response) => response.end('thanks'))
  const { subscriptionId, secret } = await bed.subscribe(receiver.url)
  await bed.emit()
  await worker.deliverAll()

  expect(receiver.requests).toHaveLength(1)
  const { headers, body, method, path } = receiver.requests[0]!
  expect([method, path]).toEqual(['POST', '/hook'])
  const now = bed.clock.now()
  const event = await verifyWebhook({ headers, body, secret, now })
  expect(event).toMatchObject({ type: 'user.created', appId: bed.tenant.appId, data: { displayName: 'Zoë 0' } })
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = headers
  const standard = {
    'webhook-id': id as string,
    'webhook-timestamp': timestamp as string,
    'webhook-signature': signature as string,
  }
  expect(await verifyWebhook({ headers: standard, body, secret, now })).toEqual(event)

  const delivery = await bed.delivery(subscriptionId)
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'x-service-event': event.id,
    'webhook-id': event.id,
    'x-service-delivery': delivery.deliveryId,
  })
  expect(delivery).toMatchObject({ state: 'delivered', category: 'success', attemptCount: 1 })
  expect(delivery.attempts).toEqual([
    {
      attemptNumber: 1,
      trigger: 'schedule',
      startedAt: bed.iso(),
      durationMs: expect.any(Number),
      httpStatus: 200,
      category: 'success',
      responseExcerpt: 'thanks',
      responseTruncated: false,
    },
  ])
  await worker.deliverAll()
  expect(receiver.requests).toHaveLength(1)
})

test('a failure is tried again by the schedule, with one event id and a new signature, until it succeeds', async () => {
  const receiver = await receive(statuses(500, 302, 404, 204))
  const { subscriptionId, secret } = await bed.subscribe(receiver.url)
  const attemptsBefore = await attemptsCounted()
  await bed.emit()
  await worker.deliverAll()
  expect(await bed.delivery(subscriptionId)).toMatchObject({ state: 'queued', attemptCount: 1, dueAt: bed.iso(5000) })
  bed.advance(4999)
  await worker.deliverAll()
  expect(receiver.requests).toHaveLength(1)
  expect(await bed.subscription(subscriptionId)).toMatchObject({ consecutiveFailures: 1, lastSuccessAt: null })
  for (let attempt = 2; attempt <= 4; attempt++) await untilDue(subscriptionId)

  const delivery = await bed.delivery(subscriptionId)
  expect(delivery).toMatchObject({ state: 'delivered', attemptCount: 4 })
  expect(delivery.attempts.map(({ category, httpStatus }) => [category, httpStatus])).toEqual([
    ['http_5xx', 500],
    ['http_3xx', 302],
    ['http_4xx', 404],
    ['success', 204],
  ])
  const ids = receiver.requests.map(({ headers }) => [headers['x-service-event'], headers['x-service-delivery']])
  expect(new Set(ids.map((pair) => pair.join())).size).toBe(1)
  const { headers, body } = receiver.requests.at(-1)!
  await expect(verifyWebhook({ headers, body, secret, now: bed.clock.now() })).resolves.toBeDefined()
  expect(await bed.subscription(subscriptionId)).toMatchObject({
    enabled: true,
    consecutiveFailures: 0,
    firstFailureAt: null,
    lastSuccessAt: bed.iso(),
  })
  // What usage tells of (shared/usage).
  expect(await attemptsCounted()).toBe(attemptsBefore + 4)
})

test('after ten attempts a delivery has failed; a receiver that has failed for five days is left alone', async () => {
  const receiver = await receive(statuses(503))
  const { subscriptionId } = await bed.subscribe(receiver.url)
  await bed.emit()
  await worker.deliverAll()
  for (let attempt = 2; attempt <= 10; attempt++) await untilDue(subscriptionId)
  const failed = await bed.delivery(subscriptionId)
  expect(failed).toMatchObject({ state: 'failed', category: 'http_5xx', attemptCount: 10 })
  expect(failed.attempts).toHaveLength(10)
  expect(receiver.requests).toHaveLength(10)
  // Ten failures, and 75 hours: not yet.
  expect(await bed.subscription(subscriptionId)).toMatchObject({ enabled: true, consecutiveFailures: 10 })

  bed.advance(45 * 3_600_000)
  await bed.emit(2)
  await worker.deliverAll()
  // One of the two may have been under way still when the other disabled the subscription.
  await worker.deliverAll()
  expect(await bed.subscription(subscriptionId)).toMatchObject({
    enabled: false,
    disabledReason: 'failing',
    revision: 2,
  })
  const ended = (await bed.deliveries(subscriptionId)).filter(({ deliveryId }) => deliveryId !== failed.deliveryId)
  expect(ended.map(({ state, category }) => [state, category])).toEqual([
    ['failed', 'subscription_disabled'],
    ['failed', 'subscription_disabled'],
  ])
  await bed.emit()
  expect(await bed.deliveries(subscriptionId)).toHaveLength(3)
})

test('a receiver that is gone for good gets nothing more', async () => {
  const receiver = await receive(statuses(200, 410))
  const { subscriptionId } = await bed.subscribe(receiver.url)
  await bed.emit()
  await worker.deliverAll()
  await bed.emit()
  await worker.deliverAll()
  expect(await bed.subscription(subscriptionId)).toMatchObject({ enabled: false, disabledReason: 'gone' })
  const entries = await bed.database.as('portico_owner', (tx) =>
    tx.rows(sql`SELECT actor_kind AS kind, actor_id AS id, action, after, target_organization_id AS "organizationId"
      FROM portico.audit_entry WHERE target_id = ${subscriptionId}`),
  )
  expect(entries).toEqual([
    {
      ...{ kind: 'system', id: 'webhooks', action: 'webhook_subscription.disabled' },
      ...{ after: { enabled: false, disabledReason: 'gone' }, organizationId: bed.a.organizationId },
    },
  ])
  expect((await bed.deliveries(subscriptionId)).map(({ category }) => category)).toEqual(['success', 'gone'])
  await bed.emit()
  await worker.deliverAll()
  expect(receiver.requests).toHaveLength(2)
})

test('an address that says that it is gone does not disable the one that took its place meanwhile', async () => {
  const moved = await receive()
  let subscription: TestSubscription
  const old = await receive(async (_request, response) => {
    await update(subscription, sql`destination_url = ${moved.url}`)
    response.writeHead(410).end()
  })
  subscription = await bed.subscribe(old.url)
  await bed.emit()
  await worker.deliverAll()
  expect(await bed.subscription(subscription.subscriptionId)).toMatchObject({ enabled: true })
  await bed.emit()
  await worker.deliverAll()
  expect([old.requests.length, moved.requests.length]).toEqual([1, 1])
})

test('a delivery that is tried again by hand has one attempt, which says so', async () => {
  const receiver = await receive(statuses(410, 500, 200))
  const subscription = await bed.subscribe(receiver.url)
  const { subscriptionId, organizationId } = subscription
  await bed.emit()
  await worker.deliverAll()
  await update(subscription, sql`enabled = true, disabled_at = NULL, disabled_reason = NULL`)
  const retry = () =>
    bed.database.inOrganization(organizationId, (tx) =>
      tx.rows(sql`WITH taken AS (
          DELETE FROM portico.webhook_delivery WHERE organization_id = ${organizationId}
            AND subscription_id = ${subscriptionId} AND state = 'failed' RETURNING *)
        INSERT INTO portico.webhook_queue (organization_id, delivery_id, subscription_id, app_id, event_organization_id,
          event_id, event_key, event_version, created_at, attempts, attempt_count, max_attempts, trigger, due_at)
        SELECT organization_id, delivery_id, subscription_id, app_id, event_organization_id, event_id, event_key,
          event_version, created_at, attempts, attempt_count, attempt_count + 1, 'manual', ${bed.iso()} FROM taken`),
    )
  await retry()
  await worker.deliverAll()
  expect(await bed.delivery(subscriptionId)).toMatchObject({ state: 'failed', category: 'http_5xx', attemptCount: 2 })
  await retry()
  await worker.deliverAll()
  const delivery = await bed.delivery(subscriptionId)
  expect(delivery).toMatchObject({ state: 'delivered', attemptCount: 3 })
  expect(delivery.attempts.map(({ trigger, attemptNumber }) => [trigger, attemptNumber])).toEqual([
    ['schedule', 1],
    ['manual', 2],
    ['manual', 3],
  ])
  expect(new Set(receiver.requests.map(({ headers }) => headers['x-service-event'])).size).toBe(1)
})

test('while one secret replaces another a delivery is signed with both, and afterwards with the new one alone', async () => {
  const receiver = await receive(statuses(500, 500, 200))
  const subscription = await bed.subscribe(receiver.url)
  const { subscriptionId, secret: old } = subscription
  await bed.emit()
  await worker.deliverAll()
  const secret = newSigningSecret()
  const sealed = await bed.secrets.seal(secret, sealedFor(subscriptionId))
  await update(
    subscription,
    sql`previous_secret_sealed = secret_sealed, previous_secret_expires_at = ${bed.iso(60_000)}, secret_sealed = ${sealed}`,
  )
  await untilDue(subscriptionId)
  await untilDue(subscriptionId)
  const [before, during, after] = receiver.requests
  const trusts = async (request: typeof before, ...secrets: string[]) => {
    const now = Number(request!.headers['x-service-timestamp']) * 1000
    const { headers, body } = request!
    return Promise.all(
      secrets.map((one) =>
        verifyWebhook({ headers, body, secret: one, now }).then(
          () => true,
          () => false,
        ),
      ),
    )
  }
  expect(await trusts(before, old, secret)).toEqual([true, false])
  expect(await trusts(during, old, secret)).toEqual([true, true])
  expect(during!.headers['x-service-signature']).toMatch(/^v1=[0-9a-f]{64},v1=[0-9a-f]{64}$/)
  expect(during!.headers['webhook-signature']).toMatch(/^v1,[^ ,]{44} v1,[^ ,]{44}$/)
  expect(await trusts(after, old, secret)).toEqual([false, true])
})

test('a subscription that is disabled or deleted between two attempts gets no second one', async () => {
  const receiver = await receive(statuses(500))
  const disabled = await bed.subscribe(receiver.url)
  const deleted = await bed.subscribe(receiver.url)
  await bed.emit()
  await worker.deliverAll()
  await update(disabled, sql`enabled = false, disabled_at = now(), disabled_reason = 'manual'`)
  await bed.database.inOrganization(deleted.organizationId, (tx) =>
    tx.rows(sql`DELETE FROM portico.webhook_subscription WHERE organization_id = ${deleted.organizationId}
      AND subscription_id = ${deleted.subscriptionId}`),
  )
  await worker.deliverAll()
  bed.advance(3_600_000)
  await worker.deliverAll()
  expect(receiver.requests).toHaveLength(2)
  for (const { subscriptionId } of [disabled, deleted]) {
    const delivery = await bed.delivery(subscriptionId)
    expect(delivery).toMatchObject({ state: 'failed', category: 'subscription_disabled', attemptCount: 1 })
  }
})

test('a subscription that is deleted while a delivery is under way leaves the delivery and what became of it', async () => {
  let subscription: TestSubscription
  const receiver = await receive(async (_request, response) => {
    await bed.database.inOrganization(subscription.organizationId, (tx) =>
      tx.rows(sql`DELETE FROM portico.webhook_subscription WHERE subscription_id = ${subscription.subscriptionId}
        AND organization_id = ${subscription.organizationId}`),
    )
    response.writeHead(500).end()
  })
  subscription = await bed.subscribe(receiver.url)
  await bed.emit()
  await worker.deliverAll()
  await worker.deliverAll()
  const delivery = await bed.delivery(subscription.subscriptionId)
  expect(delivery).toMatchObject({ state: 'failed', category: 'subscription_disabled', attemptCount: 1 })
  expect(delivery.attempts[0]).toMatchObject({ category: 'http_5xx' })
})

test('a receiver that is not there is tried again', async () => {
  const receiver = await receive()
  const { subscriptionId } = await bed.subscribe(receiver.url)
  await receiver.close()
  receivers.length = 0
  await bed.emit()
  await worker.deliverAll()
  const { state, attempts } = await bed.delivery(subscriptionId)
  expect([state, attempts[0]]).toMatchObject([
    'queued',
    { category: 'connection_refused', httpStatus: null, responseExcerpt: null },
  ])
})

test('two workers never send a delivery twice, nor more than eight of one subscription at once', async () => {
  let atOnce = 0
  let most = 0
  const receiver = await receive(async (_request, response) => {
    most = Math.max(most, ++atOnce)
    await pause(5)
    atOnce--
    response.end()
  })
  const { subscriptionId } = await bed.subscribe(receiver.url)
  await bed.emit(100)
  const other = bed.startWorker()
  await Promise.all([worker.deliverAll(), other.deliverAll()])
  // What one had to leave while the other was at it.
  await Promise.all([worker.deliverAll(), other.deliverAll()])
  const sent = receiver.requests.map(({ headers }) => headers['x-service-delivery'])
  expect(sent).toHaveLength(100)
  expect(new Set(sent).size).toBe(100)
  expect(most).toBeLessThanOrEqual(8)
  expect((await bed.deliveries(subscriptionId)).every(({ state }) => state === 'delivered')).toBe(true)
})
