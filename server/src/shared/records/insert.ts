import sql, { join, raw, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import { dataTypeOf } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'
import { shadowColumn, shadowExpression } from '../modelling/physical-table.ts'
import { searchDocument } from '../search-text.ts'
import type { FieldValues, Placed } from './input.ts'
import { columnsOf, type RecordRow } from './record.ts'
import { translated } from './violations.ts'

export interface NewRecord {
  readonly recordId: string
  readonly values: FieldValues
  readonly placement: Placed
  readonly externalKey: string | null
  readonly participants: readonly string[]
}

/**
 * Writes new records with everything that belongs to them (directory, history, search document, participants, numbers) in
 * one statement: one round trip for one record, and the same statement for 200. The rows travel as one JSON parameter, so
 * the text does not depend on how many there are and stays prepared.
 */
export async function insertRecords(
  tx: Tx,
  caller: Caller,
  access: ObjectAccess,
  records: readonly NewRecord[],
): Promise<RecordRow[]> {
  const { object } = access
  const rows = JSON.stringify(records.map((record) => inputRow(object, record)))
  const inserted = await translated(access, () => tx.rows<RecordRow>(insertion(object, caller, rows)))
  const byId = new Map(inserted.map((row) => [row.record_id, row]))
  return records.map((record) => byId.get(record.recordId)!)
}

function inputRow(object: ObjectDefinition, record: NewRecord): Record<string, unknown> {
  const row: Record<string, unknown> = {
    record_id: record.recordId,
    owner_user_id: record.placement.ownerUserId,
    data_role_id: record.placement.dataRoleId,
    location_id: record.placement.locationId,
    external_key: record.externalKey,
    document: documentOf(object, (field) => record.values.get(field)),
  }
  if (record.participants.length > 0) row['participants'] = record.participants
  for (const [field, value] of record.values) row[field.column] = value
  return row
}

/** The search document of a record from the values of its searchable fields. */
export function documentOf(object: ObjectDefinition, readValue: (field: Field) => unknown): string | null {
  return searchDocument(
    object.fields.flatMap((field) => {
      const value = field.searchTag === null ? undefined : readValue(field)
      if (typeof value !== 'string') return []
      // People search for what they see: the label of an option, not its key.
      const text = field.options?.find((option) => option.value === value)?.label ?? value
      return [{ tag: field.searchTag!, text }]
    }),
  )
}

interface InsertionParts {
  readonly inputColumns: Sql
  readonly numberings: (organizationId: string) => Sql
  readonly targetColumns: Sql
  readonly sources: Sql
  readonly returning: Sql
}

/** The parts that depend on the object alone, made once. */
const parts = new WeakMap<ObjectDefinition, InsertionParts>()

function partsOf(object: ObjectDefinition): InsertionParts {
  const known = parts.get(object)
  if (known) return known
  const written = object.fields.filter((field) => !dataTypeOf(field).readOnly)
  const numbered = object.fields.filter((field) => field.dataType === 'autoNumber')
  const shadowed = written.filter((field) => shadowColumn(field) !== undefined)
  const typeOf = (field: Field) => dataTypeOf(field).column.replace(/ COLLATE .*/, '')
  const made: InsertionParts = {
    inputColumns: raw(written.map((field) => `, "${field.column}" ${typeOf(field)}`).join('')),
    numberings: (organizationId) =>
      join(
        numbered.map(
          (field, index) => sql`, ${raw(`numbering${index}`)} AS (
            INSERT INTO portico.auto_number AS a (organization_id, field_id, next_value)
            SELECT ${organizationId}::uuid, ${field.fieldId}::uuid, 1 + count(*) FROM input
            ON CONFLICT (organization_id, field_id) DO UPDATE SET next_value = a.next_value + excluded.next_value - 1
            RETURNING next_value - (SELECT count(*) FROM input) AS first)`,
        ),
        '',
        '',
        '',
      ),
    targetColumns: raw(
      [...written, ...numbered]
        .map((f) => `, "${f.column}"`)
        .concat(shadowed.map((f) => `, "${shadowColumn(f)}"`))
        .join(''),
    ),
    sources: raw(
      [
        ...written.map((field) => `, i."${field.column}"`),
        ...numbered.map((_, index) => `, (SELECT first FROM numbering${index}) + row_number() OVER () - 1`),
        ...shadowed.map((field) => `, ${shadowExpression(field, `i."${field.column}"`)}`),
      ].join(''),
    ),
    returning: raw(columnsOf(object.fields, 't')),
  }
  parts.set(object, made)
  return made
}

function insertion(object: ObjectDefinition, caller: Caller, rows: string): Sql {
  const { inputColumns, numberings, targetColumns, sources, returning } = partsOf(object)
  const { actor } = caller
  const organization = sql`${caller.organizationId}::uuid`
  const now = raw('now()::timestamptz(3)')
  return sql`
    WITH input AS (
      SELECT * FROM json_to_recordset(${rows}::json) AS r (record_id uuid, owner_user_id uuid, data_role_id uuid,
        location_id uuid, external_key text, document text, participants uuid[]${inputColumns})),
    directory AS (
      INSERT INTO portico.record_directory (organization_id, record_id, object_id)
      SELECT ${organization}, record_id, ${object.objectId}::uuid FROM input),
    history AS (
      INSERT INTO portico.record_history (organization_id, record_id, revision, changed_at, operation, actor_kind, actor_id)
      SELECT ${organization}, record_id, 1, ${now}, 'created', ${actor.kind}, ${actor.id} FROM input),
    document AS (
      INSERT INTO portico.search_document (organization_id, object_id, record_id, content)
      SELECT ${organization}, ${object.objectId}::uuid, record_id, document FROM input WHERE document IS NOT NULL),
    participant AS (
      INSERT INTO portico.record_participant (organization_id, record_id, user_id)
      SELECT DISTINCT ${organization}, record_id, unnest(participants) FROM input)${
        object.fields.some((field) => field.dataType === 'autoNumber') ? numberings(caller.organizationId) : raw('')
      }
    INSERT INTO ${raw(object.table)} AS t (organization_id, record_id, owner_user_id, data_role_id, location_id, external_key,
      created_at, created_by_kind, created_by_id, updated_at, updated_by_kind, updated_by_id, revision${targetColumns})
    SELECT ${organization}, i.record_id, i.owner_user_id, i.data_role_id, i.location_id, i.external_key,
      ${now}, ${actor.kind}, ${actor.id}, ${now}, ${actor.kind}, ${actor.id}, 1${sources}
    FROM input i
    RETURNING ${returning}`
}
