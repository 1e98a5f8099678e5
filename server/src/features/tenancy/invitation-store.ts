import sql, { empty } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import type { DataRoleRow } from './organization-store.ts'
import type { InvitationStatus } from './rules.ts'

/** SQL statements about invitations. They run bound to the organisation. */
export interface InvitationRow {
  readonly organizationId: string
  readonly invitationId: string
  readonly email: string
  readonly displayName: string
  readonly userTypeKey: string
  readonly isOwner: boolean
  readonly dataRoles: DataRoleRow[]
  readonly locations: 'all' | string[]
  readonly createdAt: string
  readonly sentAt: string
  readonly expiresAt: string
  readonly acceptedAt: string | null
  readonly acceptedUserId: string | null
  readonly revokedAt: string | null
}

/** Roles and locations that are gone since are left out. */
const columns = sql`i.organization_id AS "organizationId", i.invitation_id AS "invitationId", i.email,
  i.display_name AS "displayName", i.user_type_key AS "userTypeKey", i.is_owner AS "isOwner",
  (SELECT coalesce(json_agg(json_build_object('dataRoleId', r.data_role_id, 'key', r.template_key, 'label', t.label)
       ORDER BY r.template_key), '[]')
     FROM portico.data_role r JOIN portico.data_role_template t USING (app_id, template_key)
    WHERE r.organization_id = i.organization_id AND r.data_role_id = ANY (i.data_role_ids)) AS "dataRoles",
  CASE WHEN i.all_locations THEN to_json('all'::text) ELSE
    (SELECT coalesce(json_agg(l.location_id ORDER BY l.location_id), '[]') FROM portico.location l
      WHERE l.organization_id = i.organization_id AND l.location_id = ANY (i.location_ids)) END AS locations,
  i.created_at AS "createdAt", coalesce(i.sent_at, i.created_at) AS "sentAt", i.expires_at AS "expiresAt",
  i.accepted_at AS "acceptedAt", i.accepted_user_id AS "acceptedUserId", i.revoked_at AS "revokedAt"`

const isOpen = sql`i.accepted_at IS NULL AND i.revoked_at IS NULL`
const conditions = {
  accepted: () => sql`i.accepted_at IS NOT NULL`,
  revoked: () => sql`i.accepted_at IS NULL AND i.revoked_at IS NOT NULL`,
  pending: (time: string) => sql`${isOpen} AND i.expires_at > ${time}`,
  expired: (time: string) => sql`${isOpen} AND i.expires_at <= ${time}`,
}

/** One page of the invitations of an organisation, newest first. `after` is where the page before ended. */
export async function findInvitations(
  tx: Tx,
  wanted: {
    readonly organizationId: string
    readonly status?: InvitationStatus | undefined
    readonly now: number
  },
  after: readonly string[] | null,
  limit: number,
): Promise<InvitationRow[]> {
  const { organizationId, status, now } = wanted
  return tx.rows(sql`SELECT ${columns} FROM portico.invitation i WHERE i.organization_id = ${organizationId}
      ${status === undefined ? empty : sql`AND ${conditions[status](new Date(now).toISOString())}`}
      ${after === null ? empty : sql`AND i.invitation_id < ${after[0]}::uuid`}
    ORDER BY i.invitation_id DESC LIMIT ${limit}`)
}

export async function findInvitation(
  tx: Tx,
  organizationId: string,
  invitationId: string,
): Promise<InvitationRow | undefined> {
  const [row] = await tx.rows<InvitationRow>(sql`SELECT ${columns} FROM portico.invitation i
    WHERE i.organization_id = ${organizationId} AND i.invitation_id = ${invitationId}`)
  return row
}

/** The invitation that this token opens now, if there is one. */
export async function findPendingByToken(
  tx: Tx,
  organizationId: string,
  tokenHash: Buffer,
  now: number,
): Promise<InvitationRow | undefined> {
  const [row] = await tx.rows<InvitationRow>(sql`SELECT ${columns} FROM portico.invitation i
    WHERE i.organization_id = ${organizationId} AND i.token_hash = ${tokenHash}
      AND ${conditions.pending(new Date(now).toISOString())}`)
  return row
}

export interface NewInvitation {
  readonly organizationId: string
  readonly invitationId: string
  readonly email: string
  readonly displayName: string
  readonly userTypeKey: string
  readonly isOwner: boolean
  readonly dataRoleIds: readonly string[]
  readonly locations: 'all' | readonly string[]
  readonly tokenHash: Buffer
  readonly sentAt: string
  readonly expiresAt: string
}

export async function insertInvitation(tx: Tx, invitation: NewInvitation): Promise<void> {
  const { organizationId, invitationId, dataRoleIds, locations, sentAt } = invitation
  await tx.rows(sql`INSERT INTO portico.invitation (organization_id, invitation_id, email, display_name, user_type_key,
      is_owner, all_locations, location_ids, data_role_ids, token_hash, created_at, sent_at, expires_at)
    VALUES (${organizationId}, ${invitationId}, ${invitation.email}, ${invitation.displayName}, ${invitation.userTypeKey},
      ${invitation.isOwner}, ${locations === 'all'}, ${locations === 'all' ? [] : (locations as string[])},
      ${dataRoleIds as string[]}, ${invitation.tokenHash}, ${sentAt}, ${sentAt}, ${invitation.expiresAt})`)
}

/** Another token takes the place of the one before, which opens nothing from then on. */
export async function renewInvitation(
  tx: Tx,
  renewed: Pick<NewInvitation, 'organizationId' | 'invitationId' | 'tokenHash' | 'sentAt' | 'expiresAt'>,
): Promise<void> {
  const { organizationId, invitationId, tokenHash, sentAt, expiresAt } = renewed
  await tx.rows(sql`UPDATE portico.invitation SET token_hash = ${tokenHash}, sent_at = ${sentAt}, expires_at = ${expiresAt}
    WHERE organization_id = ${organizationId} AND invitation_id = ${invitationId}`)
}

export async function revokeInvitation(
  tx: Tx,
  organizationId: string,
  invitationId: string,
  now: number,
): Promise<void> {
  await tx.rows(sql`UPDATE portico.invitation SET revoked_at = ${new Date(now).toISOString()}
    WHERE organization_id = ${organizationId} AND invitation_id = ${invitationId}`)
}

/** What is open for an address, expired or not. */
export async function findOpenFor(tx: Tx, organizationId: string, email: string): Promise<InvitationRow | undefined> {
  const [row] = await tx.rows<InvitationRow>(sql`SELECT ${columns} FROM portico.invitation i
    WHERE i.organization_id = ${organizationId} AND lower(i.email) = lower(${email}) AND ${isOpen}`)
  return row
}

export async function markAccepted(
  tx: Tx,
  { organizationId, invitationId, userId }: { organizationId: string; invitationId: string; userId: string },
  now: number,
): Promise<void> {
  await tx.rows(sql`UPDATE portico.invitation SET accepted_at = ${new Date(now).toISOString()}, accepted_user_id = ${userId}
    WHERE organization_id = ${organizationId} AND invitation_id = ${invitationId}`)
}
