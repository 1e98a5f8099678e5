import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { leaseMs } from '../src/shared/operations/attempt.ts'
import { asAdministrator } from './support/administrator.ts'
import { type Ended, type Exchange, exchangeOf } from './support/exchange.ts'
import { startRunner, type TestRunner } from './support/runners.ts'
import { startTestService, type TestService } from './support/service.ts'

/** Imports and exports whose workers are killed, or whose initiators lose rights, while they are at work. */
let service: TestService
let deals: Exchange
let now = Date.now()
const clock = { now: () => now }
const runners: TestRunner[] = []

beforeAll(async () => {
  // Whoever accepts the work does not carry it on: the workers are other processes, as it were.
  service = await startTestService({ runsOperations: false, clock })
  deals = exchangeOf(service, '/objects/deal/records', service.app.organizations.a.credentials.live)
})
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner.close()
})
afterAll(() => service.stop())

function start(): TestRunner {
  const runner = startRunner(service.db, { clock })
  runners.push(runner)
  return runner
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await pause(5)
}

const statusOf = async (operationId: string, by = deals): Promise<Ended> => (await by.status(operationId)).json

/** Lets a worker come so far, and kills it; the next one goes on when the lease is over. Returns how often that was. */
async function carriedOn(operationId: string): Promise<number> {
  let kills = 0
  for (let last = -1; ; kills++) {
    const runner = start()
    void runner.wake()
    let seen: Ended
    await until(async () => {
      seen = await statusOf(operationId)
      return seen.status === 'succeeded' || (seen.progress.processed > last && seen.progress.processed > 0)
    })
    if (seen!.status === 'succeeded' || kills === 3) {
      await runner.wake()
      return kills
    }
    await runner.kill(() => {})
    last = (await statusOf(operationId)).progress.processed
    now += leaseMs + 1
  }
}

test('an import that is killed again and again has each row once', async () => {
  const rows = Array.from({ length: 4000 }, (_, index) => `Killed ${index},${index % 10 === 3 ? 'much' : index}`)
  const { json } = await deals.begin('import', {
    body: { format: 'csv', content: `name,amount\n${rows.join('\n')}\n` },
  })
  expect(await carriedOn(json.operationId)).toBeGreaterThan(0)
  const ended = await statusOf(json.operationId)
  expect(ended).toMatchObject({
    status: 'partially_succeeded',
    progress: { total: 4000, processed: 4000, succeeded: 3600, failed: 400 },
    result: { created: 3600, failed: 400 },
  })
  expect((await deals.errors(ended)).map(({ row }) => row)).toEqual(
    rows.flatMap((_, index) => (index % 10 === 3 ? [index + 1] : [])),
  )
  const names = await asAdministrator(service.db.connection, async (admin) => {
    const { schemaName } = service.app
    const found = await admin.query<{ name: string }>(
      `SELECT f_name AS name FROM ${schemaName}.deal WHERE f_name LIKE 'Killed %'`,
    )
    return found.rows.map(({ name }) => name)
  })
  expect(names.length).toBe(3600)
  expect(new Set(names).size).toBe(3600)
})

test('an export that is killed again and again has each row once', async () => {
  const body = { format: 'ndjson', search: 'Killed', sort: 'name_asc' }
  const notes = 'x'.repeat(2000)
  await asAdministrator(service.db.connection, (admin) =>
    admin.query(`UPDATE ${service.app.schemaName}.deal SET f_notes = $1 WHERE f_name LIKE 'Killed %'`, [notes]),
  )
  const { json } = await deals.begin('export', { body })
  expect(await carriedOn(json.operationId)).toBeGreaterThan(0)
  const { text } = await deals.file(json.operationId)
  const names = text
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { name: string }).name)
  expect(names.length).toBe(3600)
  expect(new Set(names).size).toBe(3600)
  expect(await statusOf(json.operationId)).toMatchObject({
    status: 'succeeded',
    progress: { total: 3600, processed: 3600 },
  })
})

test('rights that are lost hold from the next step on', async () => {
  const { users, organizationId } = service.app.organizations.a
  const sales = exchangeOf(service, '/objects/deal/records', users.sales)
  const rows = Array.from({ length: 6000 }, (_, index) => `Lost ${index}`)
  const content = `name\n${rows.join('\n')}\n`
  const { json } = await sales.begin('import', { body: { format: 'csv', content } })
  const runner = start()
  const working = runner.wake()
  await until(async () => (await statusOf(json.operationId)).progress.processed > 0)
  await asAdministrator(service.db.connection, async (admin) => {
    await admin.query('DELETE FROM portico.membership_data_role WHERE user_id = $1', [users.sales.userId])
    await admin.query('SELECT portico.bump_epoch($1)', [organizationId])
  })
  await working
  const ended = await statusOf(json.operationId)
  expect(ended).toMatchObject({ status: 'failed', error: { code: 'object_not_found' } })
  expect(ended.progress.processed).toBeLessThan(6000)
  expect(ended.progress.processed % 200).toBe(0)
})

test('a cancelled import keeps what it has written, and writes no more', async () => {
  const rows = Array.from({ length: 6000 }, (_, index) => `Cancelled ${index}`)
  const { json } = await deals.begin('import', { body: { format: 'csv', content: `name\n${rows.join('\n')}\n` } })
  const working = start().wake()
  await until(async () => (await statusOf(json.operationId)).progress.processed > 0)
  const asked = await deals.cancel(json.operationId)
  expect(asked.json.status).toBe('cancelling')
  expect(asked.headers['retry-after']).toBe('1')
  await working
  const ended = await statusOf(json.operationId)
  expect(ended.status).toBe('cancelled')
  expect(ended.progress.processed).toBeLessThan(6000)
  const waiting = await deals.begin('export', { body: { format: 'csv' } })
  expect((await deals.cancel(waiting.json.operationId)).json.status).toBe('cancelled')
})
