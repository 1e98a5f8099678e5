import type { Caller } from '../../kernel/caller.ts'
import type { ApplicationModel, ObjectDefinition } from '../catalogue/catalogue.ts'
import { isReadOnly } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'

/**
 * What a caller may do with each object and field of its application: everything, when unrestricted; otherwise the union
 * of what its DataRoles may do. A caller without any DataRole may do nothing.
 */
export interface ObjectAccess {
  readonly object: ObjectDefinition
  readonly create: boolean
  readonly update: boolean
  readonly archive: boolean
  /** In the order of the definition. */
  readonly readable: readonly Field[]
  readonly readableByKey: ReadonlyMap<string, Field>
  readonly writableKeys: ReadonlySet<string>
  readonly readsEveryField: boolean
}

export interface AccessProfile {
  readonly model: ApplicationModel
  /** Objects that the caller may read; others do not exist for it. */
  readonly objects: ReadonlyMap<string, ObjectAccess>
  readonly byObjectId: ReadonlyMap<string, ObjectAccess>
}

const profiles = new WeakMap<ApplicationModel, Map<string, AccessProfile>>()

/** Profiles depend on the model and the roles alone, so callers of one role share one. */
export function accessProfile(model: ApplicationModel, caller: Caller): AccessProfile {
  const ofModel = profiles.get(model) ?? new Map<string, AccessProfile>()
  profiles.set(model, ofModel)
  const key = caller.unrestricted ? '*' : caller.dataRoles.map((role) => role.key).join(',')
  const profile = ofModel.get(key) ?? buildProfile(model, caller)
  ofModel.set(key, profile)
  return profile
}

const narrowed = new WeakMap<ReadonlySet<string>, WeakMap<AccessProfile, AccessProfile>>()

/**
 * The profile as the scopes of a credential leave it: of a native object what is common to all records may be read with
 * `records.read`, its fields only with a scope of its module, and it is changed only with the module's write scope. A
 * Records search returns "common record metadata and permitted custom fields, not native module rows" (specification 2.8).
 */
export function withinScopes(profile: AccessProfile, { scopes }: Pick<Caller, 'scopes'>): AccessProfile {
  const ofScopes = narrowed.get(scopes) ?? new WeakMap<AccessProfile, AccessProfile>()
  narrowed.set(scopes, ofScopes)
  const known = ofScopes.get(profile)
  if (known) return known
  const accesses = [...profile.objects.values()].map((whole) => accessWithin(whole, scopes))
  const changed = accesses.some((access) => profile.objects.get(access.object.objectKey) !== access)
  const within = changed ? profileOf(profile.model, accesses) : profile
  ofScopes.set(profile, within)
  return within
}

function accessWithin(whole: ObjectAccess, scopes: ReadonlySet<string>): ObjectAccess {
  const { object, create, update, archive, readable, writableKeys } = whole
  if (object.kind !== 'native' || scopes.has(`modules.${object.objectKey}.write`)) return whole
  const fields = scopes.has(`modules.${object.objectKey}.read`) ? readable : []
  if (fields === readable && !create && !update && !archive && writableKeys.size === 0) return whole
  return access(object, { create: false, update: false, archive: false }, fields, [])
}

function profileOf(model: ApplicationModel, accesses: readonly ObjectAccess[]): AccessProfile {
  return {
    model,
    objects: new Map(accesses.map((access) => [access.object.objectKey, access])),
    byObjectId: new Map(accesses.map((access) => [access.object.objectId, access])),
  }
}

function buildProfile(model: ApplicationModel, caller: Caller): AccessProfile {
  const accesses = model.objects.flatMap((object) => {
    const access = caller.unrestricted ? everything(object) : union(model, caller, object)
    return access ? [access] : []
  })
  return profileOf(model, accesses)
}

function everything(object: ObjectDefinition): ObjectAccess {
  const writable = object.fields.filter((field) => !isReadOnly(field))
  return access(object, { create: true, update: true, archive: true }, object.fields, writable)
}

function union(model: ApplicationModel, caller: Caller, object: ObjectDefinition): ObjectAccess | undefined {
  const grants = caller.dataRoles.flatMap((role) => model.permissions.get(role.key)?.get(object.objectId) ?? [])
  const reading = grants.filter((grant) => grant.read)
  if (reading.length === 0) return undefined
  const readable = object.fields.filter((field) =>
    reading.some((grant) => grant.fields.get(field.fieldId)?.read ?? true),
  )
  const writable = readable.filter(
    (field) =>
      !isReadOnly(field) &&
      reading.some(
        (grant) =>
          (grant.create || grant.update) &&
          (grant.fields.get(field.fieldId)?.read ?? true) &&
          (grant.fields.get(field.fieldId)?.write ?? true),
      ),
  )
  return access(
    object,
    {
      create: reading.some((grant) => grant.create),
      update: reading.some((grant) => grant.update),
      archive: reading.some((grant) => grant.archive),
    },
    readable,
    writable,
  )
}

function access(
  object: ObjectDefinition,
  rights: Pick<ObjectAccess, 'create' | 'update' | 'archive'>,
  readable: readonly Field[],
  writable: readonly Field[],
): ObjectAccess {
  return {
    object,
    ...rights,
    readable,
    readableByKey: new Map(readable.map((field) => [field.fieldKey, field])),
    writableKeys: new Set(writable.map((field) => field.fieldKey)),
    readsEveryField: readable.length === object.fields.length,
  }
}
