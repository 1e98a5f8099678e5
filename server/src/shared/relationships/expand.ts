import sql, { raw } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { visible } from '../access/envelope.ts'
import { columnsOf, type RecordRow } from '../records/record.ts'
import { columnsOfHop, type Hop } from './definitions.ts'

/** How many related records `expand` includes for each record; the rest is listed by its relationships. */
export const expandedMax = 20

export interface RelatedRows {
  readonly rows: readonly RecordRow[]
  readonly hasMore: boolean
}

/**
 * The live records that each of the given ones is related to, as far as the caller sees them, the latest related first: one
 * statement for all of them. Records that are related to nothing are absent.
 */
export async function findRelated(
  tx: Tx,
  caller: Caller,
  hop: Hop,
  recordIds: readonly string[],
): Promise<Map<string, RelatedRows>> {
  const { access, definition } = hop
  const { near, far } = columnsOfHop(hop)
  const found = await tx.rows<RecordRow & { readonly near_record_id: string }>(sql`
    SELECT n.record_id AS near_record_id, r.* FROM unnest(${recordIds as string[]}::uuid[]) AS n (record_id)
    CROSS JOIN LATERAL (
      SELECT l.relationship_id, ${raw(columnsOf(access.readable, 't'))} FROM portico.record_relationship l
      JOIN ${raw(access.object.table)} t ON t.record_id = l.${raw(far)}
      WHERE l.organization_id = ${caller.organizationId} AND l.definition_id = ${definition.definitionId}
        AND l.${raw(near)} = n.record_id AND ${visible(caller, 't')} AND t.archived_at IS NULL
      ORDER BY l.relationship_id DESC LIMIT ${expandedMax + 1}) r
    ORDER BY n.record_id, r.relationship_id DESC`)
  const byRecord = Map.groupBy(found, (row) => row.near_record_id)
  return new Map(
    [...byRecord].map(([recordId, rows]) => [
      recordId,
      { rows: rows.slice(0, expandedMax), hasMore: rows.length > expandedMax },
    ]),
  )
}
