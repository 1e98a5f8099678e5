import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mayPlace, type Placement, sees } from '../../../test/support/record-model/envelope.ts'
import {
  createEnvelopeWorld,
  type EnvelopeAsker,
  type EnvelopeWorld,
  fieldKeys,
  type ObjectKey,
} from '../../../test/support/record-model/envelope-world.ts'
import type { ModelRecord } from '../../../test/support/record-model/world.ts'
import { type Answer, searchAll } from '../../../test/support/record-service.ts'
import { patienceMs, runs, seed } from '../../../test/support/seed.ts'
import type { RecordView } from '../../shared/records/record.ts'

/**
 * The record envelope (data.md, rules 1 to 5) against its model: random users, credentials, roles and rights, records of
 * every placement, and random changes by random callers. Whatever is asked (search, count, get, history, participants,
 * expand, related, update, archive), every answer is about the same records.
 */
let world: EnvelopeWorld

beforeAll(async () => {
  world = await createEnvelopeWorld()
})
afterAll(() => world?.running.close())

const idsOf = (records: readonly { readonly recordId: string }[]) => records.map((record) => record.recordId).sort()
const objectKeys = Object.keys(fieldKeys) as ObjectKey[]

function visible(asker: EnvelopeAsker, objectKey: ObjectKey): ModelRecord[] {
  if (!asker.rights[objectKey]) return []
  return world.records.filter((record) => record.objectKey === objectKey && sees(asker.model, record))
}

/** The record behind a reference, where the caller may know of it. */
function relativeOf(asker: EnvelopeAsker, deal: ModelRecord): ModelRecord | undefined {
  return visible(asker, 'company').find((company) => company.recordId === deal.values.get('company'))
}

/** Every way to ask which records there are. */
async function compareLists(asker: EnvelopeAsker): Promise<void> {
  for (const objectKey of objectKeys) {
    const client = asker.clients[objectKey]
    for (const includeArchived of [false, true]) {
      const counted = await client.count({ includeArchived })
      if (!asker.rights[objectKey]) {
        const listed = await client.search({ includeArchived })
        expect([listed.body.code, counted.body.code]).toEqual(['object_not_found', 'object_not_found'])
        continue
      }
      const { records, total } = await searchAll(client, { includeArchived })
      const wanted = visible(asker, objectKey).filter((record) => includeArchived || record.archivedAt === null)
      expect([asker.name, idsOf(records)]).toEqual([asker.name, idsOf(wanted)])
      expect(total).toBe(wanted.length)
      expect(counted.body.totalRecords).toBe(wanted.length)
      for (const record of records) expectView(asker, record)
    }
  }
}

/** What the view tells, and what it must not. */
function expectView(asker: EnvelopeAsker, view: RecordView): void {
  const rights = asker.rights[view.objectKey as ObjectKey]!
  const record = world.records.find(({ recordId }) => recordId === view.recordId)!
  expect(Object.keys(view.fields).sort()).toEqual([...rights.readable].sort())
  for (const key of rights.readable) expect(view.fields[key]).toBe(record.values.get(key))
  expect(view.displayName).toBe(rights.readable.includes('name') ? record.values.get('name') : null)
  expect(view.access).toEqual({
    canUpdate: rights.update && record.archivedAt === null,
    canArchive: rights.archive && record.archivedAt === null,
  })
  const { ownerUserId, dataRoleId, locationId, archivedAt } = record
  expect(view).toMatchObject({ ownerUserId, dataRoleId, locationId, archivedAt })
}

async function compareRelatives(asker: EnvelopeAsker): Promise<void> {
  const { deal: rights, company: companyRights } = asker.rights
  if (!rights) return
  const deals = visible(asker, 'deal')
  const client = asker.clients.deal
  const expansion = { expand: ['company'], includeArchived: true }
  const filter = { related: 'company', some: { field: 'revision', op: 'gte', value: 1 } }
  if (!rights.readable.includes('company') || !companyRights) {
    const codes = [(await client.search(expansion)).body.code, (await client.search({ filter })).body.code]
    const unknown = !rights.readable.includes('company')
    expect(codes).toEqual(unknown ? ['unknown_field', 'unknown_field'] : ['validation_failed', 'filter_invalid'])
    return
  }
  const related = await searchAll(client, { filter })
  for (const record of (await searchAll(client, expansion)).records) {
    const relative = relativeOf(asker, deals.find(({ recordId }) => recordId === record.recordId)!)
    const shown = (record.expanded?.['company'] ?? null) as RecordView | null
    expect([asker.name, record.recordId, shown?.recordId]).toEqual([asker.name, record.recordId, relative?.recordId])
    if (shown) expectView(asker, shown)
  }
  const wanted = deals.filter((deal) => deal.archivedAt === null && relativeOf(asker, deal)?.archivedAt === null)
  expect([asker.name, idsOf(related.records)]).toEqual([asker.name, idsOf(wanted)])
}

/** One record asked for in every way, without changing it. */
async function compareRecord(asker: EnvelopeAsker, record: ModelRecord): Promise<void> {
  const objectKey = record.objectKey as ObjectKey
  const client = asker.clients[objectKey]
  const rights = asker.rights[objectKey]
  const reads = [
    await client.get(record.recordId),
    await client.history(record.recordId),
    await client.participants(record.recordId),
  ]
  const update = await client.update(record.recordId, { fields: {} })
  const archive = await client.archive(record.recordId, { query: { expectedRevision: '999999' } })
  const restore = await client.restore(record.recordId, { expectedRevision: 999_999 })
  const codes = [...reads, update, archive, restore].map(({ status, body }) => body.code ?? status)
  if (!rights) return expect(codes).toEqual(Array(6).fill('object_not_found'))
  if (!sees(asker.model, record)) return expect(codes).toEqual(Array(6).fill('record_not_found'))
  const guarded = rights.archive ? 'revision_conflict' : 'permission_denied'
  const updated = !rights.update ? 'permission_denied' : record.archivedAt === null ? 200 : 'record_archived'
  expect([asker.name, codes]).toEqual([asker.name, [200, 200, 200, updated, guarded, guarded]])
  expectView(asker, reads[0]!.body as RecordView)
  const { items } = reads[2]!.body as unknown as { items: { userId: string }[] }
  expect(items.map(({ userId }) => userId).sort()).toEqual([...record.participants].sort())
}

async function compareEverything(): Promise<void> {
  for (const asker of world.askers) {
    await compareLists(asker)
    await compareRelatives(asker)
  }
}

describe(`the record envelope (PORTICO_TEST_SEED=${seed})`, () => {
  test('every list, count and relative shows what the model shows', compareEverything, patienceMs)

  test(
    'every record answers in every way as the model says',
    async () => {
      const questions = fc.tuple(fc.constantFrom(...world.askers.keys()), fc.constantFrom(...world.records.keys()))
      await fc.assert(
        fc.asyncProperty(questions, async ([asker, record]) => {
          await compareRecord(world.askers[asker]!, world.records[record]!)
        }),
        runs(250),
      )
    },
    patienceMs,
  )

  test(
    'nobody gives away what it may not place, nor pulls it in, and the lists follow every change',
    async () => {
      await fc.assert(
        fc.asyncProperty(steps(), perform),
        // A step changes the world, so a failure cannot be shrunk.
        { ...runs(1200), endOnFailure: true },
      )
      await compareEverything()
    },
    patienceMs,
  )
})

const acts = { create, place, placeShared, share, archive, refer }

interface Step {
  readonly act: keyof typeof acts
  readonly asker: string
  readonly objectKey: ObjectKey
  readonly placement: Placement
  readonly participants: readonly string[]
  readonly archived: boolean
  /** Choose a record, and a company to refer to. */
  readonly first: number
  readonly second: number
}

/** As data, so that a counterexample can be read. */
function steps(): fc.Arbitrary<Step> {
  return fc.record({
    act: fc.constantFrom(...(Object.keys(acts) as (keyof typeof acts)[])),
    asker: fc.constantFrom(...world.askers.map((asker) => asker.name)),
    objectKey: fc.constantFrom(...objectKeys),
    placement: world.placements,
    participants: world.participants,
    archived: fc.boolean(),
    first: fc.nat(),
    second: fc.nat(),
  })
}

async function perform(step: Step): Promise<void> {
  await acts[step.act](world.askers.find((asker) => asker.name === step.asker)!, step)
}

function chosen(records: readonly ModelRecord[], choice: number): ModelRecord {
  return records[choice % records.length]!
}

function expectAnswer(answer: Answer<unknown>, wanted: number | string): void {
  expect(answer.body.code ?? answer.status).toBe(wanted)
}

async function create(asker: EnvelopeAsker, { objectKey, placement, participants }: Step): Promise<void> {
  const rights = asker.rights[objectKey]
  const answer = await asker.clients[objectKey].create({ fields: {}, ...placement, participants })
  if (!rights) return expectAnswer(answer, 'object_not_found')
  if (!rights.create || !mayPlace(asker.model, placement)) return expectAnswer(answer, 'permission_denied')
  expectAnswer(answer, 201)
  const { recordId, createdAt, updatedAt, archivedAt, revision } = answer.body
  const values = new Map(fieldKeys[objectKey].map((key) => [key, null]))
  const made = { recordId, objectKey, participants, createdAt, updatedAt, archivedAt, revision, values }
  world.records.push({ ...made, ...placement })
  expectView(asker, answer.body)
}

/** What every change of a live record has to pass first; undefined when it does. */
function refusal(asker: EnvelopeAsker, record: ModelRecord, right: 'update' | 'archive'): string | undefined {
  const rights = asker.rights[record.objectKey as ObjectKey]
  if (!rights) return 'object_not_found'
  if (!sees(asker.model, record)) return 'record_not_found'
  if (!rights[right]) return 'permission_denied'
  return right === 'update' && record.archivedAt !== null ? 'record_archived' : undefined
}

async function place(asker: EnvelopeAsker, { first, placement }: Step): Promise<void> {
  await move(asker, chosen(world.records, first), placement)
}

/** A record that the caller sees as a participant only, where there is one: to see it is not to dispose of it. */
async function placeShared(asker: EnvelopeAsker, { first, placement }: Step): Promise<void> {
  const shared = world.records.filter((record) => sees(asker.model, record) && !mayPlace(asker.model, record))
  if (shared.length > 0) await move(asker, chosen(shared, first), placement)
}

async function move(asker: EnvelopeAsker, record: ModelRecord, after: Placement): Promise<void> {
  const { ownerUserId, dataRoleId, locationId } = after
  // Naming an owner takes the record from its role and the reverse; to belong to nobody, both are cleared.
  const target = ownerUserId ? { ownerUserId } : dataRoleId ? { dataRoleId } : { ownerUserId, dataRoleId }
  const answer = await asker.clients[record.objectKey as ObjectKey].update(record.recordId, { ...target, locationId })
  const refused = refusal(asker, record, 'update')
  if (refused) return expectAnswer(answer, refused)
  const moved = (Object.keys(after) as (keyof Placement)[]).some((key) => after[key] !== record[key])
  const allowed = !moved || (mayPlace(asker.model, record) && mayPlace(asker.model, after))
  if (!allowed) return expectAnswer(answer, 'permission_denied')
  expectAnswer(answer, 200)
  expect(answer.body.revision).toBe(record.revision + (moved ? 1 : 0))
  Object.assign(record, after, { revision: answer.body.revision })
}

async function share(asker: EnvelopeAsker, { first, participants }: Step): Promise<void> {
  const record = chosen(world.records, first)
  const answer = await asker.clients[record.objectKey as ObjectKey].setParticipants(record.recordId, participants)
  const refused = refusal(asker, record, 'update')
  if (refused) return expectAnswer(answer, refused)
  if (!mayPlace(asker.model, record)) return expectAnswer(answer, 'permission_denied')
  expectAnswer(answer, 200)
  expect(answer.body.items.map(({ userId }) => userId).sort()).toEqual([...participants].sort())
  const revision = Number(/\d+/.exec(answer.headers['etag']!)![0])
  Object.assign(record, { participants, revision })
}

async function archive(asker: EnvelopeAsker, { first, archived }: Step): Promise<void> {
  const record = chosen(world.records, first)
  const client = asker.clients[record.objectKey as ObjectKey]
  const answer = archived ? await client.archive(record.recordId) : await client.restore(record.recordId)
  const refused = refusal(asker, record, 'archive')
  if (refused) return expectAnswer(answer, refused)
  expectAnswer(answer, 200)
  expect(answer.body.archivedAt !== null).toBe(archived)
  Object.assign(record, { archivedAt: answer.body.archivedAt, revision: answer.body.revision })
}

/** A reference to what one cannot see would tell that it exists. */
async function refer(asker: EnvelopeAsker, { first, second }: Step): Promise<void> {
  const deal = chosen(
    world.records.filter(({ objectKey }) => objectKey === 'deal'),
    first,
  )
  const company = chosen(
    world.records.filter(({ objectKey }) => objectKey === 'company'),
    second,
  )
  const answer = await asker.clients.deal.update(deal.recordId, { fields: { company: company.recordId } })
  const refused = refusal(asker, deal, 'update')
  if (refused) return expectAnswer(answer, refused)
  const rights = asker.rights.deal!
  if (!rights.readable.includes('company')) return expectAnswer(answer, 'unknown_field')
  if (!rights.writable.includes('company')) return expectAnswer(answer, 'permission_denied')
  if (!visible(asker, 'company').includes(company)) return expectAnswer(answer, 'reference_not_found')
  expectAnswer(answer, 200)
  deal.values = new Map([...deal.values, ['company', company.recordId]])
  deal.revision = answer.body.revision
}
