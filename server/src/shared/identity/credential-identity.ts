import sql from 'sql-template-tag'
import type { ApplicationCredentialKind, Caller, CallerUser } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Identity } from '../../kernel/exchange.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { requireHolding } from './prove.ts'

/** What the database says of a credential of an organisation, whoever presents it. */
export interface CredentialRow {
  readonly key_id: string
  readonly kind: ApplicationCredentialKind | 'drt'
  readonly app_id: string
  readonly application_archived: boolean
  readonly organization_id: string
  readonly organization_name: string
  readonly organization_slug: string
  readonly organization_status: 'active' | 'inactive'
  readonly secret_hash: Buffer
  readonly previous_secret_hash: Buffer | null
  readonly previous_expires_at: string | null
  readonly scopes: string[]
  readonly has_envelope: boolean
  readonly expires_at: string | null
  readonly revoked_at: string | null
  readonly user_id: string | null
  readonly display_name: string
  readonly email: string
  readonly user_status: 'active' | 'inactive' | null
  readonly user_type_key: string | null
  readonly is_owner: boolean | null
  readonly data_roles: { dataRoleId: string; key: string }[]
  readonly all_locations: boolean
  readonly location_ids: string[]
  readonly organization_epoch: unknown
  readonly application_epoch: unknown
}

/** The credential with this id, as it is now. It proves nothing about who asks. */
export async function findCredential(tx: Tx, keyId: string): Promise<CredentialRow | undefined> {
  const [row] = await tx.rows<CredentialRow>(sql`SELECT * FROM portico.find_credential(${keyId})`)
  return row
}

/** The same, of the organisation that the transaction is bound to. */
async function findOwnCredential(tx: Tx, keyId: string): Promise<CredentialRow | undefined> {
  const [row] = await tx.rows<CredentialRow>(sql`SELECT c.* FROM portico.find_credential(${keyId}) AS c
    WHERE c.organization_id = portico.current_organization()`)
  return row
}

interface Asked {
  readonly keyId: string
  readonly clock: Clock
  /** A delegated token runs out after minutes: what it has begun may go on. */
  readonly delegatedMayHaveRunOut?: true
}

/**
 * What a credential that is not being presented stands for now; undefined where it was revoked or has expired. Nobody proves
 * that it is theirs: what names it, and the transaction, must be of its organisation.
 */
export async function standingIdentity(tx: Tx, asked: Asked): Promise<Identity | undefined> {
  const row = await findOwnCredential(tx, asked.keyId)
  if (!row) return undefined
  const runsOn = asked.delegatedMayHaveRunOut === true && row.kind === 'dat'
  try {
    requireHolding(runsOn ? { ...row, expires_at: null } : row, asked.clock.now())
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
  return identityOf(row)
}

/**
 * Who acts when the service works for a credential that is not being presented: a webhook's events, an import that goes
 * on after the request. The rights are those of this moment; undefined where the credential was revoked, has expired, or
 * its organisation, user or application is not active.
 */
export async function standingCaller(tx: Tx, asked: Asked): Promise<Caller | undefined> {
  const identity = await standingIdentity(tx, asked)
  return identity?.refusal === null ? identity.caller : undefined
}

export function identityOf(row: CredentialRow): Identity {
  const user: CallerUser | null =
    row.user_id === null
      ? null
      : {
          userId: row.user_id,
          displayName: row.display_name,
          email: row.email,
          userTypeKey: row.user_type_key ?? '',
          isOwner: row.is_owner ?? false,
        }
  const caller: Caller = {
    // Refresh tokens are proven and refused before they could become a caller.
    credentialKind: row.kind as ApplicationCredentialKind,
    keyId: row.key_id,
    expiresAt: row.expires_at,
    appId: row.app_id,
    organizationId: row.organization_id,
    tenantId: row.organization_id,
    actor: user ? { kind: 'user', id: user.userId } : { kind: 'credential', id: row.key_id },
    organizationName: row.organization_name,
    organizationSlug: row.organization_slug,
    user,
    dataRoles: row.data_roles,
    dataRoleIds: row.data_roles.map((role) => role.dataRoleId),
    locationIds: row.all_locations ? 'all' : row.location_ids,
    scopes: new Set(row.scopes),
    unrestricted: user ? user.isOwner : row.kind === 'live' && !row.has_envelope,
    epochs: { organization: String(row.organization_epoch), application: String(row.application_epoch) },
  }
  if (row.application_archived) return { caller, refusal: 'application_archived' }
  if (row.organization_status !== 'active') return { caller, refusal: 'organization_inactive' }
  return { caller, refusal: row.user_status === 'inactive' ? 'user_inactive' : null }
}
