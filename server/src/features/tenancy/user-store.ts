import sql, { empty } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import { escapeLike } from '../../shared/search-text.ts'
import type { DataRoleRow } from './organization-store.ts'
import { type ActiveState, changesLocations, changesRoles, type UserFacts } from './rules.ts'
import { bumpOrganization, insertMemberLocations, insertRoles } from './store.ts'

/** SQL statements about users and their memberships. They run bound to the organisation. */
export interface UserRow {
  readonly organizationId: string
  readonly userId: string
  readonly email: string
  readonly displayName: string
  readonly status: ActiveState
  readonly userTypeKey: string
  readonly isOwner: boolean
  readonly dataRoles: DataRoleRow[]
  readonly locations: 'all' | string[]
  readonly revision: number
  readonly createdAt: string
}

const userColumns = sql`u.organization_id AS "organizationId", u.user_id AS "userId", u.email,
  u.display_name AS "displayName", u.status, m.user_type_key AS "userTypeKey", m.is_owner AS "isOwner",
  (SELECT coalesce(json_agg(json_build_object('dataRoleId', r.data_role_id, 'key', r.template_key, 'label', t.label)
       ORDER BY r.template_key), '[]')
     FROM portico.membership_data_role mr
     JOIN portico.data_role r ON r.organization_id = mr.organization_id AND r.data_role_id = mr.data_role_id
     JOIN portico.data_role_template t ON t.app_id = r.app_id AND t.template_key = r.template_key
    WHERE mr.organization_id = u.organization_id AND mr.user_id = u.user_id) AS "dataRoles",
  CASE WHEN m.all_locations THEN to_json('all'::text) ELSE
    (SELECT coalesce(json_agg(ml.location_id ORDER BY ml.location_id), '[]') FROM portico.membership_location ml
      WHERE ml.organization_id = u.organization_id AND ml.user_id = u.user_id) END AS locations,
  u.revision, u.created_at AS "createdAt"`

const userTables = sql`portico.tenant_user u
  JOIN portico.membership m ON m.organization_id = u.organization_id AND m.user_id = u.user_id`

/** One page of the users of an organisation, by name. `after` is where the page before ended. */
export async function findUsers(
  tx: Tx,
  wanted: {
    readonly organizationId: string
    readonly status?: ActiveState | undefined
    readonly search?: string | undefined
  },
  after: readonly string[] | null,
  limit: number,
): Promise<(UserRow & { readonly sortName: string })[]> {
  const { organizationId, status, search } = wanted
  const pattern = search === undefined ? null : `%${escapeLike(search)}%`
  return tx.rows(sql`SELECT ${userColumns}, lower(u.display_name) AS "sortName" FROM ${userTables}
    WHERE u.organization_id = ${organizationId}
      ${status === undefined ? empty : sql`AND u.status = ${status}`}
      ${pattern === null ? empty : sql`AND (u.display_name ILIKE ${pattern} OR u.email ILIKE ${pattern})`}
      ${after === null ? empty : sql`AND (lower(u.display_name), u.user_id) > (${after[0]}::text, ${after[1]}::uuid)`}
    ORDER BY lower(u.display_name), u.user_id LIMIT ${limit}`)
}

export async function findUser(tx: Tx, organizationId: string, userId: string): Promise<UserRow | undefined> {
  const [row] = await tx.rows<UserRow>(sql`SELECT ${userColumns} FROM ${userTables}
    WHERE u.organization_id = ${organizationId} AND u.user_id = ${userId}`)
  return row
}

export async function existsEmail(tx: Tx, organizationId: string, email: string): Promise<boolean> {
  const found = await tx.rows(sql`SELECT FROM portico.tenant_user
    WHERE organization_id = ${organizationId} AND lower(email) = lower(${email})`)
  return found.length > 0
}

/** Is there an active owner beside this one? Ask while the organisation is locked. */
export async function hasOtherOwner(tx: Tx, organizationId: string, userId: string): Promise<boolean> {
  const found = await tx.rows(sql`SELECT FROM ${userTables} WHERE u.organization_id = ${organizationId}
    AND u.user_id <> ${userId} AND u.status = 'active' AND m.is_owner LIMIT 1`)
  return found.length > 0
}

/** Writes what the user is now, and raises its revision by one. */
export async function updateUser(
  tx: Tx,
  { organizationId, userId }: Pick<UserRow, 'organizationId' | 'userId'>,
  before: UserFacts,
  after: UserFacts,
): Promise<void> {
  const { email, displayName, status, userTypeKey, isOwner, dataRoleIds, locations } = after
  await tx.rows(sql`UPDATE portico.tenant_user SET email = ${email}, display_name = ${displayName}, status = ${status},
      revision = revision + 1 WHERE organization_id = ${organizationId} AND user_id = ${userId}`)
  await tx.rows(sql`UPDATE portico.membership SET user_type_key = ${userTypeKey}, is_owner = ${isOwner},
      all_locations = ${locations === 'all'} WHERE organization_id = ${organizationId} AND user_id = ${userId}`)
  if (changesRoles(before, after)) {
    await tx.rows(sql`DELETE FROM portico.membership_data_role
      WHERE organization_id = ${organizationId} AND user_id = ${userId}`)
    await insertRoles(tx, { organizationId, userId, dataRoleIds })
  }
  if (changesLocations(before, after)) {
    await tx.rows(sql`DELETE FROM portico.membership_location
      WHERE organization_id = ${organizationId} AND user_id = ${userId}`)
    await insertMemberLocations(tx, { organizationId, userId, locationIds: locations })
  }
  await bumpOrganization(tx, organizationId)
}

/** Links to choose a password are mailed to an address that somebody has, and good for whoever may sign in. */
export async function deletePasswordResets(tx: Tx, organizationId: string, userId: string): Promise<void> {
  await tx.rows(
    sql`DELETE FROM portico.password_reset WHERE organization_id = ${organizationId} AND user_id = ${userId}`,
  )
}

/**
 * Ends the sessions and the delegated credentials that a user had before it was reactivated: who comes back signs in
 * anew. While the user is inactive they are refused as that, so they are ended here and not when it is deactivated.
 */
export async function endSessions(tx: Tx, organizationId: string, userId: string, now: number): Promise<void> {
  await tx.rows(sql`UPDATE portico.credential SET revoked_at = ${new Date(now).toISOString()}
    WHERE organization_id = ${organizationId} AND user_id = ${userId} AND revoked_at IS NULL`)
}
