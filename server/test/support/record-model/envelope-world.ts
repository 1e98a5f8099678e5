import fc from 'fast-check'
import { applyModel } from '../../../src/shared/modelling/apply.ts'
import type { ModelDocument } from '../../../src/shared/modelling/document.ts'
import { type RecordClient, type RecordService, startRecordService } from '../record-service.ts'
import { sample } from '../seed.ts'
import { createTenant, type TestCredential } from '../tenants.ts'
import type { Placement } from './envelope.ts'
import { allRights, type Rights, type RoleRights, rightsOf } from './rights.ts'
import type { ModelCaller, ModelRecord } from './world.ts'

/** An organisation of random people, credentials and role rights, with records of every placement. */
export interface EnvelopeWorld {
  readonly running: RecordService
  readonly askers: readonly EnvelopeAsker[]
  readonly records: ModelRecord[]
  /** Any owner or role or neither, with any location or none. */
  readonly placements: fc.Arbitrary<Placement>
  readonly participants: fc.Arbitrary<readonly string[]>
}

export interface EnvelopeAsker {
  readonly name: string
  readonly model: ModelCaller
  /** Undefined where no role of the caller reads the object. */
  readonly rights: Readonly<Record<ObjectKey, Rights | undefined>>
  readonly clients: Readonly<Record<ObjectKey, RecordClient>>
}

export type ObjectKey = 'deal' | 'company'
export const fieldKeys: Readonly<Record<ObjectKey, readonly string[]>> = {
  deal: ['name', 'amount', 'company'],
  company: ['name', 'country'],
}

const roleKeys = ['r1', 'r2', 'r3', 'r4'] as const
const locationKeys = ['l1', 'l2', 'l3'] as const

/** What somebody is given: roles and locations. Undefined: the whole organisation. */
interface Grant {
  readonly roles: readonly (typeof roleKeys)[number][]
  readonly locations: 'all' | readonly (typeof locationKeys)[number][]
}

const grants: fc.Arbitrary<Grant> = fc.record({
  roles: fc.subarray([...roleKeys]),
  locations: fc.oneof(fc.constant('all' as const), fc.subarray([...locationKeys])),
})

const coin = fc.boolean()
const roleRightsOn = (objectKey: ObjectKey): fc.Arbitrary<RoleRights> =>
  fc.record({
    read: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
    create: coin,
    update: coin,
    archive: coin,
    fields: fc.dictionary(fc.constantFrom(...fieldKeys[objectKey]), fc.record({ read: coin, write: coin }), {
      noNullPrototype: true,
    }),
  })

type RoleTable = Readonly<Record<(typeof roleKeys)[number], Readonly<Record<ObjectKey, RoleRights>>>>

const everything: RoleRights = { read: true, create: true, update: true, archive: true, fields: {} }
const roleTables: fc.Arbitrary<RoleTable> = fc.record({
  r1: fc.record({ deal: roleRightsOn('deal'), company: roleRightsOn('company') }),
  r2: fc.record({ deal: roleRightsOn('deal'), company: roleRightsOn('company') }),
  // One role may do everything with deals, so that there is something to see whatever chance decides; and one may do
  // everything but read them, which gives nothing.
  r3: fc.record({ deal: fc.constant(everything), company: roleRightsOn('company') }),
  r4: fc.record({ deal: fc.constant({ ...everything, read: false }), company: roleRightsOn('company') }),
})

export async function createEnvelopeWorld(): Promise<EnvelopeWorld> {
  const [people, machines] = [sample(grants, 10), sample(grants, 16).slice(10)]
  const [table] = sample(roleTables, 1)
  const running = await startRecordService()
  const { appId, organizations } = await createTenant(running.db.database, {
    dataRoles: roleKeys,
    organizations: {
      a: {
        locations: locationKeys,
        // The owner's roles narrow nothing.
        users: { owner: { owner: true, roles: ['r2'] }, ...numbered('u', people) },
        credentials: {
          live: {},
          ...numbered(
            'e',
            machines.map((envelope) => ({ envelope })),
          ),
        },
      },
    },
  })
  await applyModel(running.db.database, appId, modelWith(table!))
  const { dataRoles, locations, users, credentials } = organizations.a

  function askerOf(name: string, credential: TestCredential & { userId?: string }, grant?: Grant): EnvelopeAsker {
    const rights = (key: ObjectKey) =>
      grant
        ? rightsOf(
            grant.roles.map((role) => table![role][key]),
            fieldKeys[key],
          )
        : allRights(fieldKeys[key])
    return {
      name,
      model: {
        userId: credential.userId ?? null,
        unrestricted: grant === undefined,
        dataRoleIds: grant?.roles.map((key) => dataRoles[key]!) ?? [],
        locationIds: grant?.locations === 'all' ? 'all' : (grant?.locations.map((key) => locations[key]!) ?? []),
      },
      rights: { deal: rights('deal'), company: rights('company') },
      clients: {
        deal: running.records(appId, credential, 'deal'),
        company: running.records(appId, credential, 'company'),
      },
    }
  }
  const named = (all: object, name: string) => (all as Record<string, TestCredential>)[name]!
  const askers = [
    askerOf('owner', users.owner),
    askerOf('live', credentials.live),
    ...people.map((grant, index) => askerOf(`u${index}`, named(users, `u${index}`), grant)),
    ...machines.map((grant, index) => askerOf(`e${index}`, named(credentials, `e${index}`), grant)),
  ]
  const userIds = Object.values(users as Record<string, { userId: string }>).map(({ userId }) => userId)
  const placements = placementsOf(userIds, Object.values(dataRoles), Object.values(locations))
  const participants = fc.oneof(fc.constant([]), fc.subarray(userIds, { maxLength: 3 }))

  const drafts = fc.tuple(placements, participants)
  const records = await Promise.all(sample(drafts, 50).map((draft) => plantOne(askers[0]!, 'company', ...draft)))
  const companies = fc.constantFrom(null, ...records.map((record) => record.recordId))
  const deals = sample(fc.tuple(drafts, companies), 130)
  records.push(...(await Promise.all(deals.map(([draft, id]) => plantOne(askers[0]!, 'deal', ...draft, id)))))
  for (const record of records.filter((_, index) => index % 5 === 0)) {
    const { body } = await askers[0]!.clients[record.objectKey as ObjectKey].archive(record.recordId)
    record.archivedAt = body.archivedAt
  }
  return { running, askers, records, placements, participants }
}

function numbered<T>(prefix: string, list: readonly T[]): Record<string, T> {
  return Object.fromEntries(list.map((item, index) => [`${prefix}${index}`, item]))
}

function modelWith(table: RoleTable): ModelDocument {
  const text = (fieldKey: string) => ({ fieldKey, label: fieldKey, dataType: 'text' as const })
  const object = (objectKey: ObjectKey, fields: ModelDocument['objects'][number]['fields']) => ({
    objectKey,
    label: objectKey,
    pluralLabel: objectKey,
    nameField: 'name',
    fields,
  })
  return {
    objects: [
      object('company', [text('name'), text('country')]),
      object('deal', [
        text('name'),
        { fieldKey: 'amount', label: 'Amount', dataType: 'decimal' },
        { fieldKey: 'company', label: 'Company', dataType: 'reference', references: 'company' },
      ]),
    ],
    roles: Object.fromEntries(roleKeys.map((key) => [key, { label: key, objects: table[key] }])),
  }
}

function placementsOf(
  userIds: readonly string[],
  roleIds: readonly string[],
  locationIds: readonly string[],
): fc.Arbitrary<Placement> {
  const nobody = fc.constant({ ownerUserId: null, dataRoleId: null })
  const somebody = fc.constantFrom(...userIds).map((ownerUserId) => ({ ownerUserId, dataRoleId: null }))
  const role = fc.constantFrom(...roleIds).map((dataRoleId) => ({ ownerUserId: null, dataRoleId }))
  return fc
    .tuple(fc.oneof(nobody, somebody, role), fc.constantFrom(null, ...locationIds))
    .map(([target, locationId]) => ({ ...target, locationId }))
}

async function plantOne(
  { clients }: EnvelopeAsker,
  objectKey: ObjectKey,
  placement: Placement,
  participants: readonly string[],
  company: string | null = null,
): Promise<ModelRecord> {
  const values = objectKey === 'deal' ? { name: 'Deal', amount: '1.5', company } : { name: 'Company', country: 'DE' }
  const { status, body } = await clients[objectKey].create({ fields: values, ...placement, participants })
  if (status !== 201) throw new Error(JSON.stringify(body))
  const { recordId, createdAt, updatedAt, archivedAt, revision } = body
  const kept = { recordId, objectKey, createdAt, updatedAt, archivedAt, revision, participants }
  return { ...kept, ...placement, values: new Map<string, unknown>(Object.entries(values)) }
}
