import sql, { raw, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'

/**
 * The record envelope (data.md): which records of an object a caller sees. This is the only place that says it; lists,
 * counts, search, relationships, exports and AI search all take their predicate from here.
 *
 * 1. organisation records (no owner, no role);
 * 2. the caller's user owns it;
 * 3. its DataRole is one of the caller's and its location is empty or among the caller's;
 * 4. the caller's user is a participant;
 * 5. the unrestricted caller sees all.
 *
 * A live credential with an envelope has no user and is held to 1 and 3.
 */
export function visible(caller: Caller, alias: string): Sql {
  const t = raw(alias)
  const organization = sql`${t}.organization_id = ${caller.organizationId}`
  if (caller.unrestricted) return organization
  return sql`${organization} AND (${writableBy(caller, t)} OR ${participatesIn(caller, t)})`
}

/**
 * The same in parts that have no record in common, one for each index that leads to what a caller sees: everybody's, its own,
 * those of each role, and those it takes part in beside. An `OR` of them leads the planner past the indexes, through all
 * records of the organisation: a caller who saw few of a million waited 0.6 s for a page, and in vain for a later one.
 */
export function visibleParts(caller: Caller, alias: string): Sql[] {
  const t = raw(alias)
  const organization = sql`${t}.organization_id = ${caller.organizationId}`
  if (caller.unrestricted) return [organization]
  const { user, dataRoleIds } = caller
  const located = locatedFor(caller, t)
  const parts = [
    everybodys(t),
    ...(user ? [sql`${t}.owner_user_id = ${user.userId}`] : []),
    ...[...new Set(dataRoleIds)].map((roleId) => sql`${t}.data_role_id = ${roleId} AND ${located}`),
    ...(user ? [sql`${participatesIn(caller, t)} AND (${writableBy(caller, t)}) IS NOT TRUE`] : []),
  ]
  return parts.map((part) => sql`${organization} AND ${part}`)
}

function participatesIn(caller: Caller, t: Sql): Sql {
  const userId = caller.user?.userId
  if (userId === undefined) return sql`false`
  // An array made once, not a subquery for each row: it can drive the primary key.
  return sql`${t}.record_id = ANY (ARRAY(SELECT p.record_id FROM portico.record_participant p
    WHERE p.organization_id = ${caller.organizationId} AND p.user_id = ${userId}))`
}

function everybodys(t: Sql): Sql {
  return sql`${t}.owner_user_id IS NULL AND ${t}.data_role_id IS NULL`
}

function locatedFor({ locationIds }: Caller, t: Sql): Sql {
  if (locationIds === 'all') return sql`true`
  return sql`(${t}.location_id IS NULL OR ${t}.location_id = ANY (${locationIds as string[]}))`
}

/**
 * Rules 1, 2, 3 and 5: where the caller may put a record, and what it may take from. Taking part in a record lets its
 * participant see and edit it, not give it away.
 */
function writableBy(caller: Caller, t: Sql): Sql {
  const userId = caller.user?.userId
  const owns = userId === undefined ? sql`false` : sql`${t}.owner_user_id = ${userId}`
  return sql`((${everybodys(t)})
    OR ${owns}
    OR (${t}.data_role_id = ANY (${caller.dataRoleIds as string[]}) AND ${locatedFor(caller, t)}))`
}

/** `mayPlace` as a condition on rows that tell where a record is, or was. */
export function placedWithin(caller: Caller, alias: string): Sql {
  return caller.unrestricted ? sql`true` : writableBy(caller, raw(alias))
}

export interface Placement {
  readonly ownerUserId: string | null
  readonly dataRoleId: string | null
  readonly locationId: string | null
}

/** The same rules for a placement at hand: may the caller put a record there, or take one from there? */
export function mayPlace(caller: Caller, placement: Placement): boolean {
  if (caller.unrestricted) return true
  const { ownerUserId, dataRoleId, locationId } = placement
  if (ownerUserId === null && dataRoleId === null) return true
  if (ownerUserId !== null && ownerUserId === caller.user?.userId) return true
  return (
    dataRoleId !== null &&
    caller.dataRoleIds.includes(dataRoleId) &&
    (locationId === null || caller.locationIds === 'all' || caller.locationIds.includes(locationId))
  )
}
