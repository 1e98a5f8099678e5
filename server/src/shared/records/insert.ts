import type { Caller } from '../../kernel/caller.ts'
import type { Statement, Tx } from '../../kernel/transaction.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import { dataTypeOf } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'
import { shadowColumn, shadowExpression } from '../modelling/physical-table.ts'
import { emitRecordEvents } from '../outbox/record-events.ts'
import type { FieldValues, Placed } from './input.ts'
import { columnsOf, type RecordRow } from './record.ts'
import { documentOf } from './search-document.ts'
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
  const participated = records.some((record) => record.participants.length > 0)
  const inserted = await translated(access, () => tx.rows<RecordRow>(insertion(object, participated, caller, rows)))
  emitRecordEvents(tx, caller, { eventKey: 'record.created', object, rows: inserted })
  const byId = new Map(inserted.map((row) => [row.record_id, row]))
  return records.map((record) => byId.get(record.recordId)!)
}

function inputRow(object: ObjectDefinition, record: NewRecord): Record<string, unknown> {
  const document = documentOf(object, (field) => record.values.get(field))
  const row: Record<string, unknown> = {
    record_id: record.recordId,
    owner_user_id: record.placement.ownerUserId,
    data_role_id: record.placement.dataRoleId,
    location_id: record.placement.locationId,
    external_key: record.externalKey,
    document: document?.content,
    title: document?.title,
  }
  if (record.participants.length > 0) row['participants'] = record.participants
  for (const [field, value] of record.values) row[field.column] = value
  return row
}

/**
 * Made once for each object: composing two kilobytes of SQL anew took 9 µs for each record. Without participants, as most
 * records are, the statement leaves them out: looking for them took PostgreSQL 22 of its 240 µs.
 */
const texts = { participated: new WeakMap<ObjectDefinition, string>(), alone: new WeakMap<ObjectDefinition, string>() }

function insertion(object: ObjectDefinition, participated: boolean, caller: Caller, rows: string): Statement {
  const made = participated ? texts.participated : texts.alone
  const text = made.get(object) ?? insertionText(object, participated)
  made.set(object, text)
  return { text, values: [caller.organizationId, rows, object.objectId, caller.actor.kind, caller.actor.id] }
}

function insertionText(object: ObjectDefinition, participated: boolean): string {
  const written = object.fields.filter((field) => !dataTypeOf(field).readOnly)
  const numbered = object.fields.filter((field) => field.dataType === 'autoNumber')
  const shadowed = written.filter((field) => shadowColumn(field) !== undefined)
  const typeOf = (field: Field) => dataTypeOf(field).column.replace(/ COLLATE .*/, '')
  const columns = [...written, ...numbered].map((field) => field.column).concat(shadowed.map((f) => shadowColumn(f)!))
  const sources = [
    ...written.map((field) => `i."${field.column}"`),
    ...numbered.map((_, index) => `(SELECT first FROM numbering${index}) + row_number() OVER () - 1`),
    ...shadowed.map((field) => shadowExpression(field, `i."${field.column}"`)),
  ]
  const now = 'now()::timestamptz(3)'
  return `
    WITH input AS (
      SELECT * FROM json_to_recordset($2::json) AS r (record_id uuid, owner_user_id uuid, data_role_id uuid,
        location_id uuid, external_key text, document text, title text, participants uuid[]
        ${written.map((field) => `, "${field.column}" ${typeOf(field)}`).join('')})),
    directory AS (
      INSERT INTO portico.record_directory (organization_id, record_id, object_id)
      SELECT $1::uuid, record_id, $3::uuid FROM input),
    history AS (
      INSERT INTO portico.record_history (organization_id, record_id, revision, changed_at, operation, actor_kind, actor_id)
      SELECT $1::uuid, record_id, 1, ${now}, 'created', $4::text, $5::text FROM input),
    document AS (
      INSERT INTO portico.search_document (organization_id, object_id, record_id, content, title,
        owner_user_id, data_role_id, location_id, participant_ids, updated_at, created_at)
      SELECT $1::uuid, $3::uuid, record_id, document, title, owner_user_id, data_role_id, location_id,
        coalesce(participants, '{}'), ${now}, ${now} FROM input WHERE document IS NOT NULL)
    ${participated ? participants : ''}
    ${numbered.map(numbering).join('')}
    INSERT INTO ${object.table} AS t (organization_id, record_id, owner_user_id, data_role_id, location_id, external_key,
      created_at, created_by_kind, created_by_id, updated_at, updated_by_kind, updated_by_id, revision
      ${columns.map((column) => `, "${column}"`).join('')})
    SELECT $1::uuid, i.record_id, i.owner_user_id, i.data_role_id, i.location_id, i.external_key,
      ${now}, $4::text, $5::text, ${now}, $4::text, $5::text, 1
      ${sources.map((source) => `, ${source}`).join('')}
    FROM input i
    RETURNING ${columnsOf(object.fields, 't')}`
}

const participants = `, participant AS (
      INSERT INTO portico.record_participant (organization_id, record_id, user_id)
      SELECT DISTINCT $1::uuid, record_id, unnest(participants) FROM input)`

/** Takes as many numbers as there are rows. */
function numbering(field: Field, index: number): string {
  return `, numbering${index} AS (
      INSERT INTO portico.auto_number AS a (organization_id, field_id, next_value)
      SELECT $1::uuid, '${field.fieldId}'::uuid, 1 + count(*) FROM input
      ON CONFLICT (organization_id, field_id) DO UPDATE SET next_value = a.next_value + excluded.next_value - 1
      RETURNING next_value - (SELECT count(*) FROM input) AS first)`
}
