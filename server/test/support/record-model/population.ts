import fc from 'fast-check'
import { applyModel } from '../../../src/shared/modelling/apply.ts'
import type { ObjectDocument } from '../../../src/shared/modelling/document.ts'
import { type RecordClient, type RecordService, startRecordService } from '../record-service.ts'
import { sample } from '../seed.ts'
import { createTenant, type TestCredential } from '../tenants.ts'
import { archivePlanted, type Draft, modelOf, objectsOfEveryType, plant, replant, valueMaps } from './dataset.ts'
import type { ModelCaller, ModelObject, ModelRecord, World } from './world.ts'

/** A caller as the service knows it, and as the model does. */
export interface Asker {
  readonly model: ModelCaller
  readonly client: RecordClient
}

export type AskerName = 'owner' | 'live' | 'sales'

export interface Population {
  readonly running: RecordService
  readonly appId: string
  readonly owner: TestCredential
  readonly world: World
  readonly thing: ModelObject
  readonly other: ModelObject
  readonly thingDocument: ObjectDocument
  readonly askers: Readonly<Record<AskerName, Asker>>
  /** More records of `thing`, not yet created. */
  drafts(count: number): Draft[]
}

/**
 * A service with two objects of every data type, `thing` and `other`, and records of awkward values: a third without a
 * value here or there, some changed since, some archived, some that only some see, and the same values once more in
 * another organisation.
 */
export async function populate(counts: { readonly things: number; readonly others: number }): Promise<Population> {
  // Milliseconds, so that what is created now is not later than now.
  const now = Date.now()
  const [thingDocument] = sample(objectsOfEveryType('thing', 'other'), 1)
  const otherDocument = sample(objectsOfEveryType('other', 'thing'), 2)[1]
  const [thing, other] = [modelOf(thingDocument!), modelOf(otherDocument!)]
  const running = await startRecordService({ now })
  const { database } = running.db
  const tenant = await createTenant(database, {
    dataRoles: ['sales'],
    organizations: {
      a: {
        locations: ['north', 'south'],
        users: { owner: { owner: true }, sales: { roles: ['sales'], locations: ['north'] } },
        credentials: { live: {} },
      },
      b: { credentials: { live: {} } },
    },
  })
  const all = { read: true, create: true, update: true, archive: true }
  await applyModel(database, tenant.appId, {
    objects: [thingDocument, otherDocument],
    roles: { sales: { label: 'Sales', objects: { thing: all, other: all } } },
  })
  const { a, b } = tenant.organizations
  const clientOf = (credential: TestCredential, object = 'thing') => running.records(tenant.appId, credential, object)
  const [ownerId, salesId, role] = [a.users.owner.userId, a.users.sales.userId, a.dataRoles['sales']!]
  const userIds = [ownerId, salesId]
  const whole = { unrestricted: true, dataRoleIds: [], locationIds: [] }
  const narrow = { unrestricted: false, dataRoleIds: [role], locationIds: [a.locations['north']!] }
  const askers = {
    owner: { client: clientOf(a.users.owner), model: { userId: ownerId, ...whole } },
    live: { client: clientOf(a.credentials.live), model: { userId: null, ...whole } },
    sales: { client: clientOf(a.users.sales), model: { userId: salesId, ...narrow } },
  }

  const placements = fc.oneof(
    fc.record({ ownerUserId: fc.constantFrom(null, ...userIds), dataRoleId: fc.constant(null) }),
    fc.record({ ownerUserId: fc.constant(null), dataRoleId: fc.constant(role) }),
  )
  const locationIds = fc.constantFrom(null, ...Object.values(a.locations))
  const draftsOf = (document: ObjectDocument, relatives: readonly string[]): fc.Arbitrary<Draft> =>
    fc
      .tuple(valueMaps(document, { now, userIds, relatives }), placements, locationIds)
      .map(([values, placement, locationId]) => ({ ...placement, locationId, values, participants: [] }))

  const owner = askers.owner.client
  const ownerOfOthers = clientOf(a.users.owner, 'other')
  // The references of `other` lead to `thing`, of which there is none yet.
  const otherDrafts = sample(draftsOf(otherDocument!, [ownerId]), counts.others)
  const others = await plant(ownerOfOthers, other, without(otherDrafts, other, ['reference']))
  const relatives = others.map((record) => record.recordId)
  const things = await plant(owner, thing, sample(draftsOf(thingDocument!, relatives), counts.things))
  await unsettle(
    owner,
    things,
    sample(valueMaps(thingDocument!, { now, userIds, relatives }), Math.ceil(counts.things / 6)),
  )
  for (const record of others.slice(0, Math.ceil(counts.others / 8))) await archivePlanted(ownerOfOthers, record)
  const foreign = without(things.slice(0, 50), thing, ['user', 'reference', 'autoNumber'])
  await plant(
    clientOf(b.credentials.live),
    thing,
    foreign.map((draft) => ({ ...draft, ...nowhere })),
  )

  return {
    running,
    appId: tenant.appId,
    owner: a.users.owner,
    world: {
      now,
      objects: new Map([thing, other].map((object) => [object.objectKey, object])),
      records: new Map([...things, ...others].map((record) => [record.recordId, record])),
    },
    thing,
    other,
    thingDocument: thingDocument!,
    askers,
    drafts: (count) => sample(draftsOf(thingDocument!, relatives), count),
  }
}

const nowhere = { ownerUserId: null, dataRoleId: null, locationId: null, participants: [] }

/** Some change, a few of them twice; then some are archived, changed ones among them. */
async function unsettle(
  client: RecordClient,
  records: readonly ModelRecord[],
  changes: readonly ReadonlyMap<string, unknown>[],
): Promise<void> {
  const changed = Math.ceil(changes.length * 0.8)
  for (const [index, change] of changes.entries()) await replant(client, records[index % changed]!, change)
  for (const record of records.slice(Math.ceil(changed / 2), changed * 2)) await archivePlanted(client, record)
}

/** The same without the values of fields of these types, which mean something in one organisation only. */
function without<D extends Draft>(drafts: readonly D[], object: ModelObject, types: readonly string[]): D[] {
  const dropped = new Set(object.fields.flatMap((field) => (types.includes(field.dataType) ? field.fieldKey : [])))
  return drafts.map((draft) => ({
    ...draft,
    values: new Map([...draft.values].filter(([fieldKey]) => !dropped.has(fieldKey))),
  }))
}
