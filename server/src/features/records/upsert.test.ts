import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Deals, newName, startDeals } from '../../../test/support/deals.ts'
import type { RecordClient } from '../../../test/support/record-service.ts'

let deals: Deals
let owner: RecordClient
beforeAll(async () => {
  deals = await startDeals()
  owner = deals.owner
})
afterAll(() => deals?.close())

let keys = 0
const newKey = () => `key-${++keys}`
const recordsWith = async (name: string) =>
  (await owner.search({ filter: { field: 'name', op: 'eq', value: name }, includeArchived: true })).body.records

test('creates with the key, then updates what has it', async () => {
  const key = 'CRM/42 ä%_'
  const first = await owner.upsert(key, { fields: { name: 'First', amount: '1' } })
  expect([first.status, first.headers['etag'], first.body.externalKey]).toEqual([201, '"1"', key])
  expect(first.headers['location']).toContain(first.body.recordId)
  const second = await owner.upsert(key, { fields: { amount: '2' } })
  expect([second.status, second.headers['etag'], second.headers['location']]).toEqual([200, '"2"', undefined])
  expect(second.body).toMatchObject({ recordId: first.body.recordId, fields: { name: 'First', amount: '2' } })
  // The same again changes nothing; keys are compared letter by letter.
  expect((await owner.upsert(key, { fields: { amount: '2' } })).body.revision).toBe(2)
  expect((await owner.upsert(key.toUpperCase(), { fields: { name: 'Other' } })).status).toBe(201)
  // A creation needs what every creation needs.
  const bare = await owner.upsert(newKey(), { fields: { amount: '2' } })
  expect([bare.status, bare.body.code]).toEqual([400, 'required_field_missing'])
})

test('guards: a revision can only be expected of a record that is there', async () => {
  const key = newKey()
  const fields = { name: newName() }
  expect((await owner.upsert(key, { fields, expectedRevision: 1 })).body.code).toBe('record_not_found')
  expect((await owner.upsert(key, { fields }, { ifMatch: '"1"' })).body.code).toBe('record_not_found')
  await owner.upsert(key, { fields })
  expect((await owner.upsert(key, { fields: { amount: '1' }, expectedRevision: 2 })).body.code).toBe(
    'revision_conflict',
  )
  expect((await owner.upsert(key, { fields: { amount: '1' } }, { ifMatch: '"1"' })).body.revision).toBe(2)
})

test('an archived record keeps its key only as long as nobody else takes it', async () => {
  const key = newKey()
  const { body: old } = await owner.upsert(key, { fields: { name: newName() } })
  await owner.archive(old.recordId)
  const { status, body: taken } = await owner.upsert(key, { fields: { name: newName() } })
  expect([status, taken.recordId === old.recordId]).toEqual([201, false])
  const back = await owner.restore(old.recordId)
  expect([back.status, back.body.code, back.body.details?.[0]?.field]).toEqual([409, 'duplicate_value', 'externalKey'])
  // Without the key it may come back… once the key is given away.
  await owner.update(taken.recordId, { externalKey: null })
  expect((await owner.restore(old.recordId)).body).toMatchObject({ archivedAt: null, externalKey: key })
})

test('a key that somebody else holds out of sight answers as any other taken value', async () => {
  const key = newKey()
  const { owner: boss, clerk } = deals.organization.users
  const { body: hidden } = await owner.create({
    fields: { name: 'Hidden' },
    ownerUserId: boss.userId,
    externalKey: key,
  })
  const taken = await deals.clerk.upsert(key, { fields: { name: 'Mine' }, ownerUserId: clerk.userId })
  const plainly = await deals.clerk.create({ fields: { name: 'Mine' }, externalKey: key })
  expect(taken.body).toMatchObject({ code: 'duplicate_value', details: [{ field: 'externalKey' }] })
  expect({ ...taken.body, correlationId: '' }).toEqual({ ...plainly.body, correlationId: '' })
  expect((await deals.reader.upsert(key, { fields: { name: 'No' } })).body.code).toBe('permission_denied')
  expect((await deals.reader.upsert(newKey(), { fields: { name: 'No' } })).body.code).toBe('permission_denied')
  // In another organization the key is free.
  expect((await deals.stranger.upsert(key, { fields: { name: 'Theirs' } })).status).toBe(201)
  expect((await owner.get(hidden.recordId)).body.revision).toBe(1)
})

test('sixteen who upsert one key at the same time: one record, and everybody is answered', async () => {
  for (let round = 0; round < 10; round++) {
    const [key, name] = [newKey(), newName()]
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, n) => owner.upsert(key, { fields: { name, amount: `${n + 1}` } })),
    )
    expect(answers.map((answer) => answer.status).sort()).toEqual([...Array(15).fill(200), 201])
    const records = await recordsWith(name)
    expect(records).toHaveLength(1)
    // Each of them wrote a value of its own, so each is a revision.
    expect(records[0]!.revision).toBe(16)
    expect(new Set(answers.map((answer) => answer.body.recordId))).toEqual(new Set([records[0]!.recordId]))
    expect(answers.map((answer) => answer.body.revision).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 16 }, (_, n) => n + 1),
    )
    // Nobody was shown another's value as its own.
    for (const [n, { body }] of answers.entries()) expect(body.fields['amount']).toBe(`${n + 1}`)
  }
})

test('batches of upserts with the same new keys in opposite orders: each key once', async () => {
  const names = Array.from({ length: 10 }, newName)
  const items = names.map((name) => ({ operation: 'upsert', externalKey: `batch-${name}`, fields: { name } }))
  const answers = await Promise.all(
    Array.from({ length: 4 }, (_, n) => owner.batch(n % 2 ? items : items.toReversed())),
  )
  for (const { status, body } of answers) {
    expect(status).toBe(200)
    for (const result of body.results) expect([200, 201]).toContain(result.status)
  }
  const made = answers.flatMap(({ body }) => body.results).filter((result) => result.status === 201)
  expect(made).toHaveLength(names.length)
  for (const name of names) expect(await recordsWith(name)).toHaveLength(1)
})

test('an upsert with an idempotency key happens once, whoever repeats it', async () => {
  const [key, name] = [newKey(), newName()]
  const send = () => owner.upsert(key, { fields: { name } }, { idempotencyKey: 'upsert-1' })
  const racing = await Promise.all(Array.from({ length: 16 }, send))
  const kept = racing.find((answer) => answer.status === 201)!
  for (const answer of racing) {
    if (answer.status === 201) expect(answer.body).toEqual(kept.body)
    else expect([answer.status, answer.body.code]).toEqual([409, 'idempotency_in_progress'])
  }
  expect(racing.filter((answer) => answer.status === 201 && !answer.headers['idempotency-replayed'])).toHaveLength(1)
  await owner.upsert(key, { fields: { amount: '5' } })
  // The answer of then, not of now.
  const replay = await send()
  expect([replay.status, replay.headers['idempotency-replayed']]).toEqual([201, 'true'])
  expect(replay.body).toEqual(kept.body)
  const other = await owner.upsert(key, { fields: { name: 'Other' } }, { idempotencyKey: 'upsert-1' })
  expect([other.status, other.body.code]).toEqual([409, 'idempotency_key_reused'])
  expect(await recordsWith(name)).toHaveLength(1)
})
