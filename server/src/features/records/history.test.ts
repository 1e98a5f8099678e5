import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Deals, newName, startDeals } from '../../../test/support/deals.ts'
import type { HistoryAnswer, RecordClient } from '../../../test/support/record-service.ts'

let deals: Deals
let owner: RecordClient
beforeAll(async () => {
  deals = await startDeals()
  owner = deals.owner
})
afterAll(() => deals?.close())

const items = async (recordId: string, client = owner) =>
  (await client.history(recordId, { pageSize: '200' })).body.items
const operations = (history: HistoryAnswer['items']) => history.map((item) => item.operation)

test('tells what happened to a record, newest first, and who did it', async () => {
  const { users, credentials, dataRoles, locations } = deals.organization
  const { body: created } = await deals.sales.create({ fields: { name: 'Story', amount: '1.50' } })
  const { recordId } = created
  await deals.live.update(recordId, { fields: { amount: '2', stage: 'open', notes: null } })
  await owner.update(recordId, { dataRoleId: dataRoles['sales'], locationId: locations['north'], externalKey: 'story' })
  await owner.update(recordId, { ownerUserId: users.sales.userId, participants: [users.clerk.userId] })
  await owner.archive(recordId)
  await owner.restore(recordId)
  await owner.update(recordId, { fields: { stage: null }, participants: [] })
  const history = await items(recordId)
  expect(history.map((item) => item.revision)).toEqual([7, 6, 5, 4, 3, 2, 1])
  expect(operations(history)).toEqual(['updated', 'restored', 'archived', 'updated', 'updated', 'updated', 'created'])
  const user = { kind: 'user', id: users.owner.userId }
  expect(history.map((item) => item.changedBy)).toEqual([
    ...[user, user, user, user, user],
    { kind: 'credential', id: credentials.live.keyId },
    { kind: 'user', id: users.sales.userId },
  ])
  const changes = history.map((item) => [...item.changes].sort((a, b) => (a.field < b.field ? -1 : 1)))
  expect(changes).toEqual([
    [
      { field: 'participants', before: [users.clerk.userId], after: [] },
      { field: 'stage', before: 'open', after: null },
    ],
    [],
    [],
    [
      { field: 'dataRoleId', before: dataRoles['sales'], after: null },
      { field: 'ownerUserId', before: null, after: users.sales.userId },
      { field: 'participants', before: [], after: [users.clerk.userId] },
    ],
    [
      { field: 'dataRoleId', before: null, after: dataRoles['sales'] },
      { field: 'externalKey', before: null, after: 'story' },
      { field: 'locationId', before: null, after: locations['north'] },
    ],
    [
      { field: 'amount', before: '1.50', after: '2' },
      { field: 'stage', before: null, after: 'open' },
    ],
    [],
  ])
  const { body: now } = await owner.get(recordId)
  expect(history[0]!.changedAt).toBe(now.updatedAt)
  expect(history.at(-1)!.changedAt).toBe(now.createdAt)
  expect(now.updatedBy).toEqual(user)
  expect(now.createdBy).toEqual({ kind: 'user', id: users.sales.userId })
})

test('pages through a long history without a gap or a double, also while it grows', async () => {
  const { body: created } = await owner.create({ fields: { name: newName() } })
  const { recordId } = created
  for (let n = 1; n <= 24; n++) await owner.update(recordId, { fields: { amount: `${n}` } })
  for (const pageSize of [1, 7, 24, 25, 200]) {
    const seen: number[] = []
    let cursor: string | null = null
    do {
      const { status, body } = await owner.history(recordId, { pageSize: `${pageSize}`, ...(cursor && { cursor }) })
      expect(status).toBe(200)
      seen.push(...body.items.map((item) => item.revision))
      if (body.nextCursor !== null) expect(body.items).toHaveLength(pageSize)
      cursor = body.nextCursor
      // What is written meanwhile comes before where the walk began.
      if (seen.length === 7) await owner.update(recordId, { fields: { notes: `At ${pageSize}` } })
    } while (cursor !== null)
    const latest = seen[0]!
    expect(seen).toEqual(Array.from({ length: latest }, (_, n) => latest - n))
  }
  // By default fifty, and no more than two hundred.
  expect((await owner.history(recordId)).body).toMatchObject({ nextCursor: null })
  expect((await owner.history(recordId, { pageSize: '201' })).body.code).toBe('page_size_exceeded')
  expect((await owner.history(recordId, { pageSize: '0' })).status).toBe(400)
})

test('a cursor belongs to the history of one record', async () => {
  const [first, second] = await Promise.all([1, 2].map(() => owner.create({ fields: { name: newName() } })))
  const { recordId } = first!.body
  await owner.update(recordId, { fields: { amount: '1' } })
  const cursor = (await owner.history(recordId, { pageSize: '1' })).body.nextCursor!
  expect((await owner.history(recordId.toUpperCase(), { cursor })).body.items).toHaveLength(1)
  expect((await owner.history(second!.body.recordId, { cursor })).body.code).toBe('cursor_mismatch')
  expect((await owner.history(recordId, { cursor: `${cursor}A` })).body.code).toBe('cursor_invalid')
  const search = (await owner.search({ pageSize: 1 })).body.nextCursor!
  expect((await owner.history(recordId, { cursor: search })).body.code).toBe('cursor_mismatch')
})

test('leaves out what the caller may not read, and answers nobody who does not see the record', async () => {
  const { users } = deals.organization
  const { body: created } = await owner.create({ fields: { name: newName() } })
  const { recordId } = created
  await owner.update(recordId, { fields: { secret: 'canary-1', amount: '1' } })
  await owner.update(recordId, { fields: { secret: 'canary-2' } })
  const shown = await items(recordId, deals.clerk)
  expect(JSON.stringify(shown)).not.toContain('canary')
  expect(JSON.stringify(shown)).not.toContain('secret')
  expect(shown.map((item) => item.changes.map((change) => change.field))).toEqual([[], ['amount'], []])
  await owner.update(recordId, { ownerUserId: users.owner.userId })
  for (const client of [deals.clerk, deals.stranger]) {
    const { status, body } = await client.history(recordId)
    expect([status, body.code]).toEqual([404, 'record_not_found'])
  }
})

test('restoring brings a record back as it was, and to every list', async () => {
  const fields = { name: newName(), code: 'Restored', amount: '12.50', stage: 'won', notes: 'Words' }
  const { body: before } = await owner.create({ fields, externalKey: 'restored' })
  const { recordId } = before
  const filter = { field: 'recordId', op: 'eq', value: recordId }
  const found = async () => [
    (await owner.count({ filter })).body.totalRecords,
    (await owner.count({ filter, search: 'words' })).body.totalRecords,
    (await owner.count({ filter, includeArchived: true })).body.totalRecords,
  ]
  expect(await found()).toEqual([1, 1, 1])
  await owner.archive(recordId)
  expect(await found()).toEqual([0, 0, 1])
  // It can still be read by who has its id.
  expect((await owner.get(recordId)).body).toMatchObject({ fields, archivedAt: expect.any(String), revision: 2 })
  const { body: after } = await owner.restore(recordId)
  expect(await found()).toEqual([1, 1, 1])
  const { revision, updatedAt, ...rest } = after
  expect(revision).toBe(3)
  expect({ ...before, ...rest }).toEqual(before)
  expect(updatedAt >= before.updatedAt).toBe(true)
})
