import sql, { type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { RelationshipDefinition } from '../catalogue/relationships.ts'
import { brokenConstraint } from '../database/failures.ts'
import { type LinkRow, linkColumns } from './link-store.ts'

/**
 * The only two ways in which links of records come and go: whatever has to happen with each of them, such as its event in the
 * outbox, happens here.
 */
export async function insertLink(
  tx: Tx,
  caller: Caller,
  definition: RelationshipDefinition,
  fromRecordId: string,
  toRecordId: string,
  now: number,
): Promise<LinkRow | undefined> {
  const { actor, appId, organizationId } = caller
  const single = definition.cardinality === 'one-to-many'
  const inserting = tx.rows<LinkRow>(sql`
    INSERT INTO portico.record_relationship AS l (organization_id, relationship_id, app_id, definition_id, from_record_id,
      to_record_id, single, created_at, created_by_kind, created_by_id)
    VALUES (${organizationId}, ${uuidv7(now)}, ${appId}, ${definition.definitionId}, ${fromRecordId}, ${toRecordId},
      ${single}, ${new Date(now).toISOString()}, ${actor.kind}, ${actor.id})
    ON CONFLICT DO NOTHING RETURNING ${linkColumns}`)
  const [row] = await inserting.catch((error: unknown) => {
    // A release took the relationship away in this moment.
    if (brokenConstraint(error, 'reference') === undefined) throw error
    throw fail('reference_not_found', { field: 'relationshipKey', cause: error })
  })
  return row
}

/** `which` is a condition on `l`. Returns those that are gone. */
export function deleteLinks(tx: Tx, caller: Caller, which: Sql): Promise<LinkRow[]> {
  return tx.rows<LinkRow>(sql`DELETE FROM portico.record_relationship l
    WHERE l.organization_id = ${caller.organizationId} AND ${which} RETURNING ${linkColumns}`)
}
