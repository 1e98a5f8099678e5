import type { Actor } from '../../kernel/caller.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import type { Field } from '../catalogue/field.ts'

/** A record as it leaves (contract 4), and the row that it is made of. */
export interface RecordView {
  readonly recordId: string
  readonly objectKey: string
  readonly displayName: string | null
  readonly fields: Record<string, unknown>
  readonly ownerUserId: string | null
  readonly dataRoleId: string | null
  readonly locationId: string | null
  readonly externalKey: string | null
  readonly createdAt: string
  readonly createdBy: Actor
  readonly updatedAt: string
  readonly updatedBy: Actor
  readonly archivedAt: string | null
  readonly revision: number
  readonly access: { readonly canUpdate: boolean; readonly canArchive: boolean }
  /** By the name in `expand`: the record behind a reference, or those at the other end of a relationship. */
  expanded?: Record<string, RecordView | RelatedViews | null>
}

export interface RelatedViews {
  readonly records: readonly RecordView[]
  readonly hasMore: boolean
}

export interface EnvelopeRow {
  readonly record_id: string
  readonly owner_user_id: string | null
  readonly data_role_id: string | null
  readonly location_id: string | null
  readonly external_key: string | null
  readonly created_at: string
  readonly created_by_kind: Actor['kind']
  readonly created_by_id: string
  readonly updated_at: string
  readonly updated_by_kind: Actor['kind']
  readonly updated_by_id: string
  readonly archived_at: string | null
  readonly revision: number
}

export type RecordRow = EnvelopeRow & Readonly<Record<string, unknown>>

const envelopeColumns = [
  'record_id',
  'owner_user_id',
  'data_role_id',
  'location_id',
  'external_key',
  'created_at',
  'created_by_kind',
  'created_by_id',
  'updated_at',
  'updated_by_kind',
  'updated_by_id',
  'archived_at',
  'revision',
] as const

/** The select list for records with these fields. */
export function columnsOf(fields: readonly Field[], alias: string): string {
  return columnNames(fields)
    .map((name) => `${alias}."${name}"`)
    .join(', ')
}

export function columnNames(fields: readonly Field[]): string[] {
  return [...envelopeColumns, ...fields.map((field) => field.column)]
}

/**
 * Makes the view of a row for a caller who reads `fields`. A field that the caller may not read is absent, from the
 * display name too.
 */
export function viewOf(row: RecordRow, access: ObjectAccess, fields: readonly Field[]): RecordView {
  const { object } = access
  const values: Record<string, unknown> = {}
  for (const field of fields) values[field.fieldKey] = row[field.column]
  const name = access.readableByKey.has(object.nameField.fieldKey) ? row[object.nameField.column] : null
  return {
    recordId: row.record_id,
    objectKey: object.objectKey,
    displayName: name === null || name === undefined ? null : String(name),
    fields: values,
    ownerUserId: row.owner_user_id,
    dataRoleId: row.data_role_id,
    locationId: row.location_id,
    externalKey: row.external_key,
    createdAt: row.created_at,
    createdBy: { kind: row.created_by_kind, id: row.created_by_id },
    updatedAt: row.updated_at,
    updatedBy: { kind: row.updated_by_kind, id: row.updated_by_id },
    archivedAt: row.archived_at,
    revision: row.revision,
    access: {
      canUpdate: access.update && row.archived_at === null,
      canArchive: access.archive && row.archived_at === null,
    },
  }
}

/** A row with its fields beside what every record has, as modules show it and exports write it. */
export function flatRow(row: RecordRow, fields: readonly Field[]) {
  return {
    recordId: row.record_id,
    ...Object.fromEntries(fields.map((field) => [field.fieldKey, row[field.column] ?? null])),
    ownerUserId: row.owner_user_id,
    dataRoleId: row.data_role_id,
    locationId: row.location_id,
    externalKey: row.external_key,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    archivedAt: row.archived_at,
    revision: row.revision,
  }
}
