import { setTimeout as pause } from 'node:timers/promises'
import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { asAdministrator } from '../../../../test/support/administrator.ts'
import { type Receiver, startReceiver, startTcp } from '../../../../test/support/receiver.ts'
import { type DeliveryTestbed, startDeliveryTestbed } from './delivery-test-support.ts'

let bed: DeliveryTestbed
const receivers: Receiver[] = []

beforeAll(async () => {
  bed = await startDeliveryTestbed()
})
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()))
  await bed.forget()
})
afterAll(() => bed.stop())

const keep = <R extends Receiver>(receiver: R): R => {
  receivers.push(receiver)
  return receiver
}
const urlOf = ({ port }: Receiver, path = '/') => `http://127.0.0.1:${port}${path}`

/** Holds the first request until it is told to answer it, and answers the others. */
async function holdFirst() {
  const first = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  let count = 0
  const receiver = keep(
    await startReceiver(async (_request, response) => {
      if (++count === 1) {
        arrived.resolve()
        await first.promise
      }
      response.end(`answer ${count}`)
    }),
  )
  return { receiver, arrived: arrived.promise, answer: () => first.resolve() }
}

test('what a lost worker had is sent by another, is not charged, and the lost one writes nothing when it comes back', async () => {
  const { receiver, arrived, answer } = await holdFirst()
  const { subscriptionId } = await bed.subscribe(urlOf(receiver))
  await bed.emit()
  const lost = bed.startWorker()
  const other = bed.startWorker()
  const late = lost.deliverAll()
  await arrived
  await other.deliverAll()
  expect(receiver.requests).toHaveLength(1)
  expect(await bed.delivery(subscriptionId)).toMatchObject({ state: 'leased', leaseNumber: 1 })

  const startedAt = bed.iso()
  bed.advance(45_001)
  await other.deliverAll()
  const delivered = await bed.delivery(subscriptionId)
  expect(delivered).toMatchObject({ state: 'delivered', attemptCount: 1 })
  expect(delivered.attempts).toMatchObject([
    { attemptNumber: 1, category: 'worker_lost', startedAt, durationMs: 45_001, httpStatus: null },
    { attemptNumber: 1, category: 'success', responseExcerpt: 'answer 2' },
  ])
  answer()
  await late
  expect(await bed.delivery(subscriptionId)).toEqual(delivered)
  expect(receiver.requests).toHaveLength(2)
})

test('what a worker had that died is sent a moment later', async () => {
  const receiver = keep(await startReceiver())
  const { subscriptionId } = await bed.subscribe(urlOf(receiver))
  await bed.emit()
  const { presence, worker } = bed.startPresentWorker()
  const other = bed.startWorker()
  await presence.shown()
  await bed.database.as('portico_system', (tx) =>
    tx.rows(sql`UPDATE portico.webhook_queue SET leased_until = ${bed.iso(45_000)}, started_at = ${bed.iso()},
      lease_number = 1, leased_by = ${presence.id}`),
  )
  for (let look = 0; look < 3; look++, bed.advance(1000)) await other.deliverAll()
  expect(await bed.delivery(subscriptionId)).toMatchObject({ state: 'leased' })
  await worker.close()
  for (let look = 0; look < 3; look++, bed.advance(1000)) await other.deliverAll()
  const { state, attemptCount, attempts } = await bed.delivery(subscriptionId)
  expect([state, attemptCount]).toEqual(['delivered', 1])
  expect(attempts.map(({ category }) => category)).toEqual(['worker_lost', 'success'])
})

test('a worker that comes back while another is at it writes nothing either', async () => {
  const first = await holdFirst()
  const { subscriptionId } = await bed.subscribe(urlOf(first.receiver))
  await bed.emit()
  const lost = bed.startWorker()
  const late = lost.deliverAll()
  await first.arrived
  bed.advance(45_001)
  // As another worker would: the lease is its own now.
  await bed.database.as('portico_system', (tx) =>
    tx.rows(sql`UPDATE portico.webhook_queue SET leased_until = ${bed.iso(45_000)}, lease_number = 2`),
  )
  first.answer()
  await late
  expect(await bed.delivery(subscriptionId)).toMatchObject({ state: 'leased', leaseNumber: 2, attempts: [] })
})

test('a delivery that loses every worker is given up after thirty leases', async () => {
  const receiver = keep(await startReceiver())
  const { subscriptionId } = await bed.subscribe(urlOf(receiver))
  await bed.emit()
  await bed.database.as('portico_system', (tx) =>
    tx.rows(
      sql`UPDATE portico.webhook_queue SET leased_until = ${bed.iso(-1)}, started_at = ${bed.iso(-45_000)}, lease_number = 30`,
    ),
  )
  await bed.startWorker().deliverAll()
  expect(await bed.delivery(subscriptionId)).toMatchObject({
    state: 'failed',
    category: 'worker_lost',
    attemptCount: 0,
  })
  expect(receiver.requests).toEqual([])
})

test('a worker that is closed puts back what hangs, uncharged, and takes nothing more', async () => {
  const { receiver, arrived, answer } = await holdFirst()
  const { subscriptionId } = await bed.subscribe(urlOf(receiver))
  await bed.emit()
  const worker = bed.startWorker({ closeWithinMs: 20 })
  void worker.deliverAll()
  await arrived
  await worker.close()
  const expected = { state: 'queued', attemptCount: 0, attempts: [], dueAt: bed.iso() }
  expect(await bed.delivery(subscriptionId)).toMatchObject(expected)
  answer()
  await bed.emit()
  await worker.deliverAll()
  expect((await bed.deliveries(subscriptionId)).map(({ state }) => state)).toEqual(['queued', 'queued'])
  await bed.startWorker().deliverAll()
  expect((await bed.deliveries(subscriptionId)).map(({ state }) => state)).toEqual(['delivered', 'delivered'])
})

test('what was leased ahead of a receiver that has become slow is put back, uncharged', async () => {
  const eight = Promise.withResolvers<void>()
  const receiver = keep(await startReceiver(() => receiver.requests.length === 8 && eight.resolve()))
  const { subscriptionId } = await bed.subscribe(urlOf(receiver))
  await bed.emit(20)
  const worker = bed.startWorker({ closeWithinMs: 20 })
  void worker.deliverAll()
  await eight.promise
  expect((await bed.deliveries(subscriptionId)).map(({ state }) => state)).toEqual(Array(20).fill('leased'))
  bed.advance(1001)
  void worker.deliverAll()
  const queued = async () => (await bed.deliveries(subscriptionId)).filter(({ state }) => state === 'queued')
  await expect.poll(async () => (await queued()).length).toBe(12)
  for (const one of await queued()) expect(one).toMatchObject({ attemptCount: 0, attempts: [], leaseNumber: 0 })
  // Eight are under way: there is no room for another worker either.
  await bed.startWorker().deliverAll()
  expect(receiver.requests).toHaveLength(8)
  await worker.close()
})

test('what was answered while the database was away is written when it is back, and sent once', async () => {
  const receiver = keep(
    await startReceiver(async (_request, response) => {
      await bed.sever.cut()
      response.end()
      await pause(50)
      await bed.sever.restore()
    }),
  )
  const { subscriptionId } = await bed.subscribe(urlOf(receiver))
  await bed.emit()
  await bed.startWorker({ database: bed.severed }).deliverAll()
  expect(await bed.delivery(subscriptionId)).toMatchObject({ state: 'delivered', attemptCount: 1 })
  expect(receiver.requests).toHaveLength(1)
})

test('a secret that cannot be opened holds up its own subscription alone', async () => {
  const receiver = keep(await startReceiver())
  const broken = await bed.subscribe(urlOf(receiver, '/broken'))
  const good = await bed.subscribe(urlOf(receiver, '/good'))
  await bed.database.inOrganization(bed.a.organizationId, (tx) =>
    tx.rows(sql`UPDATE portico.webhook_subscription SET secret_sealed = 'nonsense'
      WHERE organization_id = ${bed.a.organizationId} AND subscription_id = ${broken.subscriptionId}`),
  )
  await bed.emit()
  await bed.startWorker().deliverAll()
  expect(receiver.requests.map(({ path }) => path)).toEqual(['/good'])
  expect(await bed.delivery(good.subscriptionId)).toMatchObject({ state: 'delivered' })
  expect(await bed.delivery(broken.subscriptionId)).toMatchObject({
    state: 'queued',
    attemptCount: 0,
    dueAt: bed.iso(5000),
  })
  expect(bed.logLines.join('')).not.toContain(good.secret)
  bed.advance(5000)
  await bed.startWorker().deliverAll()
  expect(await bed.delivery(broken.subscriptionId)).toMatchObject({ attempts: [], dueAt: bed.iso(10_000) })
  await bed.database.as('portico_system', (tx) =>
    tx.rows(sql`UPDATE portico.webhook_queue SET lease_number = 29, due_at = ${bed.iso()}`),
  )
  await bed.startWorker().deliverAll()
  expect(await bed.delivery(broken.subscriptionId)).toMatchObject({ state: 'failed', attemptCount: 0 })
})

test('an answer that no column could hold is kept as far as it is text', async () => {
  const receiver = keep(await startReceiver((_request, response) => response.writeHead(400).end('no\u0000pe')))
  const { subscriptionId } = await bed.subscribe(urlOf(receiver))
  await bed.emit()
  await bed.startWorker().deliverAll()
  expect((await bed.delivery(subscriptionId)).attempts[0]).toMatchObject({
    category: 'http_4xx',
    responseExcerpt: 'nope',
  })
})

test('events of many megabytes are sent a few at a time, and all of them', async () => {
  const receiver = keep(await startReceiver())
  const { subscriptionId } = await bed.subscribe(urlOf(receiver))
  await bed.emit(5)
  await asAdministrator(bed.connection, (admin) =>
    admin.query(`UPDATE portico.event SET data = json_build_object('padding', repeat('x', 5000000))`),
  )
  await bed.startWorker().deliverAll()
  expect(receiver.requests.map(({ body }) => body.length > 5_000_000)).toEqual([true, true, true, true, true])
  expect((await bed.deliveries(subscriptionId)).every(({ state }) => state === 'delivered')).toBe(true)
})

test('receivers that hang, drip, reset, redirect and never end leave the others alone, in a worker with few places', async () => {
  const everything = Promise.withResolvers<void>()
  const good = keep(
    await startReceiver((_request, response) => {
      response.end()
      if (good.requests.length === 80 * 5) everything.resolve()
    }),
  )
  const hostile = await Promise.all([
    startTcp(() => undefined),
    startTcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n')
      const timer = setInterval(() => socket.write('.'), 50)
      socket.on('close', () => clearInterval(timer))
    }),
    startTcp((socket) => socket.resetAndDestroy()),
    startReceiver((_request, response) => response.writeHead(302, { location: '/' }).end()),
    startTcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const write = () => {
        while (!socket.destroyed && socket.write('x'.repeat(10_000)));
      }
      socket.on('drain', write)
      write()
    }),
  ])
  for (const receiver of hostile) keep(receiver)
  // The hostile ones come first, and are known to fail.
  const ids: string[] = []
  for (let n = 0; n < 20; n++) {
    const { subscriptionId, organizationId } = await bed.subscribe(urlOf(hostile[n % 5]!))
    ids.push(subscriptionId)
    await bed.database.as('portico_system', (tx) =>
      tx.rows(sql`INSERT INTO portico.webhook_health (organization_id, subscription_id, consecutive_failures)
        VALUES (${organizationId}, ${subscriptionId}, 3)`),
    )
  }
  for (let n = 0; n < 80; n++) ids.push((await bed.subscribe(urlOf(good, `/${n}`))).subscriptionId)
  await bed.emit(5)
  const worker = bed.startWorker({ slots: 16, closeWithinMs: 20 })
  void worker.deliverAll()
  await everything.promise
  // Eight subscriptions hang or drip, with more to send than the worker has places: they hold half of those, and no more.
  const hanging = await Promise.all(ids.slice(0, 20).flatMap((id, n) => (n % 5 < 2 ? [bed.deliveries(id)] : [])))
  const held = hanging.flat().filter(({ state }) => state === 'leased').length
  // Those that reset and redirect have a part of that half while they do.
  expect(held).toBeGreaterThan(0)
  expect(held).toBeLessThanOrEqual(8)
  expect(new Set(good.requests.map(({ headers }) => headers['x-service-delivery'])).size).toBe(400)
  await worker.close()
})
