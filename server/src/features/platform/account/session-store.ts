import sql, { empty } from 'sql-template-tag'
import type { BuilderCaller } from '../../../kernel/caller.ts'
import type { Tx } from '../../../kernel/transaction.ts'

/** Every SQL statement about the sessions of builders. */
type Self = Pick<BuilderCaller, 'accountId' | 'builderId'>

export interface SessionRow {
  readonly sessionId: string
  readonly builderId: string
  readonly label: string
  readonly userAgent: string
  readonly address: string
  readonly createdAt: string
  readonly lastUsedAt: string | null
  readonly expiresAt: string
}

const columns = sql`key_id AS "sessionId", builder_id AS "builderId", label, user_agent AS "userAgent", address,
  created_at AS "createdAt", last_used_at AS "lastUsedAt", expires_at AS "expiresAt"`

export async function insertBuilderSession(
  tx: Tx,
  session: {
    readonly keyId: string
    readonly accountId: string
    readonly builderId: string
    readonly secretHash: Buffer
    readonly expiresAt: string
    readonly createdAt?: string
    readonly label?: string
    readonly userAgent?: string
    readonly address?: string
  },
): Promise<SessionRow> {
  const { keyId, accountId, builderId, secretHash, expiresAt } = session
  const { createdAt = new Date().toISOString(), label = '', userAgent = '', address = '' } = session
  const [row] = await tx.rows<SessionRow>(sql`
    INSERT INTO portico.builder_session (key_id, account_id, builder_id, secret_hash, created_at, expires_at, label,
      user_agent, address)
    VALUES (${keyId}, ${accountId}, ${builderId}, ${secretHash}, ${createdAt}, ${expiresAt}, ${label}, ${userAgent},
      ${address})
    RETURNING ${columns}`)
  return row!
}

/** Ends those of the person's sessions in the account that would end first, so that `max` are left. */
export async function endSurplusSessions(
  tx: Tx,
  { accountId, builderId }: Self,
  max: number,
  at: string,
): Promise<void> {
  await tx.rows(sql`
    UPDATE portico.builder_session SET revoked_at = ${at}
    WHERE account_id = ${accountId} AND key_id IN (
      SELECT key_id FROM portico.builder_session
      WHERE account_id = ${accountId} AND builder_id = ${builderId} AND revoked_at IS NULL AND expires_at > ${at}
      ORDER BY expires_at DESC, key_id DESC OFFSET ${max})`)
}

/** Sessions that hold, the newest first; those of one person, or of everybody in the account. */
export async function findSessions(
  tx: Tx,
  { accountId }: Self,
  page: {
    readonly builderId: string | undefined
    readonly now: string
    /** `createdAt` and `sessionId` of the last one before. */
    readonly after: readonly string[] | null
    readonly limit: number
  },
): Promise<SessionRow[]> {
  const { builderId, now, after, limit } = page
  return tx.rows(sql`
    SELECT ${columns} FROM portico.builder_session s
    WHERE account_id = ${accountId} AND revoked_at IS NULL AND expires_at > ${now}
      AND EXISTS (SELECT FROM portico.account_member m WHERE m.account_id = ${accountId} AND m.builder_id = s.builder_id)
      ${builderId === undefined ? empty : sql`AND builder_id = ${builderId}`}
      ${after ? sql`AND (created_at, key_id) < (${after[0]}::timestamptz, ${after[1]})` : empty}
    ORDER BY created_at DESC, key_id DESC LIMIT ${limit}`)
}

/** Ends a session that holds, or returns undefined where there is none; `builderId` limits it to those of one person. */
export async function revokeSession(
  tx: Tx,
  { accountId }: Self,
  {
    sessionId,
    builderId,
    at,
  }: { readonly sessionId: string; readonly builderId: string | undefined; readonly at: string },
): Promise<SessionRow | undefined> {
  const [row] = await tx.rows<SessionRow>(sql`
    UPDATE portico.builder_session SET revoked_at = ${at}
    WHERE account_id = ${accountId} AND key_id = ${sessionId} AND revoked_at IS NULL AND expires_at > ${at}
      ${builderId === undefined ? empty : sql`AND builder_id = ${builderId}`}
    RETURNING ${columns}`)
  return row
}

/** Ends every session of the person whose session `keyId` is, in all of their accounts, but for that one. */
export async function endOtherSessions(tx: Tx, { keyId }: Pick<BuilderCaller, 'keyId'>, at: string): Promise<void> {
  await tx.rows(sql`SELECT portico.end_other_sessions(${keyId}, ${at})`)
}

/** Ends the sessions that somebody has in this account. */
export async function endMemberSessions(tx: Tx, { accountId, builderId }: Self, at: string): Promise<void> {
  await tx.rows(sql`UPDATE portico.builder_session SET revoked_at = ${at}
    WHERE account_id = ${accountId} AND builder_id = ${builderId} AND revoked_at IS NULL`)
}

/** Requests that run on rights of before see it, and start over. */
export async function bumpAccount(tx: Tx, { accountId }: Pick<Self, 'accountId'>): Promise<void> {
  await tx.rows(sql`SELECT portico.bump_epoch(${accountId})`)
}
