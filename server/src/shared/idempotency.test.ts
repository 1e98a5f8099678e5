import { setTimeout as pause } from 'node:timers/promises'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/support/database.ts'
import { openTestSecrets } from '../../test/support/secrets.ts'
import { callerOf, createTenant } from '../../test/support/tenants.ts'
import type { Caller } from '../kernel/caller.ts'
import { Failure } from '../kernel/errors.ts'
import type { Idempotency, StoredResponse } from '../kernel/exchange.ts'
import { uuidv7 } from '../kernel/ids.ts'
import { createIdempotency } from './idempotency.ts'

let db: TestDatabase
let alice: Caller
let bob: Caller
let carol: Caller
let other: Caller
let now = Date.now()
let idempotency: Idempotency

beforeAll(async () => {
  db = await createTestDatabase()
  idempotency = createIdempotency({ clock: { now: () => now }, secrets: await openTestSecrets(db.database) })
  const { organizations } = await createTenant(db.database, {
    organizations: {
      a: { users: { alice: {}, bob: {} }, credentials: { carol: {} } },
      b: { credentials: { live: {} } },
    },
  })
  alice = await callerOf(db.database, organizations.a.users.alice)
  bob = await callerOf(db.database, organizations.a.users.bob)
  carol = await callerOf(db.database, organizations.a.credentials.carol)
  other = await callerOf(db.database, organizations.b.credentials.live)
})
afterAll(() => db.drop())

let keys = 0
const newKey = () => `key-${++keys}`

/** What the pipeline does with a key, around a handler that makes a row. */
async function create(
  caller: Caller,
  key: string,
  body: string,
  change?: () => Promise<void>,
): Promise<StoredResponse> {
  return db.database.transact('write', caller, async (tx) => {
    const replay = await idempotency.claim(tx, caller, key, body)
    if (replay) return { ...replay, headers: { ...replay.headers, replayed: 'true' } }
    const recordId = uuidv7(Date.now())
    await tx.rows(sql`INSERT INTO portico.record_directory VALUES (${caller.organizationId}, ${recordId}, ${recordId})`)
    await change?.()
    const headers = { location: `/records/${recordId}`, ratelimit: '"write";r=1;t=2', 'ratelimit-policy': '"write"' }
    const response = { status: 201, headers, payload: `{"recordId":"${recordId}","text":"é\\u0000🐘"}` }
    await idempotency.keep(tx, caller, key, body, { ...response, confidential: false })
    return response
  })
}

const count = async (caller: Caller) => {
  const [row] = await db.database.transact('read', caller, (tx) =>
    tx.rows<{ total: number }>(sql`SELECT count(*) AS total FROM portico.record_directory`),
  )
  return row?.total ?? -1
}

test('the same request again gets the same answer, byte for byte, and changes nothing', async () => {
  const key = newKey()
  const first = await create(alice, key, 'body')
  const before = await count(alice)
  const second = await create(alice, key, 'body')
  expect(second.payload).toBe(first.payload)
  expect(second.status).toBe(201)
  expect(second.headers).toEqual({ location: first.headers['location'], replayed: 'true' })
  expect(await count(alice)).toBe(before)
})

test('the key with another request is refused', async () => {
  const key = newKey()
  await create(alice, key, 'body')
  await expect(create(alice, key, 'another body')).rejects.toMatchObject({ code: 'idempotency_key_reused' })
})

test('the same key of another user, another credential or another organisation is another key', async () => {
  const key = newKey()
  const answers = []
  for (const caller of [alice, bob, carol, other]) answers.push((await create(caller, key, caller.keyId)).payload)
  expect(new Set(answers).size).toBe(4)
})

test('while the first is under way the second is told so, and may retry', async () => {
  const key = newKey()
  const free = Promise.withResolvers<void>()
  const first = create(alice, key, 'body', () => free.promise)
  await pause(50)
  await expect(create(alice, key, 'body')).rejects.toMatchObject({
    code: 'idempotency_in_progress',
    retryAfterSeconds: 1,
  })
  // In progress is all that can be said: the other body is not compared with what may never be kept.
  await expect(create(alice, key, 'another body')).rejects.toMatchObject({ code: 'idempotency_in_progress' })
  free.resolve()
  const { payload } = await first
  expect((await create(alice, key, 'body')).payload).toBe(payload)
})

test('a request that failed leaves its key free, also for another body', async () => {
  const key = newKey()
  const failed = create(alice, key, 'body', () => Promise.reject(new Error('no')))
  await expect(failed).rejects.toThrow('no')
  expect((await create(alice, key, 'corrected body')).status).toBe(201)
})

test('after 24 hours the key is new', async () => {
  const key = newKey()
  const first = await create(alice, key, 'body')
  const start = now
  try {
    now = start + 24 * 3_600_000 - 1
    expect((await create(alice, key, 'body')).payload).toBe(first.payload)
    now = start + 24 * 3_600_000
    const second = await create(alice, key, 'another body')
    expect(second.payload).not.toBe(first.payload)
    expect((await create(alice, key, 'another body')).payload).toBe(second.payload)
  } finally {
    now = start
  }
})

test('of 16 racers with one key exactly one writes; the others replay its answer or are told to wait', async () => {
  const keysRaced = 120
  const before = await count(carol)
  const byKey = await Promise.all(
    Array.from({ length: keysRaced }, async () => {
      const key = newKey()
      return Promise.allSettled(Array.from({ length: 16 }, () => create(carol, key, 'body')))
    }),
  )
  let replayed = 0
  for (const outcomes of byKey) {
    const answers = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []))
    const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
    expect(answers.filter((answer) => answer.headers['replayed'] === undefined)).toHaveLength(1)
    expect(new Set(answers.map((answer) => answer.payload)).size).toBe(1)
    for (const refusal of refusals) {
      expect(refusal).toBeInstanceOf(Failure)
      expect(refusal).toMatchObject({ code: 'idempotency_in_progress' })
    }
    replayed += answers.length - 1
  }
  expect(await count(carol)).toBe(before + keysRaced)
  // Both ways out were taken, else the race was none.
  expect(replayed).toBeGreaterThan(0)
})
