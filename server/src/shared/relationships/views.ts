import type { Relationship } from './definitions.ts'
import type { LinkRow } from './link-store.ts'

/** A link as it leaves (contract 4). */
export function linkView(row: LinkRow, { definition, from, to }: Relationship) {
  return {
    relationshipId: row.relationship_id,
    relationshipKey: definition.relationshipKey,
    fromRecordId: row.from_record_id,
    fromObjectKey: from.object.objectKey,
    toRecordId: row.to_record_id,
    toObjectKey: to.object.objectKey,
    createdAt: row.created_at,
    createdBy: { kind: row.created_by_kind, id: row.created_by_id },
  }
}

/** A link as the record at one of its ends sees it. */
export function relatedView(
  row: LinkRow,
  { definition, from, to }: Relationship,
  recordId: string,
  displayName: string | null,
) {
  const forward = row.from_record_id === recordId
  const far = forward ? to : from
  return {
    relationshipId: row.relationship_id,
    relationshipKey: definition.relationshipKey,
    direction: forward ? 'forward' : 'inverse',
    label: forward ? definition.label : definition.inverseLabel,
    record: { recordId: otherEnd(row, recordId), objectKey: far.object.objectKey, displayName },
    createdAt: row.created_at,
    createdBy: { kind: row.created_by_kind, id: row.created_by_id },
  }
}

export function otherEnd(row: LinkRow, recordId: string): string {
  return row.from_record_id === recordId ? row.to_record_id : row.from_record_id
}
