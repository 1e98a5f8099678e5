import type { Caller } from '../../kernel/caller.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import type { RecordRow } from '../records/record.ts'
import type { RecordScope } from '../records/scope.ts'
import type { LinkRow } from '../relationships/link-store.ts'
import { noteEmitted } from './emitted.ts'
import { eventVersion } from './event-types.ts'

/** What happens to records and to links between them, as events of the outbox. */
export interface RecordEvents {
  readonly eventKey: 'record.created' | 'record.updated' | 'record.archived' | 'record.restored'
  readonly object: ObjectDefinition
  /** The records after the change, with every field. */
  readonly rows: readonly RecordRow[]
  /** Of updates: the keys of what changed. */
  readonly changedFields?: readonly string[]
}

/**
 * Writes an event for each record, in the transaction of the change. It is not waited for: the statement leaves in one write
 * with whatever follows, COMMIT at last, which fails when it did.
 */
export function emitRecordEvents(
  tx: Tx,
  caller: Caller,
  { eventKey, object, rows, changedFields }: RecordEvents,
): void {
  const events = rows.map((row) => ({
    event_id: uuidv7(Date.parse(row.updated_at)),
    occurred_at: row.updated_at,
    subject_id: row.record_id,
    object_id: object.objectId,
    owner_user_id: row.owner_user_id,
    data_role_id: row.data_role_id,
    location_id: row.location_id,
    changed_fields: changedFields,
    data: { organizationId: caller.organizationId, record: recordData(object, row) },
  }))
  emit(tx, caller, eventKey, 'record', events)
}

/** Writes an event for each link between records. */
export function emitLinkEvents(
  { tx, caller, profile, now }: Omit<RecordScope, 'access'>,
  eventKey: 'relationship.created' | 'relationship.deleted',
  links: readonly LinkRow[],
): void {
  if (links.length === 0) return
  const { relationships, byId } = profile.model
  const definitions = new Map([...relationships.values()].map((one) => [one.definitionId, one]))
  const events = links.flatMap((link) => {
    const definition = definitions.get(link.definition_id)
    // Of a relationship that an archived object is an end of; it does not exist for anybody.
    if (!definition) return []
    const relationship = {
      relationshipId: link.relationship_id,
      relationshipKey: definition.relationshipKey,
      fromRecordId: link.from_record_id,
      fromObjectKey: byId.get(definition.fromObjectId)!.objectKey,
      toRecordId: link.to_record_id,
      toObjectKey: byId.get(definition.toObjectId)!.objectKey,
      createdAt: link.created_at,
      createdBy: { kind: link.created_by_kind, id: link.created_by_id },
    }
    return {
      event_id: uuidv7(now),
      occurred_at: new Date(now).toISOString(),
      subject_id: link.relationship_id,
      data: { organizationId: caller.organizationId, relationship },
    }
  })
  emit(tx, caller, eventKey, 'relationship', events)
}

interface NewEvent {
  readonly event_id: string
  readonly occurred_at: string
  readonly subject_id: string
  readonly object_id?: string
  readonly owner_user_id?: string | null
  readonly data_role_id?: string | null
  readonly location_id?: string | null
  readonly changed_fields?: readonly string[] | undefined
  readonly data: object
}

const target = `
  INSERT INTO portico.outbox (organization_id, app_id, event_key, event_version, subject_type, actor_kind, actor_id,
    event_id, occurred_at, subject_id, object_id, owner_user_id, data_role_id, location_id, changed_fields, data)`
const heading = '$1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::text'
const collapse = `
  ON CONFLICT (organization_id, transaction_id, event_key, subject_id) DO UPDATE SET
    occurred_at = excluded.occurred_at, data = excluded.data, owner_user_id = excluded.owner_user_id,
    data_role_id = excluded.data_role_id, location_id = excluded.location_id,
    changed_fields = ARRAY(SELECT DISTINCT unnest(outbox.changed_fields || excluded.changed_fields))`

/** Two statements, each prepared once: most changes are of one record, and reading it out of JSON again takes its time. */
const single = `${target}
  VALUES (${heading}, $8::uuid, $9::timestamptz, $10::uuid, $11::uuid, $12::uuid, $13::uuid, $14::uuid, $15::text[], $16::json)
  ${collapse}`
const several = `${target}
  SELECT ${heading}, e.event_id, e.occurred_at, e.subject_id, e.object_id, e.owner_user_id, e.data_role_id, e.location_id,
    e.changed_fields, e.data
  FROM json_to_recordset($8::json) AS e (event_id uuid, occurred_at timestamptz, subject_id uuid, object_id uuid,
    owner_user_id uuid, data_role_id uuid, location_id uuid, changed_fields text[], data json)
  ${collapse}`

function emit(tx: Tx, caller: Caller, eventKey: string, subjectType: string, events: readonly NewEvent[]): void {
  const [first] = events
  if (!first) return
  const { organizationId, appId, actor } = caller
  const common = [organizationId, appId, eventKey, eventVersion, subjectType, actor.kind, actor.id]
  const writing = events.length === 1 ? { text: single, values: [...common, ...valuesOf(first)] } : undefined
  noteEmitted(tx)
  tx.rows(writing ?? { text: several, values: [...common, JSON.stringify(events)] }).catch(() => {})
}

function valuesOf({ event_id, occurred_at, subject_id, changed_fields, data, ...where }: NewEvent): unknown[] {
  const { object_id = null, owner_user_id = null, data_role_id = null, location_id = null } = where
  const placement = [object_id, owner_user_id, data_role_id, location_id]
  return [event_id, occurred_at, subject_id, ...placement, changed_fields ?? null, JSON.stringify(data)]
}

function recordData(object: ObjectDefinition, row: RecordRow): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const field of object.fields) fields[field.fieldKey] = row[field.column]
  return {
    recordId: row.record_id,
    objectKey: object.objectKey,
    fields,
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
  }
}
