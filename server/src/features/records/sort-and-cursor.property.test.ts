import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { plant } from '../../../test/support/record-model/dataset.ts'
import { sees } from '../../../test/support/record-model/envelope.ts'
import { compareBy, sorted } from '../../../test/support/record-model/order.ts'
import { type AskerName, type Population, populate } from '../../../test/support/record-model/population.ts'
import type { ModelRecord } from '../../../test/support/record-model/world.ts'
import type { RecordClient } from '../../../test/support/record-service.ts'
import { patienceMs, runs, sample, seed } from '../../../test/support/seed.ts'
import type { RecordView } from '../../shared/records/record.ts'

/**
 * Order and pages against the model: one to three keys of every sortable type, with ties and empty values. Numbered pages
 * and cursors must both give the model's order, without a gap and without a double, at every page size; and a walk by
 * cursor must not be disturbed by what others write meanwhile.
 */
let population: Population
let sortValues: readonly string[]

beforeAll(async () => {
  population = await populate({ things: 260, others: 20 })
  const { running, appId, owner } = population
  const { body } = await running.send<{ sortValues: string[] }>('developerObjectsGetSchema', owner, {
    params: { saasAppId: appId, objectKey: 'thing' },
  })
  sortValues = body.sortValues
})
afterAll(() => population?.running.close())

const idOf = (record: { readonly recordId: string }) => record.recordId

interface Walk {
  readonly ids: readonly string[]
  readonly records: readonly RecordView[]
}

/** Follows `nextCursor` to the end, and holds what each page says of itself against what it is. */
async function walkByCursor(client: RecordClient, question: object, pageSize: number): Promise<Walk> {
  const records: RecordView[] = []
  let cursor: string | null = null
  do {
    const answer = await client.search({ ...question, pageSize, ...(cursor !== null && { cursor }) })
    if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
    const { body } = answer
    expect(body.hasMore).toBe(body.nextCursor !== null)
    if (body.hasMore) expect(body.records).toHaveLength(pageSize)
    expect(body.pageSize).toBe(pageSize)
    expect(body.page).toBe(cursor === null ? 1 : null)
    records.push(...body.records)
    cursor = body.nextCursor
  } while (cursor !== null)
  return { records, ids: records.map(idOf) }
}

async function walkByPage(client: RecordClient, question: object, pageSize: number): Promise<Walk> {
  const records: RecordView[] = []
  for (let page = 1; ; page++) {
    const { body } = await client.search({ ...question, pageSize, page })
    records.push(...body.records)
    if (body.hasMore) continue
    const { body: beyond } = await client.search({ ...question, pageSize, page: page + 1 })
    expect(beyond).toMatchObject({ records: [], hasMore: false, nextCursor: null, page: page + 1 })
    return { records, ids: records.map(idOf) }
  }
}

function visibleTo(asker: AskerName, includeArchived: boolean): ModelRecord[] {
  const { world, askers } = population
  return [...world.records.values()].filter(
    (record) =>
      record.objectKey === 'thing' &&
      (includeArchived || record.archivedAt === null) &&
      sees(askers[asker].model, record),
  )
}

/** Chosen records keep a walk with pages of one short; all of them are walked with larger pages. */
function questions() {
  const some = fc.record({
    chosen: fc.subarray([...population.world.records.keys()], { maxLength: 200 }).map((ids) => ids.slice(0, 25)),
    pageSize: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 200 })),
  })
  const all = fc.record({ chosen: fc.constant(undefined), pageSize: fc.integer({ min: 40, max: 200 }) })
  return fc.tuple(
    fc.oneof({ weight: 3, arbitrary: some }, { weight: 1, arbitrary: all }),
    fc.record({
      asker: fc.constantFrom<AskerName>('owner', 'live', 'sales'),
      includeArchived: fc.boolean(),
      // A single sort value may come without its list.
      sort: fc.oneof(
        fc.array(fc.constantFrom(...sortValues), { minLength: 1, maxLength: 3 }),
        fc.constantFrom(...sortValues),
      ),
    }),
  )
}

describe(`sort and pages (PORTICO_TEST_SEED=${seed})`, () => {
  test(
    "both walks give the model's order",
    async () => {
      await fc.assert(
        fc.asyncProperty(questions(), async ([{ chosen, pageSize }, { asker, includeArchived, sort }]) => {
          const filter = chosen && { field: 'recordId', op: 'in', value: chosen }
          const wanted = visibleTo(asker, includeArchived).filter((record) => chosen?.includes(record.recordId) ?? true)
          const keys = typeof sort === 'string' ? [sort] : sort
          const { client } = population.askers[asker]
          const question = { sort, includeArchived, fields: [], ...(filter && { filter }) }
          const expected = sorted(wanted, keys, population.thing, population.thingDocument.nameField).map(idOf)
          expect((await walkByCursor(client, question, pageSize)).ids).toEqual(expected)
          expect((await walkByPage(client, question, pageSize)).ids).toEqual(expected)
        }),
        runs(150),
      )
    },
    patienceMs,
  )

  test('every sort value of the schema works alone, in both directions', async () => {
    const { askers, thing, thingDocument } = population
    const types = new Set(thing.fields.map((field) => field.dataType))
    expect(types.size).toBe(17)
    const records = visibleTo('owner', true)
    for (const sort of sortValues) {
      const question = { sort, includeArchived: true, fields: [] }
      const { ids } = await walkByCursor(askers.owner.client, question, 200)
      expect([sort, ids]).toEqual([sort, sorted(records, [sort], thing, thingDocument.nameField).map(idOf)])
    }
  }, 60_000)

  test('a page knows whether there is more, to the row', async () => {
    const { client } = population.askers.owner
    const ids = visibleTo('owner', true).map(idOf)
    for (const pageSize of [1, 2, 3, 50, 199, 200]) {
      for (const rows of [0, pageSize - 1, pageSize]) {
        const filter = { field: 'recordId', op: 'in', value: ids.slice(0, rows) }
        const { body } = await client.search({ filter, pageSize, includeArchived: true, includeTotal: true })
        expect(body).toMatchObject({ hasMore: false, nextCursor: null, totalRecords: rows, totalIsExact: true })
        expect(body.records).toHaveLength(rows)
      }
      // One more than fits, said without a list that is longer than a filter may hold.
      const filter = {
        or: [
          { field: 'recordId', op: 'in', value: ids.slice(0, pageSize) },
          { field: 'recordId', op: 'eq', value: ids[pageSize]! },
        ],
      }
      const question = { filter, pageSize, includeArchived: true }
      const first = await client.search(question)
      expect(first.body.records).toHaveLength(pageSize)
      expect(first.body).toMatchObject({ hasMore: true, nextCursor: expect.any(String) })
      const second = await client.search({ ...question, cursor: first.body.nextCursor })
      expect(second.body.records).toHaveLength(1)
      expect(second.body).toMatchObject({ hasMore: false, nextCursor: null })
    }
    for (const pageSize of [0, 201, -1, 1.5]) {
      const { status, body } = await client.search({ pageSize })
      expect([pageSize, status]).toEqual([pageSize, 400])
      if (pageSize > 200) expect(body.code).toBe('page_size_exceeded')
    }
  })

  test('a cursor continues its own query and no other, and only as it was issued', async () => {
    const { client } = population.askers.owner
    const question = { sort: 'created_asc', pageSize: 2, filter: { field: 'revision', op: 'gte', value: 1 } }
    const cursor = (await client.search(question)).body.nextCursor!
    const refused = async (body: object) => (await client.search({ ...question, cursor, ...body })).body.code
    expect(await refused({ pageSize: 7, includeTotal: true, fields: [] })).toBeUndefined()
    expect(await refused({ sort: 'created_desc' })).toBe('cursor_mismatch')
    expect(await refused({ sort: ['created_asc', 'updated_asc'] })).toBe('cursor_mismatch')
    expect(await refused({ filter: { field: 'revision', op: 'gte', value: 2 } })).toBe('cursor_mismatch')
    expect(await refused({ filter: undefined })).toBe('cursor_mismatch')
    expect(await refused({ search: 'a' })).toBe('cursor_mismatch')
    expect(await refused({ includeArchived: true })).toBe('cursor_mismatch')
    expect(await refused({ page: 2 })).toBe('page_and_cursor')
    const swapped = [...cursor].map((letter, index) => (index === 3 ? (letter === 'A' ? 'B' : 'A') : letter)).join('')
    for (const changed of [
      swapped,
      cursor.slice(0, -1),
      `${cursor}A`,
      cursor.slice(1),
      'x',
      'A'.repeat(100),
      '%%',
      'ä',
    ]) {
      expect([changed, await refused({ cursor: changed })]).toEqual([changed, 'cursor_invalid'])
    }
    const { running, appId, owner } = population
    const other = await running.records(appId, owner, 'other').search({ ...question, cursor })
    expect(other.body.code).toBe('cursor_mismatch')
  })

  test(
    'a walk by cursor is not disturbed by what others write',
    async () => {
      const { askers, thing, thingDocument } = population
      const { client } = askers.owner
      const keyOf = (dataType: string) => thing.fields.find((field) => field.dataType === dataType)!.fieldKey
      const [text, decimal, flag, note] = ['text', 'decimal', 'boolean', 'longText'].map(keyOf) as [string, ...string[]]
      const sorts = [
        [`${text}_asc`],
        [`${decimal}_desc`],
        [`${flag}_asc`, `${decimal}_asc`],
        [`${text}_desc`, 'created_asc'],
        ['created_desc'],
      ]
      for (const sort of sorts) {
        const records = await plant(client, thing, population.drafts(150))
        const part = (from: number, to: number) => records.slice(from, to)
        const [still, touched, moved, leaving] = [part(0, 60), part(60, 90), part(90, 120), part(120, 150)]
        const drafts = sample(fc.constant(population.drafts(60)), 1)[0]!
        const added: string[] = []
        const steps = [
          ...touched.map((record) => () => client.update(record.recordId, { fields: { [note!]: 'touched' } })),
          ...moved.map((record, index) => () => {
            const donor = records[(index * 7) % 90]!.values
            const fields = { [text]: donor.get(text) ?? null, [decimal!]: donor.get(decimal!) ?? null }
            return client.update(record.recordId, { fields })
          }),
          ...leaving.map((record) => () => client.archive(record.recordId)),
          ...drafts.map(({ values }) => async () => {
            const { body } = await client.create({ fields: Object.fromEntries(values) })
            added.push(body.recordId)
          }),
        ]
        const shuffled = sample(fc.shuffledSubarray(steps, { minLength: steps.length }), 1)[0]!
        let walking = true
        const write = async () => {
          while (walking) {
            const step = shuffled.pop()
            if (!step) return
            await step()
          }
        }
        const writers = [write(), write(), write()]
        const walk = await walkByCursor(client, { sort }, 5)
        walking = false
        await Promise.all(writers)

        const seen = new Map<string, number>()
        for (const id of walk.ids) seen.set(id, (seen.get(id) ?? 0) + 1)
        for (const record of [...still, ...touched]) expect(seen.get(record.recordId)).toBe(1)
        for (const id of [...leaving.map(idOf), ...added]) expect(seen.get(id) ?? 0).toBeLessThanOrEqual(1)
        // Each record comes after the one before it, by the values that they were read with.
        const asRead = walk.records.map(
          (record): ModelRecord => ({
            ...record,
            values: new Map(Object.entries(record.fields)),
            participants: [],
          }),
        )
        const compare = compareBy(sort, thing, thingDocument.nameField)
        for (const [index, record] of asRead.entries()) {
          if (index > 0) expect(compare(asRead[index - 1]!, record)).toBeLessThan(0)
        }
        // A test that finished writing before the walk began would prove nothing.
        expect(added.length).toBeGreaterThan(0)
        await Promise.all(shuffled.splice(0).map((step) => step()))
      }
    },
    patienceMs,
  )
})
