import { isDeepStrictEqual } from 'node:util'
import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import { dataTypeOf } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'
import { shadowColumn, shadowExpression } from '../modelling/physical-table.ts'
import { emitRecordEvents } from '../outbox/record-events.ts'
import type { FieldValues, Placed } from './input.ts'
import { columnsOf, type RecordRow } from './record.ts'
import { documentOf, isInDocument } from './search-document.ts'
import { translated } from './violations.ts'

/**
 * Changes to a record that the caller has locked: its values, its placement, its archiving. Each writes the row, its
 * history and its search document in one statement, and raises the revision by one.
 */
export interface Change {
  readonly operation: 'updated' | 'archived' | 'restored'
  readonly values: FieldValues
  readonly placement: Placed
  readonly externalKey: string | null
  /** Undefined leaves them as they are. */
  readonly participants?: { readonly before: readonly string[]; readonly after: readonly string[] }
}

type Differences = Record<string, [before: unknown, after: unknown]>

/** Returns the row as it is afterwards; the row as it was when the change changes nothing. */
export async function changeRecord(
  tx: Tx,
  caller: Caller,
  access: ObjectAccess,
  before: RecordRow,
  change: Change,
): Promise<RecordRow> {
  const differences = differencesOf(before, change)
  if (change.operation === 'updated' && Object.keys(differences).length === 0) return before
  const changed = [...change.values].filter(([field]) => Object.hasOwn(differences, field.fieldKey))
  const [row] = await translated(access, () =>
    tx.rows<RecordRow>(statement(caller, access.object, before, change, changed, differences)),
  )
  const event = { eventKey: `record.${change.operation}`, object: access.object, rows: [row!] } as const
  emitRecordEvents(tx, caller, { ...event, changedFields: Object.keys(differences) })
  return row!
}

function differencesOf(before: RecordRow, change: Change): Differences {
  const differences: Differences = {}
  const note = (key: string, from: unknown, to: unknown) => {
    if (!same(from, to)) differences[key] = [from ?? null, to ?? null]
  }
  for (const [field, value] of change.values) note(field.fieldKey, before[field.column], wireValue(field, value))
  note('ownerUserId', before.owner_user_id, change.placement.ownerUserId)
  note('dataRoleId', before.data_role_id, change.placement.dataRoleId)
  note('locationId', before.location_id, change.placement.locationId)
  note('externalKey', before.external_key, change.externalKey)
  if (change.participants) note('participants', change.participants.before, change.participants.after)
  return differences
}

/** A value read from a client in the form that the database returns it in. */
export function wireValue(field: Field, value: unknown): unknown {
  // JSON has no -0 to return.
  if (field.dataType === 'json') return JSON.parse(JSON.stringify(value)) as unknown
  if (field.dataType !== 'integer' || value === null) return value
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

/** Are these one value, on the wire? */
export function same(a: unknown, b: unknown): boolean {
  if (a === b || (a ?? null) === (b ?? null)) return true
  // The database keeps JSON without the order of its names.
  return typeof a === 'object' && typeof b === 'object' && isDeepStrictEqual(a, b)
}

function statement(
  caller: Caller,
  object: ObjectDefinition,
  before: RecordRow,
  change: Change,
  changed: readonly (readonly [Field, unknown])[],
  differences: Differences,
): Sql {
  const { actor } = caller
  const organization = sql`${caller.organizationId}::uuid`
  const recordId = sql`${before.record_id}::uuid`
  // Not now(), which is when the transaction began: it may have waited for the record while another one changed it.
  const now = sql`greatest(${before.updated_at}::timestamptz, statement_timestamp())::timestamptz(3)`
  const archived = change.operation === 'archived' ? now : raw('NULL')
  const assignments = changed.map(([field, value]) => assignment(field, value))
  const envelope = sql`owner_user_id = ${change.placement.ownerUserId}::uuid, data_role_id = ${change.placement.dataRoleId}::uuid,
    location_id = ${change.placement.locationId}::uuid, external_key = ${change.externalKey}`
  return sql`
    WITH history AS (
      INSERT INTO portico.record_history
        (organization_id, record_id, revision, changed_at, operation, actor_kind, actor_id, changes)
      VALUES (${organization}, ${recordId}, ${before.revision + 1}, ${now}, ${change.operation},
        ${actor.kind}, ${actor.id}, ${change.operation === 'updated' ? JSON.stringify(differences) : null}::jsonb))
    ${documentChange(caller, object, before, change, differences, now)}${participantChange(caller, before, change)}
    UPDATE ${raw(object.table)} AS t SET ${envelope}${assignments.length > 0 ? sql`, ${join(assignments)}` : empty},
      archived_at = ${archived}, revision = revision + 1,
      updated_at = ${now}, updated_by_kind = ${actor.kind}, updated_by_id = ${actor.id}
    WHERE t.organization_id = ${organization} AND t.record_id = ${recordId}
    RETURNING ${raw(columnsOf(object.fields, 't'))}`
}

function assignment(field: Field, value: unknown): Sql {
  const cast = raw(dataTypeOf(field).column.replace(/ COLLATE .*/, ''))
  const stored = field.dataType === 'json' && value !== null ? JSON.stringify(value) : value
  const shadow = shadowColumn(field)
  if (!shadow) return sql`${raw(`"${field.column}"`)} = ${stored}::${cast}`
  const [head, tail] = shadowExpression(field, '\0').split('\0') as [string, string]
  return sql`${raw(`"${field.column}"`)} = ${stored}::${cast}, ${raw(`"${shadow}" = ${head}`)}${stored}::${cast}${raw(tail)}`
}

/**
 * The document follows the searchable fields and, in every change, who may see the record and when it changed; an archived
 * record has none.
 */
function documentChange(
  caller: Caller,
  object: ObjectDefinition,
  before: RecordRow,
  change: Change,
  differences: Differences,
  now: Sql,
): Sql {
  const key = sql`organization_id = ${caller.organizationId}::uuid AND record_id = ${before.record_id}::uuid`
  const gone = sql`, document AS (DELETE FROM portico.search_document WHERE ${key})`
  if (change.operation === 'archived') return gone
  const { ownerUserId, dataRoleId, locationId } = change.placement
  const envelope = sql`owner_user_id = ${ownerUserId}::uuid, data_role_id = ${dataRoleId}::uuid,
    location_id = ${locationId}::uuid, updated_at = ${now}`
  const participants = change.participants && sql`${change.participants.after as string[]}::uuid[]`
  const newParticipants = participants ? sql`, participant_ids = ${participants}` : empty
  const touched = object.fields.some(
    (field) => Object.hasOwn(differences, field.fieldKey) && isInDocument(object, field),
  )
  if (change.operation === 'updated' && !touched) {
    return sql`, document AS (UPDATE portico.search_document SET ${envelope}${newParticipants} WHERE ${key})`
  }
  const document = documentOf(object, (field) =>
    change.values.has(field) ? change.values.get(field) : before[field.column],
  )
  if (document === null) return gone
  const { content, title } = document
  const present = sql`ARRAY(SELECT p.user_id FROM portico.record_participant p WHERE ${key})`
  // Not `excluded.content`: that would read the column, which nobody but the functions of search may (migration 0002).
  return sql`, document AS (
    INSERT INTO portico.search_document (organization_id, object_id, record_id, content, title,
      owner_user_id, data_role_id, location_id, participant_ids, updated_at, created_at)
    VALUES (${caller.organizationId}::uuid, ${object.objectId}::uuid, ${before.record_id}::uuid, ${content}, ${title},
      ${ownerUserId}::uuid, ${dataRoleId}::uuid, ${locationId}::uuid, ${participants ?? present}, ${now},
      ${before.created_at}::timestamptz)
    ON CONFLICT (organization_id, record_id) DO UPDATE SET content = ${content}, title = ${title}, ${envelope}${newParticipants})`
}

function participantChange(caller: Caller, before: RecordRow, { participants }: Change): Sql {
  if (!participants) return empty
  const gone = participants.before.filter((userId) => !participants.after.includes(userId))
  const come = participants.after.filter((userId) => !participants.before.includes(userId))
  const organization = sql`${caller.organizationId}::uuid`
  return sql`, gone AS (
      DELETE FROM portico.record_participant
      WHERE organization_id = ${organization} AND record_id = ${before.record_id}::uuid AND user_id = ANY (${gone}::uuid[])),
    come AS (
      INSERT INTO portico.record_participant (organization_id, record_id, user_id)
      SELECT ${organization}, ${before.record_id}::uuid, unnest(${come}::uuid[]))`
}
