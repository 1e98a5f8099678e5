import { createSecretKey } from 'node:crypto'
import sql from 'sql-template-tag'
import type { BuilderCaller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { fail } from '../../kernel/errors.ts'
import type { Identity } from '../../kernel/exchange.ts'
import { type BuilderRole, scopesOfRole } from '../../kernel/scopes.ts'
import type { Database } from '../database/database.ts'
import type { FailedCredentials } from './failed-credentials.ts'
import { prove } from './prove.ts'
import { parseToken } from './tokens.ts'

interface SessionRow {
  readonly key_id: string
  readonly account_id: string
  readonly builder_id: string
  readonly email: string
  readonly display_name: string
  readonly role: BuilderRole
  readonly secret_hash: Buffer
  readonly expires_at: string | null
  readonly revoked_at: string | null
  readonly account_epoch: unknown
}

/**
 * Turns the session tokens of builders into callers. Looked up each time: builders send few requests, and what their
 * sessions may do decides over everything else.
 */
export function createBuilderAuthenticator(parts: {
  readonly database: Database
  readonly clock: Clock
  readonly pepper: Uint8Array
  readonly failed: FailedCredentials
}): (token: string, address: string) => Promise<Identity<BuilderCaller>> {
  const { database, clock, failed } = parts
  const pepper = createSecretKey(parts.pepper)
  return async (text, address) => {
    const token = parseToken(text)
    if (!token) throw fail('credential_invalid')
    // Whether a credential of another kind is good is for its own door to say.
    if (token.kind !== 'bld') throw fail('credential_kind_not_allowed')
    return failed.guard(token, address, async () => {
      const [row] = await database.as('portico_app', (tx) =>
        tx.rows<SessionRow>(sql`SELECT * FROM portico.find_builder_session(${token.keyId})`),
      )
      if (!row) throw fail('credential_invalid')
      prove(token, row, { pepper, now: clock.now() })
      return { caller: callerOf(row), refusal: null }
    })
  }
}

function callerOf(row: SessionRow): BuilderCaller {
  return {
    credentialKind: 'bld',
    keyId: row.key_id,
    appId: null,
    tenantId: row.account_id,
    actor: { kind: 'builder', id: row.builder_id },
    scopes: new Set(scopesOfRole[row.role]),
    accountId: row.account_id,
    builderId: row.builder_id,
    email: row.email,
    displayName: row.display_name,
    role: row.role,
    accountEpoch: String(row.account_epoch),
  }
}
