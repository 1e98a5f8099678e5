import type { Caller } from '../../kernel/caller.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import type { RecordRow } from '../records/record.ts'
import type { RecordScope } from '../records/scope.ts'
import type { LinkRow } from '../relationships/link-store.ts'
import { emitEvents } from './emit.ts'

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
  emitEvents(tx, { ...caller, eventKey, subjectType: 'record' }, events).catch(leftToCommit)
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
  emitEvents(tx, { ...caller, eventKey, subjectType: 'relationship' }, events).catch(leftToCommit)
}

/** A transaction in which a statement failed does not commit, and says so. */
function leftToCommit(): void {}

/** Without what is empty: most fields of most records are, and whoever reads the event knows the fields (disclosure.ts). */
function recordData(object: ObjectDefinition, row: RecordRow): Record<string, unknown> {
  const fields: Record<string, unknown> = {}
  for (const { fieldKey, column } of object.fields) if (row[column] != null) fields[fieldKey] = row[column]
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
