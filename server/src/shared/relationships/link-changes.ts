import sql, { type Sql } from 'sql-template-tag'
import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { RelationshipDefinition } from '../catalogue/relationships.ts'
import { brokenConstraint } from '../database/failures.ts'
import { emitLinkEvents } from '../outbox/record-events.ts'
import type { RecordScope } from '../records/scope.ts'
import { type LinkRow, linkColumns } from './link-store.ts'

/** A caller at work on links, whatever the objects at their ends. */
export type LinkScope = Omit<RecordScope, 'access'>

/** The only two ways in which links of records come and go, and with each of them its event. */
export async function insertLink(
  scope: LinkScope,
  definition: RelationshipDefinition,
  fromRecordId: string,
  toRecordId: string,
): Promise<LinkRow | undefined> {
  const { tx, caller, now } = scope
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
  if (row) emitLinkEvents(scope, 'relationship.created', [row])
  return row
}

/** `which` is a condition on `l`. Returns those that are gone. */
export async function deleteLinks(scope: LinkScope, which: Sql): Promise<LinkRow[]> {
  const gone = await scope.tx.rows<LinkRow>(sql`DELETE FROM portico.record_relationship l
    WHERE l.organization_id = ${scope.caller.organizationId} AND ${which} RETURNING ${linkColumns}`)
  emitLinkEvents(scope, 'relationship.deleted', gone)
  return gone
}
