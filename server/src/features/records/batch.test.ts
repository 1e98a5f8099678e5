import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Deals, newName, startDeals } from '../../../test/support/deals.ts'
import type { BatchAnswer, RecordClient } from '../../../test/support/record-service.ts'

let deals: Deals
let owner: RecordClient
beforeAll(async () => {
  deals = await startDeals()
  owner = deals.owner
})
afterAll(() => deals?.close())

const create = (fields: object, more: object = {}) => ({ operation: 'create', fields, ...more })
const statuses = (body: BatchAnswer) => body.results.map((result) => result.status)
const codes = (body: BatchAnswer) => body.results.map((result) => result.error?.code)
const named = (name: string) => ({ field: 'name', op: 'eq', value: name })
const countOf = async (filter: object, includeArchived = false) =>
  (await owner.count({ filter, includeArchived })).body.totalRecords

test('items of every kind run in order, each with its own result', async () => {
  const { body: old } = await owner.create({ fields: { name: 'Old' } })
  const { body: keyed } = await owner.create({ fields: { name: 'Keyed' }, externalKey: 'mixed-keyed' })
  const { status, body } = await owner.batch([
    create({ name: 'New' }, { externalKey: 'mixed-new' }),
    { operation: 'update', recordId: old.recordId, fields: { amount: '1.50' }, expectedRevision: 1 },
    { operation: 'upsert', externalKey: 'mixed-new', fields: { amount: '2' } },
    { operation: 'upsert', externalKey: 'mixed-other', fields: { name: 'Other' } },
    { operation: 'update', externalKey: 'mixed-other', fields: { amount: '3' } },
    { operation: 'archive', externalKey: 'mixed-keyed' },
    { operation: 'upsert', externalKey: 'mixed-keyed', fields: { name: 'Keyed again' } },
    { operation: 'archive', recordId: old.recordId, expectedRevision: 2 },
    { operation: 'update', recordId: old.recordId, fields: { name: 'Too late' } },
  ])
  expect(status).toBe(200)
  expect(statuses(body)).toEqual([201, 200, 200, 201, 200, 200, 201, 200, 409])
  expect(body.results.map((result) => result.index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8])
  const [created, , second, other, changed, left, again] = body.results.map((result) => result.record!)
  expect(second).toMatchObject({ recordId: created!.recordId, revision: 2, fields: { name: 'New', amount: '2' } })
  expect(changed).toMatchObject({ recordId: other!.recordId, revision: 2, fields: { name: 'Other', amount: '3' } })
  expect(left).toMatchObject({ recordId: keyed.recordId, archivedAt: expect.any(String) })
  expect(again).toMatchObject({ revision: 1, externalKey: 'mixed-keyed', archivedAt: null })
  expect(again!.recordId).not.toBe(keyed.recordId)
  expect(body.results[8]!.error).toMatchObject({ code: 'record_archived', correlationId: expect.any(String) })
  expect(body.results[8]).not.toHaveProperty('record')
  expect((await owner.get(old.recordId)).body).toMatchObject({ revision: 3, fields: { name: 'Old', amount: '1.50' } })
})

test('one key twice in a batch: the second upsert updates what the first created', async () => {
  const upsert = (amount: string) => ({ operation: 'upsert', externalKey: 'twice', fields: { name: 'Twice', amount } })
  const { body } = await owner.batch([create({ name: 'Before' }), upsert('1'), upsert('2'), create({ name: 'After' })])
  expect(statuses(body)).toEqual([201, 201, 200, 201])
  expect(body.results[2]!.record).toMatchObject({ recordId: body.results[1]!.record!.recordId, revision: 2 })
  const { body: created } = await owner.batch([
    create({ name: 'A' }, { externalKey: 'both' }),
    create({ name: 'B' }, { externalKey: 'both' }),
  ])
  expect([statuses(created), codes(created)]).toEqual([
    [201, 409],
    [undefined, 'duplicate_value'],
  ])
})

/** What a group of creations can stumble over: before the database is asked, in it, and at the look of references. */
const bad: readonly (readonly [what: string, item: object, code: string, field: string | undefined])[] = [
  ['a value of the wrong type', create({ name: 'Bad', amount: 'much' }), 'field_value_invalid', 'fields.amount'],
  ['a missing required field', create({ amount: '1' }), 'required_field_missing', 'fields.name'],
  ['an unknown field', create({ name: 'Bad', nothing: 1 }), 'unknown_field', 'fields.nothing'],
  ['a name of JavaScript', create(JSON.parse('{"name":"Bad","__proto__":1}')), 'unknown_field', 'fields.__proto__'],
  ['a duplicate', create({ name: 'Bad', code: 'taken' }), 'duplicate_value', 'fields.code'],
  ['a duplicate key', create({ name: 'Bad' }, { externalKey: 'taken-key' }), 'duplicate_value', 'externalKey'],
  [
    'a dangling reference',
    create({ name: 'Bad', company: '0199a1b2-0000-7000-8000-0000000000aa' }),
    'reference_not_found',
    'fields.company',
  ],
  [
    'an unknown owner',
    create({ name: 'Bad' }, { ownerUserId: '0199a1b2-0000-7000-8000-0000000000aa' }),
    'reference_not_found',
    'ownerUserId',
  ],
  [
    'an unknown role',
    create({ name: 'Bad' }, { dataRoleId: '0199a1b2-0000-7000-8000-0000000000aa' }),
    'reference_not_found',
    'dataRoleId',
  ],
  [
    'an unknown location',
    create({ name: 'Bad' }, { locationId: '0199a1b2-0000-7000-8000-0000000000aa' }),
    'reference_not_found',
    'locationId',
  ],
  [
    'an unknown participant',
    create({ name: 'Bad' }, { participants: ['0199a1b2-0000-7000-8000-0000000000aa'] }),
    'reference_not_found',
    'participants',
  ],
  [
    'an id of its own',
    create({ name: 'Bad' }, { recordId: '0199a1b2-0000-7000-8000-0000000000aa' }),
    'unknown_field',
    'recordId',
  ],
  ['an update of nothing', { operation: 'update', fields: { name: 'Bad' } }, 'validation_failed', 'recordId'],
  [
    'an unknown record',
    { operation: 'update', recordId: '0199a1b2-0000-7000-8000-0000000000aa', fields: {} },
    'record_not_found',
    undefined,
  ],
  ['an unknown key', { operation: 'archive', externalKey: 'nobody' }, 'record_not_found', undefined],
  ['an upsert without a key', { operation: 'upsert', fields: { name: 'Bad' } }, 'validation_failed', 'externalKey'],
]

test.each(bad)('%s stops its own item, or the whole atomic batch', async (_what, item, code, field) => {
  if ((await countOf({ field: 'code', op: 'eq', value: 'taken' })) === 0) {
    await owner.create({ fields: { name: 'Holder', code: 'TAKEN' }, externalKey: 'taken-key' })
  }
  const name = newName()
  const items = [create({ name }), create({ name }), item, create({ name })]
  const { status, body } = await owner.batch(items)
  expect(status).toBe(200)
  expect(statuses(body).map((each) => each === 201)).toEqual([true, true, false, true])
  const { error } = body.results[2]!
  expect([error!.code, error!.details?.map((detail) => detail.field)]).toEqual([code, field && [field]])
  expect(await countOf(named(name))).toBe(3)

  const atomic = await owner.batch(items, true)
  expect([atomic.status, atomic.body.code]).toEqual([400, 'batch_failed'])
  expect(atomic.body.details).toMatchObject([{ field: field ? `items[2].${field}` : 'items[2]', code }])
  expect(await countOf(named(name))).toBe(3)
  expect(await countOf(named('Bad'), true)).toBe(0)
})

test('an atomic batch names every bad item, and leaves updates undone too', async () => {
  const { body: start } = await owner.create({ fields: { name: 'Start' } })
  const { status, body } = await owner.batch(
    [
      { operation: 'update', recordId: start.recordId, fields: { name: 'Changed' } },
      create({ name: '' }),
      create({ name: 'x', amount: 'y', stage: 'z' }),
      { operation: 'update', recordId: start.recordId, fields: { amount: '1' }, expectedRevision: 1 },
    ],
    true,
  )
  expect([status, body.code]).toEqual([400, 'batch_failed'])
  // An empty name is a name: a required text may be empty, but not null.
  expect(body.details!.map((detail) => detail.field)).toEqual([
    'items[2].fields.amount',
    'items[2].fields.stage',
    'items[3].expectedRevision',
  ])
  expect((await owner.get(start.recordId)).body).toMatchObject({ revision: 1, fields: { name: 'Start' } })
  expect((await owner.history(start.recordId)).body.items).toHaveLength(1)
})

test('two hundred creations with one bad one in the middle: it alone fails', async () => {
  const name = newName()
  const items = Array.from({ length: 200 }, (_, n) => create({ name, code: n === 117 ? `${name}-5` : `${name}-${n}` }))
  const { body } = await owner.batch(items)
  expect(
    body.results.filter((result) => result.status !== 201).map((result) => [result.index, result.error?.code]),
  ).toEqual([[117, 'duplicate_value']])
  expect(await countOf(named(name))).toBe(199)
  // Order is kept: the n-th result is the n-th item.
  for (const { index, record } of body.results) if (record) expect(record.fields['code']).toBe(`${name}-${index}`)
  expect((await owner.batch([...items, items[0]!])).body.code).toBe('validation_failed')
  expect((await owner.batch([])).body.code).toBe('validation_failed')
})

test('a batch obeys the rights of its caller, item by item', async () => {
  const { users, dataRoles } = deals.organization
  const { body: hidden } = await owner.create({
    fields: { name: 'Hidden' },
    ownerUserId: users.owner.userId,
    externalKey: 'hidden',
  })
  const { body: shared } = await owner.create({ fields: { name: 'Shared' } })
  const { body } = await deals.clerk.batch([
    create({ name: 'Mine' }, { ownerUserId: users.clerk.userId }),
    create({ name: 'Theirs' }, { ownerUserId: users.owner.userId }),
    create({ name: 'Roles' }, { dataRoleId: dataRoles['sales'] }),
    create({ name: 'Secret', secret: 'x' }),
    create({ name: 'Priced', amount: '1' }),
    { operation: 'update', recordId: hidden.recordId, fields: { name: 'Found' } },
    { operation: 'archive', externalKey: 'hidden' },
    { operation: 'upsert', externalKey: 'hidden', fields: { name: 'Found' } },
    { operation: 'update', recordId: shared.recordId, fields: { name: 'Ours' } },
  ])
  expect(codes(body)).toEqual([
    undefined,
    'permission_denied',
    'permission_denied',
    'unknown_field',
    'permission_denied',
    'record_not_found',
    'record_not_found',
    'duplicate_value',
    undefined,
  ])
  expect(JSON.stringify(body)).not.toContain('Hidden')
  const reading = await deals.reader.batch([
    create({ name: 'No' }),
    { operation: 'archive', recordId: shared.recordId },
  ])
  expect(codes(reading.body)).toEqual(['permission_denied', 'permission_denied'])
  const foreign = await deals.stranger.batch([
    { operation: 'update', recordId: shared.recordId, fields: { name: 'No' } },
  ])
  expect(codes(foreign.body)).toEqual(['record_not_found'])
})

test('a batch with an idempotency key runs once', async () => {
  const name = newName()
  const items = [create({ name }), create({ name, amount: 'bad' })]
  const first = await owner.batch(items, false, { idempotencyKey: 'batch-1' })
  const replay = await owner.batch(items, false, { idempotencyKey: 'batch-1' })
  expect(replay.headers['idempotency-replayed']).toBe('true')
  expect(replay.body).toEqual(first.body)
  expect(await countOf(named(name))).toBe(1)
  // What was refused was not kept: the corrected request may use the key again.
  expect((await owner.batch(items, true, { idempotencyKey: 'batch-2' })).status).toBe(400)
  expect((await owner.batch([items[0]!], true, { idempotencyKey: 'batch-2' })).status).toBe(200)
})

test('batches that touch the same records in opposite orders all finish', async () => {
  const made = await owner.batch(Array.from({ length: 20 }, () => create({ name: newName() })))
  const ids = made.body.results.map((result) => result.record!.recordId)
  const touch = (order: readonly string[], amount: string) =>
    owner.batch(order.map((recordId) => ({ operation: 'update', recordId, fields: { amount } })))
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) => touch(n % 2 ? ids : ids.toReversed(), `${round}.${n}`)),
    )
    for (const { status, body } of answers) expect([status, new Set(statuses(body))]).toEqual([200, new Set([200])])
  }
  const { body } = await owner.search({ filter: { field: 'recordId', op: 'in', value: ids } })
  for (const record of body.records) expect(record.revision).toBe(1 + 3 * 6)
})
