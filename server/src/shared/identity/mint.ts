import { createSecretKey } from 'node:crypto'
import type { CredentialKind } from '../../kernel/caller.ts'
import { hashSecret, makeToken } from './tokens.ts'

/** A new token: its text is shown once, its key id and the hash of its secret are kept. */
export interface MintedToken {
  readonly keyId: string
  readonly text: string
  readonly secretHash: Buffer
}

/** Makes tokens whose secrets can be proven later (`prove.ts`). */
export interface Mint {
  /** With the key id of an old token: a new secret for it. */
  token(kind: CredentialKind, keyId?: string): MintedToken
  /** The hash under which a one-time secret of a link is kept and found: an invitation, a password reset. */
  hashOf(secret: string): Buffer
}

export function createMint(pepper: Uint8Array): Mint {
  const key = createSecretKey(pepper)
  return {
    token(kind, ofKeyId) {
      const { keyId, text, secret } = makeToken(kind, ofKeyId)
      return { keyId, text, secretHash: hashSecret(key, secret) }
    },
    hashOf: (secret) => hashSecret(key, secret),
  }
}
