import type { DataTypeKey } from '../../../src/shared/catalogue/data-types.ts'

/**
 * Records as a naive model keeps them: in memory, with the values that were sent. The files beside this one say what
 * filters, sorts and the envelope mean, in the plainest way that can be written; nothing of the service is used but the
 * names of its data types.
 */
export interface ModelField {
  readonly fieldKey: string
  readonly dataType: DataTypeKey
  readonly options?: readonly string[]
  /** The object key that a reference points to. */
  readonly references?: string
}

export interface ModelObject {
  readonly objectKey: string
  readonly fields: readonly ModelField[]
}

export interface ModelRecord {
  readonly recordId: string
  readonly objectKey: string
  /** What was sent last; absent and null are empty. */
  values: ReadonlyMap<string, unknown>
  ownerUserId: string | null
  dataRoleId: string | null
  locationId: string | null
  participants: readonly string[]
  createdAt: string
  updatedAt: string
  archivedAt: string | null
  revision: number
}

export interface ModelCaller {
  readonly userId: string | null
  readonly dataRoleIds: readonly string[]
  readonly locationIds: 'all' | readonly string[]
  /** The organisation's owner, or a live credential without an envelope. */
  readonly unrestricted: boolean
}

export interface World {
  readonly objects: ReadonlyMap<string, ModelObject>
  readonly records: ReadonlyMap<string, ModelRecord>
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** The names that every record has beside its fields, with the type that they compare as. */
const systemFields: readonly ModelField[] = [
  { fieldKey: 'recordId', dataType: 'reference' },
  { fieldKey: 'createdAt', dataType: 'dateTime' },
  { fieldKey: 'updatedAt', dataType: 'dateTime' },
  { fieldKey: 'archivedAt', dataType: 'dateTime' },
  { fieldKey: 'ownerUserId', dataType: 'user' },
  { fieldKey: 'dataRoleId', dataType: 'reference' },
  { fieldKey: 'locationId', dataType: 'reference' },
  { fieldKey: 'revision', dataType: 'integer' },
]

export function fieldsOf(object: ModelObject): readonly ModelField[] {
  return [...object.fields, ...systemFields]
}

/** The value of a field or of a system field; null where it is empty. */
export function held(record: ModelRecord, fieldKey: string): unknown {
  if (record.values.has(fieldKey)) return record.values.get(fieldKey) ?? null
  const isSystem = systemFields.some((field) => field.fieldKey === fieldKey)
  return isSystem ? record[fieldKey as 'recordId'] : null
}
