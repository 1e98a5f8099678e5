import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'

/** Every SQL statement about signing in on tenant hosts. They run bound to the organisation. */
interface UserKey {
  readonly organizationId: string
  readonly userId: string
}

export interface Claimed {
  readonly userId: string
  readonly email: string
  readonly displayName: string
  readonly active: boolean
  readonly passwordHash: string | null
}

export async function findByEmail(tx: Tx, organizationId: string, email: string): Promise<Claimed | undefined> {
  const [user] = await tx.rows<Claimed>(sql`SELECT user_id AS "userId", email, display_name AS "displayName",
      status = 'active' AS active, password_hash AS "passwordHash"
    FROM portico.tenant_user WHERE organization_id = ${organizationId} AND lower(email) = lower(${email})`)
  return user
}

export async function findPasswordHash(tx: Tx, { organizationId, userId }: UserKey): Promise<string | null> {
  const [user] = await tx.rows<{ hash: string | null }>(sql`SELECT password_hash AS hash FROM portico.tenant_user
    WHERE organization_id = ${organizationId} AND user_id = ${userId}`)
  return user?.hash ?? null
}

/**
 * Puts another hash in place of the one that was verified, which may be the same, and holds the user until the end of the
 * transaction. False where the password or the status has changed in between: then nothing was proven.
 */
export async function replacePasswordHash(
  tx: Tx,
  { organizationId, userId, verified, hash }: UserKey & { readonly verified: string; readonly hash: string },
): Promise<boolean> {
  const held = await tx.rows(sql`SELECT FROM portico.tenant_user WHERE organization_id = ${organizationId}
    AND user_id = ${userId} AND status = 'active' AND password_hash = ${verified} FOR UPDATE`)
  if (held.length === 0) return false
  if (hash !== verified) await setPasswordHash(tx, { organizationId, userId, hash })
  return true
}

export async function setPasswordHash(
  tx: Tx,
  { organizationId, userId, hash }: UserKey & { readonly hash: string },
): Promise<void> {
  await tx.rows(sql`UPDATE portico.tenant_user SET password_hash = ${hash}
    WHERE organization_id = ${organizationId} AND user_id = ${userId}`)
}

export interface NewSession extends UserKey {
  readonly appId: string
  readonly keyId: string
  readonly secretHash: Buffer
  readonly scopes: readonly string[]
  readonly userAgent: string
  readonly address: string
  readonly createdAt: string
  readonly expiresAt: string
}

export async function insertSession(tx: Tx, session: NewSession): Promise<void> {
  await tx.rows(sql`INSERT INTO portico.credential (key_id, organization_id, app_id, kind, user_id, secret_hash, scopes,
      user_agent, address, created_at, expires_at)
    VALUES (${session.keyId}, ${session.organizationId}, ${session.appId}, 'ses', ${session.userId}, ${session.secretHash},
      ${session.scopes as string[]}, ${session.userAgent}, ${session.address}, ${session.createdAt}, ${session.expiresAt})`)
}

/** Drops the sessions of a user that are over, and the oldest ones beyond `keep`; the audit log remembers them. */
export async function dropOldSessions(
  tx: Tx,
  { organizationId, userId, now, keep }: UserKey & { readonly now: string; readonly keep: number },
): Promise<void> {
  const dropped = await tx.rows<{ held: boolean }>(sql`DELETE FROM portico.credential
    WHERE organization_id = ${organizationId} AND user_id = ${userId} AND kind = 'ses'
      AND (revoked_at IS NOT NULL OR expires_at <= ${now} OR key_id IN (
        SELECT key_id FROM portico.credential
        WHERE organization_id = ${organizationId} AND user_id = ${userId} AND kind = 'ses'
        ORDER BY created_at DESC, key_id OFFSET ${keep}))
    RETURNING revoked_at IS NULL AND expires_at > ${now} AS held`)
  if (dropped.some(({ held }) => held)) await bumpOrganization(tx, organizationId)
}

/**
 * Ends what a user is signed in with, at once and in every process: the session that is named; or everything but one
 * session, tokens that act for the user elsewhere included, as somebody expects who changes a password because of a theft.
 */
export async function revokeSessions(
  tx: Tx,
  {
    organizationId,
    userId,
    at,
    ...which
  }: UserKey & { readonly at: string } & ({ readonly only: string } | { readonly except: string | null }),
): Promise<void> {
  const chosen = 'only' in which ? sql`key_id = ${which.only}` : sql`key_id IS DISTINCT FROM ${which.except}`
  await tx.rows(sql`UPDATE portico.credential SET revoked_at = ${at}
    WHERE organization_id = ${organizationId} AND user_id = ${userId} AND revoked_at IS NULL AND ${chosen}`)
  await bumpOrganization(tx, organizationId)
}

async function bumpOrganization(tx: Tx, organizationId: string): Promise<void> {
  await tx.rows(sql`SELECT portico.bump_epoch(${organizationId})`)
}

interface SessionRow {
  readonly appId: string
  readonly organizationName: string
  readonly organizationSlug: string
  readonly userId: string
  readonly displayName: string
  readonly email: string
  readonly userTypeKey: string
  readonly isOwner: boolean
  readonly dataRoles: readonly { readonly dataRoleId: string; readonly key: string }[]
  readonly allLocations: boolean
  readonly locationIds: readonly string[]
  readonly expiresAt: string
}

/** A session as the API shows it, by what authentication itself goes by. Undefined where it was dropped just now. */
export async function readSession(tx: Tx, organizationId: string, keyId: string) {
  const [row] = await tx.rows<SessionRow>(sql`SELECT app_id AS "appId", organization_name AS "organizationName",
      organization_slug AS "organizationSlug", user_id AS "userId", display_name AS "displayName", email,
      user_type_key AS "userTypeKey", is_owner AS "isOwner", data_roles AS "dataRoles", all_locations AS "allLocations",
      location_ids AS "locationIds", expires_at AS "expiresAt"
    FROM portico.find_credential(${keyId}) WHERE organization_id = ${organizationId} AND kind = 'ses'`)
  if (!row) return undefined
  const { appId, organizationName, organizationSlug, dataRoles, allLocations, locationIds, expiresAt, ...user } = row
  return {
    saasAppId: appId,
    organization: { organizationId, name: organizationName, slug: organizationSlug },
    user,
    dataRoles,
    locations: user.isOwner || allLocations ? ('all' as const) : locationIds,
    expiresAt,
  }
}

/** The domain that links to the organisation may name. */
export async function findVerifiedDomain(tx: Tx, organizationId: string): Promise<string | null> {
  const [organization] = await tx.rows<{ domain: string | null }>(sql`SELECT custom_domain AS domain
    FROM portico.organization WHERE organization_id = ${organizationId} AND custom_domain_verified_at IS NOT NULL`)
  return organization?.domain ?? null
}

export interface NewReset extends UserKey {
  readonly tokenHash: Buffer
  readonly createdAt: string
  readonly expiresAt: string
  /** Nothing is made where there is one that was made after this, */
  readonly unlessSince: string
  /** or where so many can be used. */
  readonly most: number
}

/** Makes one more reset for a user. False where there is one that is too young for that, or where there are enough. */
export async function insertReset(tx: Tx, reset: NewReset): Promise<boolean> {
  const { organizationId, userId, tokenHash, createdAt, expiresAt, unlessSince, most } = reset
  // One after the other, so that those who ask at once are counted.
  await tx.rows(sql`SELECT FROM portico.tenant_user WHERE organization_id = ${organizationId} AND user_id = ${userId}
    FOR NO KEY UPDATE`)
  await tx.rows(sql`DELETE FROM portico.password_reset
    WHERE organization_id = ${organizationId} AND user_id = ${userId} AND expires_at <= ${createdAt}`)
  const made =
    await tx.rows(sql`INSERT INTO portico.password_reset (organization_id, user_id, token_hash, created_at, expires_at)
    SELECT ${organizationId}, ${userId}, ${tokenHash}, ${createdAt}, ${expiresAt}
    FROM (SELECT count(*) AS held, max(created_at) AS newest FROM portico.password_reset
      WHERE organization_id = ${organizationId} AND user_id = ${userId}) r
    WHERE r.held < ${most} AND (r.newest IS NULL OR r.newest <= ${unlessSince})
    RETURNING user_id`)
  return made.length > 0
}

interface ResetKey {
  readonly organizationId: string
  readonly tokenHash: Buffer
  readonly now: string
}

export async function existsReset(tx: Tx, { organizationId, tokenHash, now }: ResetKey): Promise<boolean> {
  const found = await tx.rows(sql`SELECT FROM portico.password_reset
    WHERE organization_id = ${organizationId} AND token_hash = ${tokenHash} AND expires_at > ${now}`)
  return found.length > 0
}

/** Uses a reset up, and all others of its user. Undefined where it is gone, or where its user is not active any more. */
export async function takeResets(
  tx: Tx,
  { organizationId, tokenHash, now }: ResetKey,
): Promise<Omit<Claimed, 'active' | 'passwordHash'> | undefined> {
  // The user first: of two who use two links of one user at once, the second finds none.
  const [user] = await tx.rows<Omit<Claimed, 'active' | 'passwordHash'>>(sql`SELECT u.user_id AS "userId", u.email,
      u.display_name AS "displayName"
    FROM portico.password_reset r
    JOIN portico.tenant_user u ON u.organization_id = r.organization_id AND u.user_id = r.user_id
    WHERE r.organization_id = ${organizationId} AND r.token_hash = ${tokenHash} AND r.expires_at > ${now}
      AND u.status = 'active' FOR NO KEY UPDATE OF u`)
  if (!user) return undefined
  const taken = await deleteResets(tx, { organizationId, userId: user.userId })
  return taken.some((hash) => hash.equals(tokenHash)) ? user : undefined
}

/** Returns the hashes of those that there were. */
export async function deleteResets(tx: Tx, { organizationId, userId }: UserKey): Promise<Buffer[]> {
  const deleted = await tx.rows<{ hash: Buffer }>(sql`DELETE FROM portico.password_reset
    WHERE organization_id = ${organizationId} AND user_id = ${userId} RETURNING token_hash AS hash`)
  return deleted.map(({ hash }) => hash)
}
