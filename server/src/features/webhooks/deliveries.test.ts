import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { attemptOf, seedDelivery, seedQueued } from '../../../test/support/deliveries.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import { newSubscription, refusal, userCreated, type WebhookClient, webhookClient } from './testing.ts'

let service: TestService
let live: WebhookClient
let enveloped: WebhookClient
let foreign: WebhookClient
let subscriptionId: string
let seed: { organizationId: string; appId: string; subscriptionId: string }
beforeAll(async () => {
  service = await startTestService()
  const { a, b } = service.app.organizations
  live = webhookClient(service, a.credentials.live.token)
  enveloped = webhookClient(service, a.credentials.enveloped.token)
  foreign = webhookClient(service, b.credentials.live.token)
  subscriptionId = (await live.create()).json.subscriptionId
  seed = { organizationId: a.organizationId, appId: service.app.appId, subscriptionId }
})
afterAll(() => service.stop())
beforeEach(async () => {
  await service.db.database.inOrganization(seed.organizationId, async (tx) => {
    await tx.rows(sql`DELETE FROM portico.webhook_delivery`)
    await tx.rows(sql`DELETE FROM portico.webhook_queue`)
  })
})

const delivered = (change: object = {}) => seedDelivery(service.db.database, { ...seed, ...change })
const queued = (change: object = {}) => seedQueued(service.db.database, { ...seed, ...change })
const later = () => new Date(Date.now() + 60_000).toISOString()

async function idsOf(query: object = {}, client = live): Promise<readonly string[]> {
  const answer = await client.deliveries(query)
  expect(answer.status, answer.text).toBe(200)
  return answer.json.items.map(({ deliveryId }) => deliveryId)
}

test('a delivery is shown with its state, from the queue and from history', async () => {
  const attempt = attemptOf({ attemptNumber: 1, responseExcerpt: null, httpStatus: null, category: 'timeout' })
  const eventId = uuidv7(Date.now())
  const cases = [
    [await queued({ eventId }), 'pending', 0],
    [await queued({ attempts: [attempt] }), 'retrying', 1],
    [await queued({ attempts: [attempt], trigger: 'manual' }), 'pending', 1],
    [await queued({ trigger: 'test' }), 'pending', 0],
    [await queued({ leasedUntil: later() }), 'delivering', 0],
    [await delivered({ state: 'delivered' }), 'delivered', 1],
    [await delivered(), 'failed', 1],
  ] as const
  for (const [deliveryId, state, attemptCount] of cases) {
    const { json } = await live.delivery(deliveryId)
    const isOver = state === 'delivered' || state === 'failed'
    expect(json, state).toMatchObject({ deliveryId, subscriptionId, state, attemptCount, maxAttempts: 10 })
    expect([json.completedAt !== null, json.nextAttemptAt !== null]).toEqual([
      isOver,
      !isOver && state !== 'delivering',
    ])
    expect([json.retryEligible, json.attempts.length]).toEqual([state === 'failed', attemptCount])
  }
  expect((await live.delivery(cases[0][0])).json).toMatchObject({
    eventId,
    eventKey: 'record.updated',
    eventVersion: '2026-11-20',
    organizationId: seed.organizationId,
  })
  expect((await live.delivery(cases[1][0])).json.attempts).toEqual([attempt])
})

test('the list has both, newest first, page by page, and each filter narrows it', async () => {
  const hour = 3_600_000
  const now = Date.now()
  const at = (hours: number) => now - hours * hour
  const iso = (hours: number) => new Date(at(hours)).toISOString()
  const other = (await live.create()).json.subscriptionId
  const eventId = uuidv7(Date.now())
  const timeout = attemptOf({ category: 'timeout' })
  const a = await delivered({ createdAt: at(50), state: 'delivered' })
  const b = await delivered({ createdAt: at(40), eventId })
  const c = await queued({ createdAt: at(30), attempts: [timeout] })
  const d = await delivered({ createdAt: at(20), category: 'timeout', eventKey: 'record.created' })
  const e = await queued({ createdAt: at(10), subscriptionId: other })
  const f = await queued({ createdAt: at(5), leasedUntil: later(), eventId })
  expect(await idsOf()).toEqual([f, e, d, c, b, a])
  for (const [query, expected] of [
    [{ subscriptionId: other }, [e]],
    [{ subscriptionId: other.toUpperCase() }, [e]],
    [{ eventId }, [f, b]],
    [{ eventKey: 'record.created' }, [d]],
    [{ eventKey: 'record.archived' }, []],
    [{ state: 'pending' }, [e]],
    [{ state: 'delivering' }, [f]],
    [{ state: 'retrying' }, [c]],
    [{ state: 'delivered' }, [a]],
    [{ state: 'failed' }, [d, b]],
    [{ category: 'timeout' }, [d, c]],
    [{ category: 'success' }, [a]],
    [{ category: 'timeout', state: 'failed' }, [d]],
    [{ category: 'timeout', state: 'delivered' }, []],
    [{ createdFrom: iso(35) }, [f, e, d, c]],
    [{ createdTo: iso(35) }, [b, a]],
    [{ createdFrom: iso(45), createdTo: iso(15) }, [d, c, b]],
  ] as const) {
    expect(await idsOf(query), JSON.stringify(query)).toEqual(expected)
  }
  const walked: string[] = []
  let cursor: string | null = null
  do {
    const { json } = await live.deliveries({ pageSize: 2, createdFrom: iso(45), ...(cursor && { cursor }) })
    walked.push(...json.items.map(({ deliveryId }) => deliveryId))
    cursor = json.nextCursor
  } while (cursor)
  expect(walked).toEqual([f, e, d, c, b])
  const { nextCursor } = (await live.deliveries({ pageSize: 2 })).json
  expect(refusal(await live.deliveries({ cursor: nextCursor, state: 'failed' }))).toEqual([
    400,
    'cursor_mismatch',
    'cursor',
  ])
  expect(refusal(await live.deliveries({ eventKey: 'record.sung' }))).toEqual([
    422,
    'webhook_event_unknown',
    'eventKey',
  ])
  expect(refusal(await live.deliveries({ pageSize: 101 }))).toEqual([400, 'page_size_exceeded', 'pageSize'])
  expect(refusal(await live.deliveries({ createdFrom: '2016-12-31T23:59:60Z' }))).toEqual([
    400,
    'validation_failed',
    'createdFrom',
  ])
})

describe('a retry', () => {
  test('puts the same delivery back for one attempt, and a second click finds nothing to do', async () => {
    const attempts = Array.from({ length: 10 }, (_, n) => attemptOf({ attemptNumber: n + 1 }))
    const deliveryId = await delivered({ attempts })
    const before = (await live.delivery(deliveryId)).json
    const answer = await live.retry(deliveryId)
    expect(answer.json).toEqual({
      ...before,
      state: 'pending',
      maxAttempts: 11,
      completedAt: null,
      nextAttemptAt: expect.any(String),
      retryEligible: false,
    })
    expect(refusal(await live.retry(deliveryId))).toEqual([409, 'webhook_delivery_not_retryable'])
    expect(await idsOf()).toEqual([deliveryId])
    const [row] = await service.db.database.inOrganization(seed.organizationId, (tx) =>
      tx.rows<{ trigger: string }>(sql`SELECT trigger FROM portico.webhook_queue`),
    )
    expect(row!.trigger).toBe('manual')
  })

  test('is one, however many ask at once', async () => {
    const deliveryId = await delivered()
    const answers = await Promise.all(Array.from({ length: 8 }, () => live.retry(deliveryId)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(7).fill(409)])
    expect(await idsOf()).toEqual([deliveryId])
  })

  test('is for deliveries that failed', async () => {
    for (const deliveryId of [
      await delivered({ state: 'delivered' }),
      await queued(),
      await queued({ attempts: [attemptOf()] }),
      await queued({ leasedUntil: later() }),
    ]) {
      expect(refusal(await live.retry(deliveryId))).toEqual([409, 'webhook_delivery_not_retryable'])
    }
    expect(refusal(await live.retry(uuidv7(Date.now())))).toEqual([404, 'webhook_delivery_not_found'])
  })
})

describe('what receivers answered', () => {
  test('is for those who manage the subscription', async () => {
    const own = (await enveloped.create()).json.subscriptionId
    const [theirs, mine] = [await delivered(), await delivered({ subscriptionId: own })]
    const waiting = await queued()
    expect(await idsOf({}, enveloped)).toEqual([mine])
    expect(await idsOf()).toEqual([waiting, mine, theirs])
    expect((await enveloped.delivery(mine)).status).toBe(200)
    for (const id of [theirs, waiting]) {
      expect(refusal(await enveloped.delivery(id))).toEqual([404, 'webhook_delivery_not_found'])
      expect(refusal(await enveloped.retry(id))).toEqual([404, 'webhook_delivery_not_found'])
    }
    expect(await idsOf({ subscriptionId }, enveloped)).toEqual([])
    expect((await enveloped.retry(mine)).status).toBe(200)
  })

  test('is not for another organization', async () => {
    const ids = [await delivered(), await queued()]
    expect(await idsOf({}, foreign)).toEqual([])
    expect(await idsOf({ subscriptionId }, foreign)).toEqual([])
    for (const id of ids) {
      expect(refusal(await foreign.delivery(id))).toEqual([404, 'webhook_delivery_not_found'])
      expect(refusal(await foreign.retry(id))).toEqual([404, 'webhook_delivery_not_found'])
    }
    expect((await live.delivery(ids[0]!)).json.state).toBe('failed')
  })

  test('names the organization of the event, where the subscription is for all of them', async () => {
    const { b } = service.app.organizations
    const whole = (await live.create({ scope: 'app', events: [userCreated] })).json.subscriptionId
    const deliveryId = await delivered({ subscriptionId: whole, eventOrganizationId: b.organizationId })
    expect((await live.delivery(deliveryId)).json.organizationId).toBe(b.organizationId)
    expect(refusal(await foreign.delivery(deliveryId))).toEqual([404, 'webhook_delivery_not_found'])
  })
})

test('a test reaches the subscription that is tested, and no other', async () => {
  const other = (await live.create({ ...newSubscription, displayName: 'Other' })).json.subscriptionId
  const { status, json } = await live.test(subscriptionId)
  expect(status).toBe(202)
  await service.service.dispatcher.dispatchAll()
  const { items } = (await live.deliveries({ eventId: json.eventId })).json
  expect(items).toHaveLength(1)
  expect(items[0]).toMatchObject({ subscriptionId, eventKey: 'webhook.test', maxAttempts: 1, attemptCount: 0 })
  expect(await idsOf({ subscriptionId: other })).toEqual([])
  const listed = await service.call('GET', json.deliveriesUrl, {
    token: service.app.organizations.a.credentials.live.token,
  })
  expect(listed.json).toMatchObject({ items: [{ eventId: json.eventId }] })
})
