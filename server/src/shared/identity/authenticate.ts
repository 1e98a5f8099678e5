import { createSecretKey, timingSafeEqual } from 'node:crypto'
import sql from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { fail } from '../../kernel/errors.ts'
import type { Identity } from '../../kernel/exchange.ts'
import type { Database } from '../database/database.ts'
import { type CredentialRow, findCredential, identityOf } from './credential-identity.ts'
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
    const row = await database.as('portico_app', (tx) => findCredential(tx, keyId))
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
