import { afterAll, beforeAll, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { type Deals, newName, startDeals } from '../../../test/support/deals.ts'
import type { RecordClient } from '../../../test/support/record-service.ts'

let deals: Deals
let owner: RecordClient
beforeAll(async () => {
  deals = await startDeals()
  owner = deals.owner
})
afterAll(() => deals?.close())

const newDeal = async (more: object = {}) => (await owner.create({ fields: { name: newName(), ...more } })).body

test('sixteen updates of one revision, twenty times: exactly one succeeds each time', async () => {
  const { recordId } = await newDeal()
  for (let revision = 1; revision <= 20; revision++) {
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, n) => {
        const body = { fields: { amount: `${revision}.${n + 1}` } }
        // Half of them guard by the body, half by the header.
        return n % 2
          ? owner.update(recordId, { ...body, expectedRevision: revision })
          : owner.update(recordId, body, { ifMatch: `"${revision}"` })
      }),
    )
    const won = answers.filter((answer) => answer.status === 200)
    expect(won).toHaveLength(1)
    for (const answer of answers.filter((each) => each.status !== 200)) {
      expect([answer.status, answer.body.code]).toEqual([409, 'revision_conflict'])
      expect(answer.body.details).toMatchObject([{ message: `The current revision is ${revision + 1}.` }])
      expect(answer.headers['etag']).toBe(`"${revision + 1}"`)
    }
    const { body } = await owner.get(recordId)
    expect(body).toEqual(won[0]!.body)
  }
  expect((await owner.history(recordId, { pageSize: '200' })).body.items).toHaveLength(21)
})

test('updates without a guard all happen, one after the other', async () => {
  const { recordId } = await newDeal({ amount: '0' })
  const answers = await Promise.all(
    Array.from({ length: 32 }, (_, n) => owner.update(recordId, { fields: { amount: `${n + 1}` } })),
  )
  expect(answers.map((answer) => answer.body.revision).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 32 }, (_, n) => n + 2),
  )
  // The history is one chain: each change begins where the one before it ended.
  const { items } = (await owner.history(recordId, { pageSize: '200' })).body
  const chain = items
    .toReversed()
    .slice(1)
    .map((item) => item.changes[0]!)
  for (const [index, change] of chain.entries()) expect(change.before).toBe(index === 0 ? '0' : chain[index - 1]!.after)
})

test('time does not run backwards: a later revision is not older', async () => {
  const [first, second] = [await newDeal(), await newDeal()]
  const table = `"${deals.schemaName}"."deal"`
  await asAdministrator(deals.running.db.connection, async (admin) => {
    // A batch waits for its first record while somebody else changes its second one.
    await admin.query('BEGIN')
    await admin.query(`SELECT FROM ${table} WHERE record_id = $1 FOR UPDATE`, [first.recordId])
    const batch = owner.batch(
      [first, second].map(({ recordId }) => ({ operation: 'update', recordId, fields: { amount: '1' } })),
    )
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect((await owner.update(second.recordId, { fields: { amount: '2' } })).status).toBe(200)
    await admin.query('COMMIT')
    expect((await batch).status).toBe(200)
  })
  const { items } = (await owner.history(second.recordId)).body
  expect(items.map((item) => item.revision)).toEqual([3, 2, 1])
  const times = items.map((item) => item.changedAt)
  expect(times).toEqual(times.toSorted().reverse())
  expect((await owner.get(second.recordId)).body.updatedAt).toBe(times[0])
})

test('a revision guards archiving and restoring too', async () => {
  const { recordId } = await newDeal()
  expect((await owner.archive(recordId, { query: { expectedRevision: '2' } })).body.code).toBe('revision_conflict')
  expect((await owner.archive(recordId, { ifMatch: '"7"' })).body.code).toBe('revision_conflict')
  const { body } = await owner.archive(recordId, { ifMatch: '"1"' })
  expect(body).toMatchObject({
    revision: 2,
    archivedAt: expect.any(String),
    access: { canUpdate: false, canArchive: false },
  })
  // Archiving what is archived changes nothing, and still holds the guard.
  expect((await owner.archive(recordId)).body.revision).toBe(2)
  expect((await owner.archive(recordId, { ifMatch: '"1"' })).body.code).toBe('revision_conflict')
  const update = await owner.update(recordId, { fields: { amount: '1' } })
  expect([update.status, update.body.code]).toEqual([409, 'record_archived'])
  expect((await owner.restore(recordId, { expectedRevision: 1 })).body.code).toBe('revision_conflict')
  expect((await owner.restore(recordId, undefined, { ifMatch: '"2"' })).body).toMatchObject({
    revision: 3,
    archivedAt: null,
  })
  expect((await owner.restore(recordId)).body.revision).toBe(3)
})

test('guards that are no revisions are refused, and a star guards nothing', async () => {
  const { recordId } = await newDeal()
  for (const ifMatch of ['1', 'W/"1"', '"1", "2"', '""', '"x"', '"-1"']) {
    const { status, body } = await owner.update(recordId, { fields: {} }, { ifMatch })
    expect([ifMatch, status, body.details?.[0]?.field]).toEqual([ifMatch, 400, 'If-Match'])
  }
  for (const expectedRevision of [0, -1, 1.5, '1', null]) {
    const { status } = await owner.update(recordId, { fields: {}, expectedRevision })
    expect([expectedRevision, status]).toEqual([expectedRevision, 400])
  }
  expect((await owner.update(recordId, { fields: { amount: '1' } }, { ifMatch: '*' })).body.revision).toBe(2)
  // Two guards that differ cannot both hold.
  const torn = await owner.update(recordId, { fields: {}, expectedRevision: 2 }, { ifMatch: '"1"' })
  expect(torn.body.code).toBe('revision_conflict')
})

test('archiving races with updates: none of them is lost, none is written after', async () => {
  for (let round = 0; round < 5; round++) {
    const { recordId } = await newDeal()
    const updates = Array.from({ length: 8 }, (_, n) => owner.update(recordId, { fields: { amount: `${n + 1}` } }))
    const [archived, ...answers] = await Promise.all([owner.archive(recordId), ...updates])
    const done = answers.filter((answer) => answer.status === 200).map((answer) => answer.body.revision)
    for (const revision of done) expect(revision).toBeLessThan(archived.body.revision)
    for (const answer of answers) if (answer.status !== 200) expect(answer.body.code).toBe('record_archived')
    expect(archived.body.revision).toBe(done.length + 2)
  }
})

test('creations and changes with one idempotency key happen once', async () => {
  const fields = { name: newName() }
  const first = await owner.create({ fields }, { idempotencyKey: 'create-1' })
  const again = await owner.create({ fields }, { idempotencyKey: 'create-1' })
  expect([again.status, again.headers['idempotency-replayed']]).toEqual([201, 'true'])
  expect(again.body).toEqual(first.body)
  expect([again.headers['etag'], again.headers['location']]).toEqual([first.headers['etag'], first.headers['location']])
  const { recordId } = first.body
  const send = (amount: string) => owner.update(recordId, { fields: { amount } }, { idempotencyKey: 'update-1' })
  await send('1')
  await owner.update(recordId, { fields: { amount: '2' } })
  expect((await send('1')).body).toMatchObject({ revision: 2, fields: { amount: '1' } })
  expect((await send('3')).body.code).toBe('idempotency_key_reused')
  // Keys belong to who sends them: another credential of the organization has its own.
  const other = await deals.live.create({ fields }, { idempotencyKey: 'create-1' })
  expect([other.status, other.headers['idempotency-replayed']]).toEqual([201, undefined])
  expect((await owner.get(recordId)).body).toMatchObject({ revision: 3, fields: { amount: '2' } })
  for (const idempotencyKey of ['', ' ', 'ä', 'x'.repeat(256), 'a b']) {
    expect((await owner.create({ fields }, { idempotencyKey })).body.code).toBe('idempotency_key_invalid')
  }
})
