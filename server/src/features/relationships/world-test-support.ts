import fc from 'fast-check'
import { sees } from '../../../test/support/record-model/envelope.ts'
import type { ModelCaller, ModelRecord } from '../../../test/support/record-model/world.ts'
import { type RecordClient, type RecordService, startRecordService } from '../../../test/support/record-service.ts'
import { sample } from '../../../test/support/seed.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import { type LinkClient, linkClient, model, relationships } from './testing.ts'

/**
 * People who see different parts of an organisation, records of every placement with random links between them, and a naive
 * model of it: lists in memory, and what is said of links in the plainest way that can be written.
 */
export type ObjectKey = 'company' | 'person' | 'meeting'
export type Key = keyof typeof relationships
export const objectKeys: readonly ObjectKey[] = ['company', 'person', 'meeting']
export const keys = (Object.keys(relationships) as Key[]).sort()
export const endsOf = (key: Key) => relationships[key] as { from: ObjectKey; to: ObjectKey; deleteRule: string }

interface Right {
  readonly read?: boolean
  readonly update?: boolean
  readonly archive?: boolean
}

export interface Asker extends LinkClient {
  readonly name: string
  readonly model: ModelCaller
  readonly rights: Readonly<Record<ObjectKey, Right>>
  readonly records: Readonly<Record<ObjectKey, RecordClient>>
}

export interface ModelLink {
  readonly relationshipId: string
  readonly key: Key
  readonly from: string
  readonly to: string
}

export interface State {
  readonly records: Map<string, ModelRecord>
  links: ModelLink[]
}

export interface World {
  readonly running: RecordService
  readonly askers: readonly Asker[]
  readonly state: State
}

const everything = { read: true, update: true, archive: true }
const rightsOfRoles: Readonly<Record<string, Readonly<Record<ObjectKey, Right>>>> = {
  owner: { company: everything, person: everything, meeting: everything },
  agent: { company: everything, person: everything, meeting: everything },
  // Reads everything and sees what it takes part in.
  guest: { company: { read: true }, person: { read: true, update: true }, meeting: { read: true } },
  clerk: { company: { read: true }, person: { read: true, update: true }, meeting: {} },
  outsider: { company: {}, person: {}, meeting: {} },
}

export async function createWorld(): Promise<World> {
  const running = await startRecordService()
  const guest = { company: { read: true }, person: { read: true, update: true }, meeting: { read: true } }
  const { appId, organizations } = await createTenant(running.db.database, {
    model: { ...model, roles: { ...model.roles, guest: { label: 'Guest', objects: guest } } },
    organizations: {
      a: {
        locations: ['north', 'south'],
        users: {
          owner: { owner: true },
          agent: { roles: ['agent'], locations: ['north'] },
          guest: { roles: ['guest'] },
          clerk: { roles: ['clerk'], locations: 'all' },
          outsider: {},
        },
      },
    },
  })
  const { users, dataRoles, locations } = organizations.a
  const places = { agent: [locations['north']!], clerk: 'all' as const }
  const askers = Object.entries(users).map(
    ([name, user]): Asker => ({
      name,
      model: {
        userId: user.userId,
        unrestricted: name === 'owner',
        dataRoleIds: dataRoles[name] === undefined ? [] : [dataRoles[name]],
        locationIds: places[name as 'agent'] ?? [],
      },
      rights: rightsOfRoles[name]!,
      ...linkClient(running, appId, user),
      records: Object.fromEntries(
        objectKeys.map((key) => [key, running.records(appId, user, key)]),
      ) as Asker['records'],
    }),
  )
  const state: State = { records: new Map(), links: [] }
  const userIds = Object.values(users).map(({ userId }) => userId)
  const placements = fc.oneof(
    fc.constant({}),
    fc.constantFrom(...userIds).map((ownerUserId) => ({ ownerUserId })),
    fc.record({
      dataRoleId: fc.constantFrom(dataRoles['agent']!, dataRoles['clerk']!),
      locationId: fc.constantFrom(null, ...Object.values(locations)),
    }),
  )
  const drafts = fc.tuple(
    fc.constantFrom(...objectKeys),
    placements,
    fc.subarray(userIds, { maxLength: 2 }),
    fc.integer({ min: 0, max: 9 }),
  )
  for (const [objectKey, placement, participants, size] of sample(drafts, 70)) {
    const fields = { name: `${objectKey} ${state.records.size}`, size }
    const { status, body } = await askers[0]!.records[objectKey].create({ fields, ...placement, participants })
    if (status !== 201) throw new Error(JSON.stringify(body))
    const { ownerUserId, dataRoleId, locationId, createdAt, updatedAt, archivedAt, revision, recordId } = body
    const envelope = { ownerUserId, dataRoleId, locationId, createdAt, updatedAt, archivedAt, revision, participants }
    state.records.set(recordId, { recordId, objectKey, ...envelope, values: new Map(Object.entries(fields)) })
  }
  return { running, askers, state }
}

/** Archived or not. */
export function knows(asker: Asker, record: ModelRecord): boolean {
  return asker.rights[record.objectKey as ObjectKey].read === true && sees(asker.model, record)
}

export function shows(asker: Asker, record: ModelRecord): boolean {
  return knows(asker, record) && record.archivedAt === null
}

/** The links that somebody sees, the latest first. */
export function linksOf(asker: Asker, { records, links }: State): ModelLink[] {
  return links
    .filter((link) => shows(asker, records.get(link.from)!) && shows(asker, records.get(link.to)!))
    .sort((a, b) => (a.relationshipId < b.relationshipId ? 1 : -1))
}

/** Can somebody know of the relationship? */
export function isKnown(asker: Asker, key: Key): boolean {
  const { from, to } = endsOf(key)
  return asker.rights[from].read === true && asker.rights[to].read === true
}

/** A refusal, or what becomes of the state; `200`: it is so already. */
export function linking(
  asker: Asker,
  { records, links }: State,
  key: Key,
  from: string,
  to: string,
): string | 200 | 201 {
  const ends = endsOf(key)
  if (!isKnown(asker, key)) return 'reference_not_found'
  const problemOf = (id: string, objectKey: ObjectKey) => {
    const record = records.get(id)!
    if (record.objectKey !== objectKey || !knows(asker, record)) return 'reference_not_found'
    return record.archivedAt === null ? undefined : 'record_archived'
  }
  const first = problemOf(from, ends.from)
  if (first) return first
  if (!asker.rights[ends.from].update) return 'permission_denied'
  if (from === to) return 'validation_failed'
  const second = problemOf(to, ends.to)
  if (second) return second
  const ofKey = links.filter((link) => link.key === key)
  if (ofKey.some((link) => link.from === from && link.to === to)) return 200
  const taken = ofKey.some((link) => link.to === to && records.get(link.from)!.archivedAt === null)
  return relationships[key].cardinality === 'one-to-many' && taken ? 'duplicate_value' : 201
}

/** What archiving a record does; throws the code of what refuses it. */
export function archived(asker: Asker, state: State, recordId: string): State {
  const { records, links } = state
  const now: State = { records: new Map(records), links: [...links] }
  archiveIn(now, asker, recordId)
  return now
}

function archiveIn(state: State, asker: Asker, recordId: string): void {
  const record = state.records.get(recordId)!
  if (!asker.rights[record.objectKey as ObjectKey].archive) throw 'permission_denied'
  if (record.archivedAt !== null) return
  state.records.set(recordId, { ...record, archivedAt: 'now' })
  const rules = (rule: string) =>
    keys.filter((key) => endsOf(key).from === record.objectKey && endsOf(key).deleteRule === rule)
  const isOf = (link: ModelLink, rule: string) => link.from === recordId && rules(rule).includes(link.key)
  const liveEnds = (key: Key) =>
    state.links
      .filter((link) => link.key === key && link.from === recordId)
      .map((link) => state.records.get(link.to)!)
      .filter((end) => end.archivedAt === null)
  state.links = state.links.filter((link) => !isOf(link, 'unlink'))
  if (rules('restrict').some((key) => liveEnds(key).length > 0)) throw 'relationship_restricts'
  for (const key of rules('archive')) {
    const ends = liveEnds(key)
    if (ends.some((end) => !knows(asker, end))) throw 'permission_denied'
    for (const end of ends.sort((a, b) => (a.recordId < b.recordId ? -1 : 1))) archiveIn(state, asker, end.recordId)
  }
}
