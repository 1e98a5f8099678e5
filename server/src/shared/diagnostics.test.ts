import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { asAdministrator } from '../../test/support/administrator.ts'
import { createTestDatabase, type TestDatabase } from '../../test/support/database.ts'
import { makeSeverable } from '../../test/support/severable.ts'
import { callerOf, createTenant } from '../../test/support/tenants.ts'
import type { Caller } from '../kernel/caller.ts'
import { type Failure, fail } from '../kernel/errors.ts'
import type { Outcome } from '../kernel/exchange.ts'
import { uuidv7 } from '../kernel/ids.ts'
import type { Operation } from '../kernel/operation.ts'
import { openDatabase } from './database/database.ts'
import { createDiagnostics, type Diagnostics } from './diagnostics.ts'
import { queueMax } from './diagnostics-queue.ts'
import { makeToken } from './identity/tokens.ts'
import { createLog } from './log.ts'
import { createMetrics } from './metrics.ts'

let db: TestDatabase
let alice: Caller
let mallory: Caller
let lines: string[] = []
const log = createLog({ level: 'info', pretty: false, destination: { write: (line) => void lines.push(line) } })

beforeAll(async () => {
  db = await createTestDatabase()
  const { organizations } = await createTenant(db.database, {
    organizations: { a: { credentials: { live: {} } }, b: { credentials: { live: {} } } },
  })
  alice = await callerOf(db.database, organizations.a.credentials.live)
  mallory = await callerOf(db.database, organizations.b.credentials.live)
})
afterAll(() => db.drop())
beforeEach(async () => {
  lines = []
  await asAdministrator(db.connection, (admin) => admin.query('TRUNCATE portico.request_log'))
})

const start = Date.now()
const operations = {
  read: { id: 'developerRecordsGet', method: 'GET', path: '/v1/read', transaction: 'read', rateClass: 'read' },
  write: { id: 'developerRecordsCreate', method: 'POST', path: '/v1/write', transaction: 'write', rateClass: 'write' },
}

function outcome(kind: 'read' | 'write', failure?: Failure, caller: Caller | undefined = alice): Outcome {
  return {
    correlationId: uuidv7(Date.now()),
    operation: operations[kind] as unknown as Operation<never>,
    caller,
    status: failure?.status ?? 200,
    code: failure?.code,
    startedAtMs: start,
    durationMs: 12.3456789,
    stages: [{ name: 'authenticate', durationMs: 0.0123456789 }],
    failure,
  }
}

function make(database = db.database) {
  let now = start
  const metrics = createMetrics()
  const diagnostics = createDiagnostics({ database, clock: { now: () => now }, log, metrics })
  const dropped = async () =>
    Number(/^portico_diagnostics_dropped_total (\d+)$/m.exec(await metrics.metricsText())?.[1])
  return {
    diagnostics,
    dropped,
    pass: (ms: number) => {
      now += ms
    },
  }
}

async function stored() {
  const { rows } = await asAdministrator(db.connection, (admin) =>
    admin.query('SELECT * FROM portico.request_log ORDER BY correlation_id'),
  )
  return rows
}

function recordMany(diagnostics: Diagnostics, count: number, of: () => Outcome): Outcome[] {
  return Array.from({ length: count }, () => {
    const one = of()
    diagnostics.record(one)
    return one
  })
}

test('a failure is kept with what was wrong, in names and never in values', async () => {
  const { diagnostics } = make()
  const token = makeToken('live').text
  const failed = outcome(
    'write',
    fail('validation_failed', {
      details: [
        { field: 'fields.amount', code: 'type', message: 'canary-value is not a number' },
        { field: `fields.${token}`, code: 'unknown_field', message: '' },
        { field: 'nul \0, half \ud83d', code: 'unknown_field', message: '' },
        { field: 'x'.repeat(10_000), code: 'unknown_field', message: '' },
      ],
      cause: new Error('canary-cause'),
    }),
  )
  diagnostics.record(failed)
  await diagnostics.flush()
  const [row] = await stored()
  expect(row).toMatchObject({
    organization_id: alice.organizationId,
    correlation_id: failed.correlationId,
    occurred_at: new Date(start),
    operation_id: 'developerRecordsCreate',
    method: 'POST',
    route: '/v1/write',
    status: 400,
    code: 'validation_failed',
    duration_ms: 12.3457,
    credential_kind: 'live',
    stages: [{ name: 'authenticate', durationMs: 0.0123457 }],
  })
  expect(row.entries.map((entry: { field: string }) => entry.field)).toEqual([
    null,
    'fields.amount',
    'fields.ptc_[redacted]',
    'nul \uFFFD, half \uFFFD',
    'x'.repeat(200),
  ])
  expect(JSON.stringify(row)).not.toContain('canary')
  await diagnostics.close()
})

test('of an internal error only the log knows the cause', async () => {
  const { diagnostics } = make()
  const failed = outcome('read', fail('internal_error', { cause: new Error('canary-cause') }))
  diagnostics.record(failed)
  await diagnostics.flush()
  const [row] = await stored()
  expect(row.entries).toEqual([
    { level: 'error', code: 'internal_error', field: null, message: expect.stringContaining('unexpected') },
  ])
  expect(JSON.stringify(row)).not.toContain('canary')
  expect(lines.filter((line) => line.includes('canary-cause') && line.includes(failed.correlationId))).toHaveLength(1)
  await diagnostics.close()
})

test('at most 50 entries are kept', async () => {
  const { diagnostics } = make()
  const details = Array.from({ length: 200 }, (_, i) => ({ field: `items[${i}]`, code: 'required', message: '' }))
  diagnostics.record(outcome('write', fail('batch_failed', { details })))
  await diagnostics.flush()
  expect((await stored())[0].entries).toHaveLength(50)
  await diagnostics.close()
})

test('a request without a caller belongs to nobody, and goes to the log only', async () => {
  const { diagnostics } = make()
  const refused = { ...outcome('read', fail('credential_invalid')), caller: undefined }
  diagnostics.record(refused)
  await diagnostics.flush()
  expect(await stored()).toEqual([])
  expect(lines.join('')).toContain(refused.correlationId)
  await diagnostics.close()
})

test('a request is found while it waits, by its own organisation only, and after it was written in the database', async () => {
  const { diagnostics } = make()
  const { correlationId } = recordMany(diagnostics, 1, () => outcome('read'))[0]!
  expect(diagnostics.find(alice, correlationId)).toMatchObject({ correlationId, status: 200, code: null, entries: [] })
  expect(diagnostics.find(alice, correlationId)).not.toHaveProperty('organizationId')
  expect(diagnostics.find(mallory, correlationId)).toBeUndefined()
  await diagnostics.flush()
  expect(diagnostics.find(alice, correlationId)).toBeUndefined()
  expect(await stored()).toHaveLength(1)
  await diagnostics.close()
})

test('rows are written by themselves, soon, or at once when many wait', async () => {
  const { diagnostics } = make()
  recordMany(diagnostics, 3, () => outcome('write'))
  expect(await stored()).toHaveLength(0)
  await expect.poll(stored, { interval: 20, timeout: 2000 }).toHaveLength(3)
  recordMany(diagnostics, 1200, () => outcome('write'))
  await expect.poll(stored, { interval: 20, timeout: 2000 }).toHaveLength(1203)
  await diagnostics.close()
})

test('every mutation is kept; reads and failures are sampled beyond 200 a second, apart from each other', async () => {
  const { diagnostics, pass } = make()
  recordMany(diagnostics, 1000, () => outcome('read'))
  recordMany(diagnostics, 300, () => outcome('write'))
  recordMany(diagnostics, 300, () => outcome('read', fail('record_not_found')))
  recordMany(diagnostics, 300, () => outcome('write', fail('validation_failed')))
  recordMany(diagnostics, 1000, () => outcome('read', fail('rate_limited')))
  pass(1000)
  recordMany(diagnostics, 50, () => outcome('read'))
  recordMany(diagnostics, 50, () => outcome('read', fail('record_not_found')))
  await diagnostics.flush()
  const rows = await stored()
  const count = (code: string | null, operation: string) =>
    rows.filter((row) => row.code === code && row.operation_id === operation).length
  expect(count(null, 'developerRecordsCreate')).toBe(300)
  // 200, then every hundredth of what is beyond, in the order of arrival.
  expect(count(null, 'developerRecordsGet')).toBe(200 + 8 + 50)
  expect(count('rate_limited', 'developerRecordsGet')).toBe(10)
  expect(count('record_not_found', 'developerRecordsGet')).toBe(200 + 1 + 50)
  expect(count('validation_failed', 'developerRecordsCreate')).toBe(3)
  await diagnostics.close()
})

test('a request that was written already is not written twice, and spoils no batch', async () => {
  const { diagnostics } = make()
  const [first] = recordMany(diagnostics, 1, () => outcome('write'))
  await diagnostics.flush()
  diagnostics.record(first!)
  recordMany(diagnostics, 1, () => outcome('write'))
  await diagnostics.flush()
  expect(await stored()).toHaveLength(2)
  await diagnostics.close()
})

test('while the database is away rows wait, bounded, and are written when it is back; failures outlast successes', async () => {
  const way = await makeSeverable(db.connection)
  const database = openDatabase({ connection: way.connection, poolSize: 2 })
  const { diagnostics, dropped } = make(database)
  recordMany(diagnostics, 1, () => outcome('write'))
  await diagnostics.flush()
  await way.cut()
  const failures = recordMany(diagnostics, 100, () => outcome('read', fail('record_not_found')))
  await diagnostics.flush()
  recordMany(diagnostics, queueMax + 500, () => outcome('write'))
  await diagnostics.flush()
  expect(await dropped()).toBe(600)
  expect(diagnostics.find(alice, failures[0]!.correlationId)).toBeDefined()
  expect(lines.filter((line) => line.includes('cannot be written for now'))).toHaveLength(1)
  await way.restore()
  await expect.poll(stored, { interval: 50, timeout: 8000 }).toHaveLength(1 + queueMax)
  expect((await stored()).filter((row) => row.code === 'record_not_found')).toHaveLength(100)
  await diagnostics.close()
  await database.close()
  await way.cut()
})

test('closing writes what waits, and does not hang without a database', async () => {
  const { diagnostics } = make()
  recordMany(diagnostics, 700, () => outcome('write'))
  await diagnostics.close()
  expect(await stored()).toHaveLength(700)

  const way = await makeSeverable(db.connection)
  await way.cut()
  const database = openDatabase({ connection: way.connection, poolSize: 1 })
  const lost = make(database)
  recordMany(lost.diagnostics, 2, () => outcome('write'))
  const closing = performance.now()
  await lost.diagnostics.close()
  expect(performance.now() - closing).toBeLessThan(4000)
  expect(lines.join('')).toContain('Diagnostics were lost')
  await database.close()
})

test('a batch that the database refuses is dropped, counted and logged', async () => {
  const { diagnostics, dropped } = make()
  await asAdministrator(db.connection, (admin) => admin.query('ALTER TABLE portico.request_log RENAME TO gone'))
  try {
    recordMany(diagnostics, 2, () => outcome('write'))
    await diagnostics.flush()
  } finally {
    await asAdministrator(db.connection, (admin) => admin.query('ALTER TABLE portico.gone RENAME TO request_log'))
  }
  expect(await dropped()).toBe(2)
  expect(lines.join('')).toContain('refused a batch')
  recordMany(diagnostics, 1, () => outcome('write'))
  await diagnostics.flush()
  expect(await stored()).toHaveLength(1)
  await diagnostics.close()
})
