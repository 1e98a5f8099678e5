import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'

/** Every SQL statement that writes credentials. They run bound to the organisation. */
export interface NewCredential {
  readonly organizationId: string
  readonly appId: string
  readonly kind: 'live' | 'draft' | 'dat' | 'drt'
  readonly keyId: string
  readonly secretHash: Buffer
  readonly displayName: string
  readonly scopes: readonly string[]
  readonly userId?: string | null
  readonly expiresAt?: string | null
  readonly revokedAt?: string | null
  /** Without one a live credential sees the whole organisation. */
  readonly envelope?: { readonly dataRoleIds: readonly string[]; readonly locationIds: 'all' | readonly string[] }
}

export async function insertCredential(tx: Tx, credential: NewCredential): Promise<void> {
  const { organizationId, appId, kind, keyId, secretHash, displayName, scopes, envelope } = credential
  const locationIds = envelope?.locationIds ?? []
  await tx.rows(sql`INSERT INTO portico.credential (key_id, organization_id, app_id, kind, user_id, display_name, secret_hash,
      scopes, has_envelope, envelope_data_role_ids, envelope_all_locations, envelope_location_ids, expires_at, revoked_at)
    VALUES (${keyId}, ${organizationId}, ${appId}, ${kind}, ${credential.userId ?? null}, ${displayName}, ${secretHash},
      ${scopes as string[]}, ${envelope !== undefined}, ${(envelope?.dataRoleIds ?? []) as string[]},
      ${locationIds === 'all'}, ${locationIds === 'all' ? [] : (locationIds as string[])},
      ${credential.expiresAt ?? null}, ${credential.revokedAt ?? null})`)
}

export async function existsCredential(tx: Tx, keyId: string): Promise<boolean> {
  return (await tx.rows(sql`SELECT FROM portico.credential WHERE key_id = ${keyId}`)).length > 0
}
