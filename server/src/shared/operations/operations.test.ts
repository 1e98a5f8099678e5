import { setTimeout as pause } from 'node:timers/promises'
import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { startRunner, type TestRunner } from '../../../test/support/runners.ts'
import { callerOf, createTenant, type TestCredential } from '../../../test/support/tenants.ts'
import type { Caller } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import { attemptsMax, leaseMs } from './attempt.ts'
import { keptMs, removeExpired, uploadKeptMs } from './claims.ts'
import { appendToFile, readFile } from './files.ts'
import { type Work, type WorkKind, workKind } from './kind.ts'
import { turnMs } from './runner.ts'
import { findOperation, insertOperation, type OperationRow, requestCancellation } from './store.ts'

/** Workers that die, are slow, are too many, or work for somebody who may not any more: on one database, with a clock of ours. */
let db: TestDatabase
let callers: Record<'owner' | 'clerk' | 'other' | 'third', Caller>
let credentials: Record<'owner' | 'clerk' | 'other' | 'third', TestCredential>
let now = Date.UTC(2026, 10, 20)
const clock = { now: () => now }
const runners: TestRunner[] = []
const log: string[] = []

const plan = { users: { owner: { owner: true }, clerk: {} }, credentials: { live: {} } } as const

beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())
beforeEach(async () => {
  const { organizations } = await createTenant(db.database, { organizations: { a: plan, b: plan, c: plan } })
  const { a, b, c } = organizations
  credentials = { owner: a.users.owner, clerk: a.users.clerk, other: b.users.owner, third: c.users.owner }
  const entries = Object.entries(credentials).map(
    async ([name, one]) => [name, await callerOf(db.database, one)] as const,
  )
  callers = Object.fromEntries(await Promise.all(entries)) as typeof callers
  log.length = 0
})
afterEach(async () => {
  for (const runner of runners.splice(0)) await runner.close()
  await asAdministrator(db.connection, (admin) => admin.query('DELETE FROM portico.operation'))
})

function start(kinds: readonly WorkKind[], at = clock): TestRunner {
  const runner = startRunner(db, { clock: at, kinds, log })
  runners.push(runner)
  return runner
}

const objectId = uuidv7(1)

/** Writes so many rows, one in each step. `before` is waited for in the transaction of each step, `between` outside. */
function writing(
  count: number,
  hooks: {
    readonly before?: (step: number, work: Work<unknown, number>) => unknown
    readonly between?: (step: number) => unknown
  } = {},
): WorkKind {
  return workKind<unknown, number>({
    type: 'test.write',
    async run(work) {
      for (let at = work.checkpoint ?? 0; at < count; at++) {
        await hooks.between?.(at)
        await work.step(async ({ tx, caller }) => {
          await tx.rows(
            sql`INSERT INTO portico.record_directory VALUES (${caller.organizationId}, ${uuidv7(now)}, ${objectId})`,
          )
          await hooks.before?.(at, work)
          const done = at + 1
          const bytes = Buffer.from(`${done}\n`)
          return {
            checkpoint: done,
            progress: { total: count, processed: done, succeeded: done, failed: 0 },
            append: [{ file: 'result', bytes }],
          }
        })
      }
      return { status: 'succeeded', result: { count } }
    },
  })
}

async function begin(caller: Caller, scope = 'records.read', type = 'test.write'): Promise<string> {
  const operationId = uuidv7(now)
  await db.database.inOrganization(caller.organizationId, (tx) =>
    insertOperation(tx, caller, { operationId, type, scope, input: {}, correlationId: uuidv7(now), now }, 'queued'),
  )
  return operationId
}

async function look(operationId: string, caller = callers.owner): Promise<OperationRow | undefined> {
  return db.database.inOrganization(caller.organizationId, (tx) => findOperation(tx, caller, operationId, now))
}

async function rowsWritten({ organizationId }: Caller = callers.owner): Promise<number> {
  const rows = await db.database.inOrganization(organizationId, (tx) =>
    tx.rows(sql`SELECT FROM portico.record_directory WHERE organization_id = ${organizationId}`),
  )
  return rows.length
}

async function fileOf(operationId: string, file: 'result' | 'upload' = 'result', { organizationId } = callers.owner) {
  const chunks: Buffer[] = []
  for await (const chunk of readFile(db.database, { organizationId, operationId }, file)) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

async function until(holds: () => unknown): Promise<void> {
  while (!(await holds())) await pause(10)
}

test('work is done in steps, and its end is kept for 7 days', async () => {
  const operationId = await begin(callers.owner)
  await start([writing(3)]).wake()
  expect(await look(operationId)).toMatchObject({
    status: 'succeeded',
    processed: 3,
    result: { count: 3 },
    completedAt: new Date(now).toISOString(),
    expiresAt: new Date(now + keptMs).toISOString(),
  })
  expect(await fileOf(operationId)).toBe('1\n2\n3\n')
  expect(await look(operationId, callers.other)).toBeUndefined()
  expect(await look(operationId, callers.clerk)).toBeUndefined()
})

test('a worker that is killed in the middle of a step is replaced after its lease: nothing is lost, nothing doubled', async () => {
  for (let kills = 1; kills <= 2; kills++) {
    const operationId = await begin(callers.owner)
    const before = await rowsWritten()
    let reached = false
    const death = Promise.withResolvers<void>()
    const hangs = writing(6, {
      before: (step) => {
        if (step < 2 * kills - 1) return
        reached = true
        return death.promise
      },
    })
    const first = start([hangs])
    void first.wake()
    await until(() => reached)
    await first.kill(death.resolve)
    const second = start([writing(6)])
    await second.wake()
    expect(await look(operationId)).toMatchObject({ status: 'running', processed: 2 * kills - 1 })
    now += leaseMs + 1
    await second.wake()
    expect(await look(operationId)).toMatchObject({ status: 'succeeded', processed: 6 })
    expect(await rowsWritten()).toBe(before + 6)
    expect(await fileOf(operationId)).toBe('1\n2\n3\n4\n5\n6\n')
    // It looks every second, and would take the next one before the worker that is to be killed.
    await second.close()
  }
})

test('a worker that was believed dead writes nothing more', async () => {
  const operationId = await begin(callers.owner)
  const gate = Promise.withResolvers<void>()
  let waiting = false
  const slow = start([
    writing(4, {
      between: (step) => {
        waiting ||= step === 2
        return step === 2 && gate.promise
      },
    }),
  ])
  const slowly = slow.wake()
  await until(() => waiting)
  now += leaseMs + 1
  await start([writing(4)]).wake()
  expect(await look(operationId)).toMatchObject({ status: 'succeeded', processed: 4 })
  gate.resolve()
  await slowly
  expect(await rowsWritten()).toBe(4)
  expect(await fileOf(operationId)).toBe('1\n2\n3\n4\n')
  expect(log.join('')).toContain('went to another worker')
})

test('what is cancelled stops behind its step, and what was never begun at once', async () => {
  const operationId = await begin(callers.owner)
  const cancel = (id: string) =>
    db.database.inOrganization(callers.owner.organizationId, (tx) => requestCancellation(tx, callers.owner, id, now))
  const kind = writing(5, {
    between: async (step) => step === 2 && expect(await cancel(operationId)).toEqual({ wasQueued: false }),
  })
  await start([kind]).wake()
  expect(await look(operationId)).toMatchObject({ status: 'cancelled', processed: 3, result: null })
  expect(await rowsWritten()).toBe(3)
  expect(await cancel(operationId)).toBeUndefined()
  const waiting = await begin(callers.owner)
  expect(await cancel(waiting)).toEqual({ wasQueued: true })
})

test('a worker that closes puts its work back for others, who take it up at once', async () => {
  const operationId = await begin(callers.owner)
  let steps = 0
  const first = start([writing(50, { between: () => pause(10), before: () => steps++ })])
  void first.wake()
  await until(() => steps > 2)
  await first.close()
  const { processed } = (await look(operationId))!
  expect(processed).toBeGreaterThan(0)
  expect(processed).toBeLessThan(50)
  await start([writing(50)]).wake()
  expect(await look(operationId)).toMatchObject({ status: 'succeeded' })
  expect(await rowsWritten()).toBe(50)
})

test('processes that are stopped in order use up no attempt', async () => {
  const operationId = await begin(callers.owner)
  for (let count = 0; count <= attemptsMax; count++) {
    let runs = 0
    const patient = workKind({
      type: 'test.write',
      run: ({ signal }) => {
        runs++
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const runner = start([patient])
    void runner.wake()
    await until(() => runs === 1)
    await runner.close()
  }
  await start([writing(1)]).wake()
  expect(await look(operationId)).toMatchObject({ status: 'succeeded' })
})

test('one organization has two at work at a time, and does not keep another one waiting', async () => {
  const atWork = new Map<string, number>()
  let most = 0
  const order: string[] = []
  const kind = workKind<unknown, number>({
    type: 'test.write',
    async run({ organizationId, step }) {
      const count = (atWork.get(organizationId) ?? 0) + 1
      atWork.set(organizationId, count)
      most = Math.max(most, count)
      order.push(organizationId)
      await pause(20)
      await step(async () => ({ checkpoint: 1, progress: { total: 1, processed: 1, succeeded: 1, failed: 0 } }))
      atWork.set(organizationId, atWork.get(organizationId)! - 1)
      return { status: 'succeeded', result: null }
    },
  })
  for (let count = 0; count < 12; count++) await begin(callers.owner)
  const late = await begin(callers.other)
  const both = [start([kind]), start([kind])]
  await until(async () => {
    await Promise.all(both.map((runner) => runner.wake()))
    return order.length === 13
  })
  expect(most).toBe(2)
  expect(order.indexOf(callers.other.organizationId)).toBeLessThan(4)
  expect(await look(late, callers.other)).toMatchObject({ status: 'succeeded' })
})

test('two organizations with long work let a third have its turn, and then go on where they were', async () => {
  let isShort = false
  const kind = writing(40, { between: () => (isShort ? undefined : pause(20)) })
  const long = await Promise.all([callers.owner, callers.owner, callers.other, callers.other].map((one) => begin(one)))
  const runner = start([kind])
  void runner.wake()
  const working = async () =>
    (
      await db.database.as('portico_system', (tx) =>
        tx.rows<{ organizationId: string }>(sql`SELECT organization_id AS "organizationId" FROM portico.operation
        WHERE status = 'running' AND due_at > ${new Date(now).toISOString()}`),
      )
    ).map((row) => row.organizationId)
  await until(async () => (await working()).length === 4)
  const late = await begin(callers.third)
  void runner.wake()
  await pause(50)
  expect((await look(late, callers.third))!.status).toBe('queued')
  now += turnMs
  // Those at work say at each step that they are there, by the clock of now.
  await until(async () => (await working()).length === 4)
  void runner.wake()
  await until(async () => (await working()).includes(callers.third.organizationId))
  isShort = true
  await runner.wake()
  await until(async () => {
    await runner.wake()
    return (await look(late, callers.third))!.status === 'succeeded'
  })
  for (const [i, operationId] of long.entries()) {
    const caller = i < 2 ? callers.owner : callers.other
    expect(await look(operationId, caller)).toMatchObject({ status: 'succeeded', processed: 40 })
  }
  expect(await rowsWritten()).toBe(80)
})

test('four organizations with one long work each let a fifth have its turn, and lose nothing of a step', async () => {
  let isShort = false
  const undone: number[] = []
  const kind = writing(30, { between: () => (isShort ? undefined : pause(20)), before: (step) => undone.push(step) })
  const { organizations } = await createTenant(db.database, { organizations: { d: plan, e: plan } })
  const [fourth, fifth] = await Promise.all(
    [organizations.d, organizations.e].map(({ users }) => callerOf(db.database, users.owner)),
  )
  const busy = [callers.owner, callers.other, callers.third, fourth!]
  const long = await Promise.all(busy.map((one) => begin(one)))
  const runner = start([kind])
  void runner.wake()
  const startedAt = async (operationId: string, caller: Caller) => (await look(operationId, caller))!.startedAt
  await until(async () => (await Promise.all(long.map((id, i) => startedAt(id, busy[i]!)))).every((at) => at !== null))
  now += 1000
  const late = await begin(fifth!)
  now += turnMs
  await until(async () => {
    void runner.wake()
    return (await startedAt(late, fifth!)) !== null
  })
  expect((await Promise.all(long.map((id, i) => look(id, busy[i]!)))).every((one) => one!.completedAt === null)).toBe(
    true,
  )
  isShort = true
  await until(async () => {
    await runner.wake()
    return (await look(late, fifth!))!.status === 'succeeded'
  })
  for (const [i, id] of long.entries())
    expect(await look(id, busy[i]!)).toMatchObject({ status: 'succeeded', processed: 30 })
  // No step was begun twice.
  expect(undone).toHaveLength(5 * 30)
})

const execute = (text: string, ...values: unknown[]) =>
  asAdministrator(db.connection, (admin) => admin.query(text, values))

test.each([
  [
    'a token that was revoked',
    'UPDATE portico.credential SET revoked_at = now() WHERE key_id = $1',
    'initiator_inactive',
  ],
  [
    'a user who was deactivated',
    `UPDATE portico.tenant_user SET status = 'inactive' WHERE user_id = (SELECT user_id FROM portico.credential WHERE key_id = $1)`,
    'initiator_inactive',
  ],
  ['a scope that was taken away', `UPDATE portico.credential SET scopes = '{}' WHERE key_id = $1`, 'scope_missing'],
])('%s ends what it has begun', async (_, change, code) => {
  const operationId = await begin(callers.owner)
  const kind = writing(5, {
    async between(step) {
      if (step !== 2) return
      await execute(change, credentials.owner.keyId)
      await execute('SELECT portico.bump_epoch($1)', callers.owner.organizationId)
    },
  })
  await start([kind]).wake()
  expect(await look(operationId)).toMatchObject({ status: 'failed', processed: 2, error: { code } })
  expect(await rowsWritten()).toBe(2)
})

test('a delegated token that has run out does not end what it has begun', async () => {
  const operationId = await begin(callers.owner)
  const kind = writing(5, {
    async between(step) {
      if (step !== 2) return
      await execute(
        `UPDATE portico.credential SET expires_at = '2020-01-01' WHERE key_id = $1`,
        credentials.owner.keyId,
      )
      await execute('SELECT portico.bump_epoch($1)', callers.owner.organizationId)
    },
  })
  await start([kind]).wake()
  expect(await look(operationId)).toMatchObject({ status: 'succeeded', processed: 5 })
})

test('what is refused fails with its code, what breaks is tried again, and given up when it comes no further', async () => {
  let runs = 0
  const failing = (error: () => Error) =>
    workKind({
      type: 'test.write',
      async run() {
        runs++
        throw error()
      },
    })
  const refused = await begin(callers.owner)
  await start([failing(() => fail('object_not_found'))]).wake()
  expect(await look(refused)).toMatchObject({ status: 'failed', error: { code: 'object_not_found' } })
  expect(runs).toBe(1)
  const broken = await begin(callers.owner)
  const runner = start([failing(() => new Error('words of an inner fault'))])
  for (let count = 0; count < attemptsMax; count++) {
    await runner.wake()
    now += 2 * leaseMs + 1
  }
  expect(runs).toBe(1 + attemptsMax)
  const row = await look(broken)
  expect(row).toMatchObject({ status: 'failed', error: { code: 'internal_error' } })
  expect(JSON.stringify(row)).not.toContain('inner fault')
})

test('what ends its worker each time is given up', async () => {
  const operationId = await begin(callers.owner)
  let runs = 0
  for (let count = 1; count <= attemptsMax; count++) {
    const death = Promise.withResolvers<never>()
    const deadly = workKind({
      type: 'test.write',
      run() {
        runs++
        return death.promise
      },
    })
    const runner = start([deadly])
    void runner.wake()
    await until(() => runs === count)
    await runner.kill(() => death.reject(new Error('The process is gone.')))
    now += leaseMs + 1
  }
  await start([writing(1)]).wake()
  expect(await look(operationId)).toMatchObject({ status: 'failed', error: { code: 'operation_given_up' } })
})

test('files and operations are removed when their time is over', async () => {
  const operationId = await begin(callers.owner)
  const { organizationId } = callers.owner
  const upload = Buffer.alloc(2_500_000, 'abc')
  await db.database.inOrganization(organizationId, (tx) =>
    appendToFile(tx, { organizationId, operationId }, 'upload', upload),
  )
  expect(await fileOf(operationId, 'upload')).toBe(upload.toString())
  await start([writing(1)]).wake()
  now += uploadKeptMs
  await removeExpired(db.database, now)
  expect(await fileOf(operationId, 'upload')).toBe('')
  expect(await fileOf(operationId)).toBe('1\n')
  now += keptMs - uploadKeptMs
  expect(await look(operationId)).toBeUndefined()
  await removeExpired(db.database, now)
  const { rows } = await execute('SELECT FROM portico.operation_chunk UNION ALL SELECT FROM portico.operation')
  expect(rows).toEqual([])
})
