import sql from 'sql-template-tag'
import type { BuilderCaller } from '../../../kernel/caller.ts'
import type { BuilderRole } from '../../../kernel/scopes.ts'
import type { Tx } from '../../../kernel/transaction.ts'
import type { Invitation, Member } from './schema.ts'

/** Every SQL statement about the team of an account. */
type Account = Pick<BuilderCaller, 'accountId'>

/** The oldest membership first. */
export async function findMembers(tx: Tx, { accountId }: Account): Promise<Member[]> {
  return tx.rows(sql`
    SELECT m.builder_id AS "builderId", b.email, b.display_name AS "displayName", m.role, m.created_at AS "joinedAt",
      b.totp_confirmed_at IS NOT NULL AS "totpEnabled",
      (SELECT max(coalesce(s.last_used_at, s.created_at)) FROM portico.builder_session s
        WHERE s.account_id = m.account_id AND s.builder_id = m.builder_id) AS "lastSeenAt"
    FROM portico.account_member m JOIN portico.builder b ON b.builder_id = m.builder_id
    WHERE m.account_id = ${accountId} ORDER BY m.created_at, m.builder_id`)
}

export async function updateRole(tx: Tx, { accountId }: Account, builderId: string, role: BuilderRole): Promise<void> {
  await tx.rows(sql`UPDATE portico.account_member SET role = ${role}
    WHERE account_id = ${accountId} AND builder_id = ${builderId}`)
}

export async function deleteMember(tx: Tx, { accountId }: Account, builderId: string): Promise<void> {
  await tx.rows(sql`DELETE FROM portico.account_member WHERE account_id = ${accountId} AND builder_id = ${builderId}`)
}

const columns = sql`invitation_id AS "invitationId", email, role, created_at AS "createdAt", expires_at AS "expiresAt"`
const pending = sql`accepted_at IS NULL AND revoked_at IS NULL`

/** Those that can be accepted, the newest first. */
export async function findInvitations(tx: Tx, { accountId }: Account, now: string): Promise<Invitation[]> {
  return tx.rows(sql`SELECT ${columns} FROM portico.account_invitation
    WHERE account_id = ${accountId} AND ${pending} AND expires_at > ${now} ORDER BY created_at DESC, invitation_id DESC`)
}

/** Those of the pending ones that a member has sent. */
export async function findInvitationsBy(
  tx: Tx,
  { accountId }: Account,
  inviterId: string,
  now: string,
): Promise<Invitation[]> {
  return tx.rows(sql`SELECT ${columns} FROM portico.account_invitation
    WHERE account_id = ${accountId} AND invited_by = ${inviterId} AND ${pending} AND expires_at > ${now}
    ORDER BY invitation_id`)
}

/** Replaces those to the same address that have expired. */
export async function insertInvitation(
  tx: Tx,
  { accountId }: Account,
  invitation: Invitation & { readonly tokenHash: Buffer; readonly invitedBy: string },
): Promise<void> {
  const { invitationId, email, role, tokenHash, invitedBy, createdAt, expiresAt } = invitation
  await tx.rows(sql`UPDATE portico.account_invitation SET revoked_at = ${createdAt}
    WHERE account_id = ${accountId} AND lower(email) = lower(${email}) AND ${pending}`)
  await tx.rows(sql`
    INSERT INTO portico.account_invitation (account_id, invitation_id, email, role, token_hash, invited_by,
      created_at, expires_at)
    VALUES (${accountId}, ${invitationId}, ${email}, ${role}, ${tokenHash}, ${invitedBy}, ${createdAt}, ${expiresAt})`)
}

export async function revokeInvitation(
  tx: Tx,
  { accountId }: Account,
  invitationId: string,
  at: string,
): Promise<Invitation | undefined> {
  const [revoked] = await tx.rows<Invitation>(sql`
    UPDATE portico.account_invitation SET revoked_at = ${at}
    WHERE account_id = ${accountId} AND invitation_id = ${invitationId} AND ${pending} AND expires_at > ${at}
    RETURNING ${columns}`)
  return revoked
}
