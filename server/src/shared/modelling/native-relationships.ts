import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'

/** A relationship between native objects. Archiving a record ends those that start at it. */
export interface NativeRelationship {
  /** With an underscore, which the keys of builders do not have. */
  readonly relationshipKey: string
  readonly label: string
  readonly inverseLabel: string
  readonly cardinality: 'one-to-many' | 'many-to-many'
  readonly from: string
  readonly to: string
}

/**
 * Writes those that an application misses, and the labels of those that it has, once its native objects are defined. One with
 * an end in an object that the application goes without is left out.
 */
export async function writeNativeRelationships(
  tx: Tx,
  appId: string,
  relationships: readonly NativeRelationship[],
): Promise<void> {
  await tx.rows(sql`
    INSERT INTO portico.relationship_definition (app_id, relationship_id, relationship_key, kind, label, inverse_label,
      cardinality, from_object_id, to_object_id, delete_rule)
    SELECT ${appId}, gen_random_uuid(), r."relationshipKey", 'native', r.label, r."inverseLabel", r.cardinality,
      f.object_id, t.object_id, 'unlink'
    FROM json_to_recordset(${JSON.stringify(relationships)}::json) AS r ("relationshipKey" text, label text,
      "inverseLabel" text, cardinality text, "from" text, "to" text)
    JOIN portico.object_definition f ON f.app_id = ${appId} AND f.object_key = r."from" AND f.kind = 'native'
    JOIN portico.object_definition t ON t.app_id = ${appId} AND t.object_key = r."to" AND t.kind = 'native'
    ON CONFLICT (app_id, relationship_key) DO UPDATE SET label = excluded.label, inverse_label = excluded.inverse_label`)
}
