import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'

/** How records of two objects may be related, as it was defined. Its ends and its cardinality never change. */
export interface RelationshipDefinition {
  readonly definitionId: string
  readonly relationshipKey: string
  readonly kind: 'custom' | 'native'
  /** What people call it, seen from `from`, and from `to`. */
  readonly label: string
  readonly inverseLabel: string
  /** one-to-many: a record of `to` is related to at most one record of `from`. */
  readonly cardinality: 'one-to-many' | 'many-to-many'
  readonly fromObjectId: string
  /** May be the same object. */
  readonly toObjectId: string
  /** What archiving a record of `from` does. */
  readonly deleteRule: 'unlink' | 'restrict' | 'archive'
}

/** The relationships of an application by key, without those that an archived object is an end of. */
export async function readRelationships(tx: Tx, appId: string): Promise<ReadonlyMap<string, RelationshipDefinition>> {
  const rows = await tx.rows<RelationshipDefinition>(sql`
    SELECT r.relationship_id AS "definitionId", r.relationship_key AS "relationshipKey", r.kind, r.label,
      r.inverse_label AS "inverseLabel", r.cardinality, r.from_object_id AS "fromObjectId",
      r.to_object_id AS "toObjectId", r.delete_rule AS "deleteRule"
    FROM portico.relationship_definition r
    JOIN portico.object_definition f ON f.app_id = r.app_id AND f.object_id = r.from_object_id
    JOIN portico.object_definition t ON t.app_id = r.app_id AND t.object_id = r.to_object_id
    WHERE r.app_id = ${appId} AND f.archived_at IS NULL AND t.archived_at IS NULL ORDER BY r.relationship_key`)
  return new Map(rows.map((row) => [row.relationshipKey, row]))
}
