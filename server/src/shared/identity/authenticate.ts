import { createSecretKey, timingSafeEqual } from 'node:crypto'
import sql from 'sql-template-tag'
import type { ApplicationCredentialKind, Caller, CallerUser } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { fail } from '../../kernel/errors.ts'
import type { Identity } from '../../kernel/pipeline.ts'
import type { Database } from '../database/database.ts'
import type { FailedCredentials } from './failed-credentials.ts'
import { type KeptSecret, prove, requireHolding } from './prove.ts'
import { parseToken, type Token } from './tokens.ts'

/**
 * Turns tokens into identities. What the database says of a credential is remembered, because it rarely changes; every
 * transaction then checks the two epochs it was read at, so a change of rights is seen by the very next request, and
 * `forget` drops what was remembered (kernel/pipeline.ts, StaleIdentity).
 */
export interface Authenticator {
  /** @param address where it comes from: what does not hold is counted by it */
  authenticate(token: string, address: string): Identity | Promise<Identity>
  forget(caller: Caller): void
}

interface CredentialRow {
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

interface Remembered {
  readonly row: CredentialRow
  readonly identity: Identity
  readonly readAtMs: number
  /** The secret that was proven last: comparing it takes 1 µs, an HMAC of it 25 µs. */
  proven?: string
}

/** Bounded: a flood of valid credentials costs look-ups, not memory. */
const rememberedMax = 10_000
/** The net under the epochs. */
const rememberedMs = 30_000

export function createAuthenticator(parts: {
  readonly database: Database
  readonly clock: Clock
  readonly pepper: Uint8Array
  readonly failed: FailedCredentials
}): Authenticator {
  const { database, clock, failed } = parts
  const pepper = createSecretKey(parts.pepper)
  const remembered = new Map<string, Remembered>()

  function verify(entry: Remembered, token: Token): Identity {
    const { row, identity } = entry
    if (entry.proven !== undefined && sameText(entry.proven, token.secret)) requireHolding(row, clock.now())
    else {
      prove(token, row, { pepper, now: clock.now() })
      // A secret that only overlaps a rotation has to be asked about each time.
      if (row.previous_secret_hash === null) entry.proven = token.secret
    }
    // A refresh token is good for renewing an access token, and for nothing that runs through here.
    if (token.kind === 'drt') throw fail('credential_kind_not_allowed')
    return identity
  }

  /** A builder session proves who somebody is, and that this is the wrong door. */
  async function refuseBuilder(token: Token): Promise<never> {
    const [session] = await database.as('portico_app', (tx) =>
      tx.rows<KeptSecret>(sql`SELECT * FROM portico.find_builder_session(${token.keyId})`),
    )
    if (!session) throw fail('credential_invalid')
    prove(token, session, { pepper, now: clock.now() })
    throw fail('credential_kind_not_allowed')
  }

  async function look(keyId: string): Promise<Remembered> {
    const [row] = await database.as('portico_app', (tx) =>
      tx.rows<CredentialRow>(sql`SELECT * FROM portico.find_credential(${keyId})`),
    )
    if (!row) throw fail('credential_invalid')
    const entry: Remembered = { row, identity: identityOf(row), readAtMs: clock.now() }
    if (remembered.size >= rememberedMax) remembered.delete(remembered.keys().next().value!)
    remembered.set(keyId, entry)
    return entry
  }

  return {
    authenticate(text, address) {
      const token = parseToken(text)
      if (!token) throw fail('credential_invalid')
      if (token.kind === 'bld') return failed.guard(token, address, () => refuseBuilder(token))
      const entry = remembered.get(token.keyId)
      if (entry && clock.now() - entry.readAtMs < rememberedMs && entry.row.kind === token.kind) {
        try {
          return verify(entry, token)
        } catch {
          // Memory may admit, and the epochs correct it; it may not refuse: a new secret, or a credential that holds
          // again, would be turned away for as long as the old state is remembered. What is looked up decides.
        }
      }
      return failed.guard(token, address, async () => {
        const found = await look(token.keyId)
        if (found.row.kind !== token.kind) throw fail('credential_invalid')
        return verify(found, token)
      })
    },
    forget: (caller) => void remembered.delete(caller.keyId),
  }
}

function sameText(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

function identityOf(row: CredentialRow): Identity {
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
