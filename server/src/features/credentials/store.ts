import sql, { empty } from 'sql-template-tag'
import type { ApplicationScope } from '../../kernel/scopes.ts'
import type { Tx } from '../../kernel/transaction.ts'

/** Every SQL statement about credentials. They run bound to the organisation. */
export interface NewCredential {
  readonly organizationId: string
  readonly appId: string
  readonly kind: 'live' | 'draft' | 'dat' | 'drt' | 'ses'
  readonly keyId: string
  readonly secretHash: Buffer
  readonly displayName: string
  readonly scopes: readonly string[]
  readonly userId?: string | null
  /** The builder who issues it. */
  readonly createdBy?: string | null
  readonly createdAt?: string
  readonly expiresAt?: string | null
  readonly revokedAt?: string | null
  /** Without one a live credential sees the whole organisation. */
  readonly envelope?: { readonly dataRoleIds: readonly string[]; readonly locationIds: 'all' | readonly string[] }
}

export async function insertCredential(tx: Tx, credential: NewCredential): Promise<void> {
  const { organizationId, appId, kind, keyId, secretHash, displayName, scopes, envelope } = credential
  const locationIds = envelope?.locationIds ?? []
  await tx.rows(sql`INSERT INTO portico.credential (key_id, organization_id, app_id, kind, user_id, display_name, secret_hash,
      scopes, has_envelope, envelope_data_role_ids, envelope_all_locations, envelope_location_ids, created_by, created_at,
      expires_at, revoked_at)
    VALUES (${keyId}, ${organizationId}, ${appId}, ${kind}, ${credential.userId ?? null}, ${displayName}, ${secretHash},
      ${scopes as string[]}, ${envelope !== undefined}, ${(envelope?.dataRoleIds ?? []) as string[]},
      ${locationIds === 'all'}, ${locationIds === 'all' ? [] : (locationIds as string[])},
      ${credential.createdBy ?? null}, coalesce(${credential.createdAt ?? null}::timestamptz, now()),
      ${credential.expiresAt ?? null}, ${credential.revokedAt ?? null})`)
}

export async function existsCredential(tx: Tx, keyId: string): Promise<boolean> {
  return (await tx.rows(sql`SELECT FROM portico.credential WHERE key_id = ${keyId}`)).length > 0
}

/** A live or draft credential. Those of users are not a builder's to see. */
export interface CredentialRow {
  readonly keyId: string
  readonly saasAppId: string
  readonly kind: 'live' | 'draft'
  readonly displayName: string
  readonly scopes: ApplicationScope[]
  readonly hasEnvelope: boolean
  readonly dataRoleIds: string[]
  readonly allLocations: boolean
  readonly locationIds: string[]
  readonly createdAt: string
  readonly createdBy: string | null
  readonly rotatedAt: string | null
  readonly expiresAt: string | null
  readonly lastUsedAt: string | null
  readonly previousSecretExpiresAt: string | null
  readonly revokedAt: string | null
}

const columns = sql`key_id AS "keyId", app_id AS "saasAppId", kind, display_name AS "displayName", scopes,
  has_envelope AS "hasEnvelope", envelope_data_role_ids AS "dataRoleIds", envelope_all_locations AS "allLocations",
  envelope_location_ids AS "locationIds", created_at AS "createdAt", created_by AS "createdBy", rotated_at AS "rotatedAt",
  expires_at AS "expiresAt", last_used_at AS "lastUsedAt", previous_expires_at AS "previousSecretExpiresAt",
  revoked_at AS "revokedAt"`

export interface CredentialSelection {
  readonly organizationId: string
  readonly status: 'active' | 'expired' | 'revoked' | undefined
  /** What `status` is told at, ISO 8601. */
  readonly now: string
  /** `createdAt` and `keyId` of the last one before. */
  readonly after: readonly string[] | null
  readonly limit: number
}

/** Newest first. */
export async function findCredentials(tx: Tx, selection: CredentialSelection): Promise<CredentialRow[]> {
  const { organizationId, status, now, after, limit } = selection
  const conditions = {
    active: sql`AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ${now})`,
    expired: sql`AND revoked_at IS NULL AND expires_at <= ${now}`,
    revoked: sql`AND revoked_at IS NOT NULL`,
  }
  return tx.rows(sql`SELECT ${columns} FROM portico.credential
    WHERE organization_id = ${organizationId} AND kind IN ('live', 'draft') ${status ? conditions[status] : empty}
      ${after ? sql`AND (created_at, key_id) < (${after[0]}::timestamptz, ${after[1]})` : empty}
    ORDER BY created_at DESC, key_id DESC LIMIT ${limit}`)
}

/** Locked until the transaction ends, so that rotations and revocations come one after the other. */
export async function lockCredential(
  tx: Tx,
  organizationId: string,
  keyId: string,
): Promise<CredentialRow | undefined> {
  const [row] = await tx.rows<CredentialRow>(sql`SELECT ${columns} FROM portico.credential
    WHERE organization_id = ${organizationId} AND key_id = ${keyId} AND kind IN ('live', 'draft') FOR NO KEY UPDATE`)
  return row
}

/** Puts a new secret in the place of the old one, which goes on working until `overlapsUntil`, or ends at once. */
export async function replaceSecret(
  tx: Tx,
  organizationId: string,
  keyId: string,
  { secretHash, rotatedAt, overlapsUntil }: { secretHash: Buffer; rotatedAt: string; overlapsUntil: string | null },
): Promise<CredentialRow> {
  const [row] = await tx.rows<CredentialRow>(sql`UPDATE portico.credential
    SET previous_secret_hash = CASE WHEN ${overlapsUntil}::timestamptz IS NOT NULL THEN secret_hash END,
      previous_expires_at = ${overlapsUntil}, secret_hash = ${secretHash}, rotated_at = ${rotatedAt},
      revision = revision + 1
    WHERE organization_id = ${organizationId} AND key_id = ${keyId} RETURNING ${columns}`)
  return row!
}

export async function revoke(tx: Tx, organizationId: string, keyId: string, at: string): Promise<CredentialRow> {
  const [row] = await tx.rows<CredentialRow>(sql`UPDATE portico.credential
    SET revoked_at = ${at}, previous_secret_hash = NULL, previous_expires_at = NULL, revision = revision + 1
    WHERE organization_id = ${organizationId} AND key_id = ${keyId} RETURNING ${columns}`)
  return row!
}

/** Called in the transaction of every change to what somebody of the organisation may do. */
export async function bumpOrganization(tx: Tx, organizationId: string): Promise<void> {
  await tx.rows(sql`SELECT portico.bump_epoch(${organizationId})`)
}

/** The application that the organisation belongs to. */
export async function applicationOf(tx: Tx, organizationId: string): Promise<{ appId: string; archived: boolean }> {
  const [row] = await tx.rows<{ appId: string; archived: boolean }>(sql`
    SELECT a.app_id AS "appId", a.archived_at IS NOT NULL AS archived
    FROM portico.organization o JOIN portico.application a ON a.app_id = o.app_id
    WHERE o.organization_id = ${organizationId}`)
  return row!
}
