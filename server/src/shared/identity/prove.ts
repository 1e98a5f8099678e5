import type { KeyObject } from 'node:crypto'
import { fail } from '../../kernel/errors.ts'
import { hashSecret, sameHash, type Token } from './tokens.ts'

/** What the database keeps of a token. */
export interface KeptSecret {
  readonly secret_hash: Buffer
  readonly expires_at: string | null
  readonly revoked_at: string | null
  /** The secret before a rotation, as long as it overlaps. */
  readonly previous_secret_hash?: Buffer | null
  readonly previous_expires_at?: string | null
}

/** Throws unless the token's secret is the one that was kept, and still holds. */
export function prove(token: Token, kept: KeptSecret, { pepper, now }: { pepper: KeyObject; now: number }): void {
  const hash = hashSecret(pepper, token.secret)
  const overlaps = kept.previous_expires_at != null && Date.parse(kept.previous_expires_at) > now
  const proven = sameHash(hash, kept.secret_hash) || (overlaps && sameHash(hash, kept.previous_secret_hash ?? null))
  if (!proven) throw fail('credential_invalid')
  requireHolding(kept, now)
}

/** Throws when what was proven has been revoked or has expired. */
export function requireHolding(kept: KeptSecret, now: number): void {
  if (kept.revoked_at !== null) throw fail('credential_invalid')
  if (kept.expires_at !== null && Date.parse(kept.expires_at) <= now) throw fail('credential_expired')
}
