import sql, { raw, type Sql } from 'sql-template-tag'
import { fail } from '../../kernel/errors.ts'
import { visible } from '../access/envelope.ts'
import type { RelationshipDefinition } from '../catalogue/relationships.ts'
import type { RecordScope } from '../records/scope.ts'
import { deleteLinks } from './link-changes.ts'

/** How many related records one request may still archive along with the record that it names. */
export interface Cascade {
  left: number
}

export const cascadeMax = 1000
export const newCascade = (): Cascade => ({ left: cascadeMax })

type Archive = (scope: RecordScope, recordId: string) => Promise<unknown>

/**
 * Does what the relationships that start at a record ask for when it is archived, in the transaction that archived it. The
 * rules hold for what the caller cannot see, too: what is related must not depend on who archives.
 *
 * - unlink: its links go; restoring it does not bring them back.
 * - restrict: 409 `relationship_restricts` while a live record is related.
 * - archive: live related records are archived with it, each with the rights that this takes by itself, and with what their own
 *   relationships ask for; at most 1,000 in one request. Links stay, so that restoring shows them again.
 *
 * The record itself is archived already, so a ring of relationships ends where it began.
 */
export async function followDeleteRules(
  scope: RecordScope,
  recordId: string,
  cascade: Cascade,
  archive: Archive,
): Promise<void> {
  const { objectId } = scope.access.object
  const starting = [...scope.profile.model.relationships.values()].filter((one) => one.fromObjectId === objectId)
  const unlinked = starting.filter((one) => one.deleteRule === 'unlink').map((one) => one.definitionId)
  if (unlinked.length > 0) {
    const which = sql`l.from_record_id = ${recordId} AND l.definition_id = ANY (${unlinked}::uuid[])`
    await deleteLinks(scope, which)
  }
  for (const definition of starting)
    if (definition.deleteRule === 'restrict') await restrict(scope, recordId, definition)
  for (const definition of starting) {
    if (definition.deleteRule === 'archive') await archiveRelated(scope, recordId, definition, cascade, archive)
  }
}

async function restrict(scope: RecordScope, recordId: string, definition: RelationshipDefinition): Promise<void> {
  const [row] = await scope.tx.rows<{ total: number; seen: number }>(sql`
    SELECT count(*) AS total, count(*) FILTER (WHERE ${isSeen(scope, definition)}) AS seen
    ${liveRelated(scope, recordId, definition)}`)
  const { total, seen } = row!
  if (total === 0) return
  // How many there are that the caller does not see is not told.
  const some = seen === total ? `${seen} related records` : 'Related records that you do not see'
  const message = seen > 0 && seen < total ? `Besides ${seen} that you see, more related records` : some
  throw fail('relationship_restricts', { field: definition.relationshipKey, message: `${message} stand against it.` })
}

async function archiveRelated(
  scope: RecordScope,
  recordId: string,
  definition: RelationshipDefinition,
  cascade: Cascade,
  archive: Archive,
): Promise<void> {
  const related = await scope.tx.rows<{ record_id: string; seen: boolean }>(sql`
    SELECT t.record_id, ${isSeen(scope, definition)} AS seen ${liveRelated(scope, recordId, definition)}
    ORDER BY t.record_id LIMIT ${cascade.left + 1}`)
  if (related.length === 0) return
  const field = definition.relationshipKey
  if (related.length > cascade.left) {
    const message = `More than ${cascadeMax} related records would be archived with it. Archive some of them first.`
    throw fail('relationship_restricts', { field, message })
  }
  const access = scope.profile.byObjectId.get(definition.toObjectId)
  if (!access?.archive || related.some((one) => !one.seen)) {
    throw fail('permission_denied', { field, message: 'You may not archive all of the related records.' })
  }
  cascade.left -= related.length
  for (const one of related) await archive({ ...scope, access }, one.record_id)
}

/** Live records that a record is related to. */
function liveRelated(
  { caller, profile }: RecordScope,
  recordId: string,
  { definitionId, toObjectId }: RelationshipDefinition,
): Sql {
  return sql`FROM portico.record_relationship l
    JOIN ${raw(profile.model.byId.get(toObjectId)!.table)} t
      ON t.organization_id = l.organization_id AND t.record_id = l.to_record_id
    WHERE l.organization_id = ${caller.organizationId} AND l.definition_id = ${definitionId}
      AND l.from_record_id = ${recordId} AND t.archived_at IS NULL`
}

function isSeen({ caller, profile }: RecordScope, { toObjectId }: RelationshipDefinition): Sql {
  return profile.byObjectId.has(toObjectId) ? sql`(${visible(caller, 't')})` : sql`false`
}
