import { createHmac, type KeyObject, randomInt, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { type CredentialKind, credentialKinds } from '../../kernel/caller.ts'

/**
 * Tokens of the form `ptc_<kind>_<keyId>_<secret><crc>` (contract 2): base62, 12 characters of key id, 43 of secret (256
 * bits), 6 of CRC-32, so that a mistyped or leaked token is recognised without asking the database. The prefix is what
 * secret scanners look for.
 */
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const shape = new RegExp(`^ptc_(${credentialKinds.join('|')})_([0-9A-Za-z]{12})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$`)

export interface Token {
  readonly kind: CredentialKind
  readonly keyId: string
  readonly secret: string
}

/** Reads a token, or returns undefined where its form or its checksum is wrong. */
export function parseToken(text: string): Token | undefined {
  const [, kind, keyId, secret, checksum] = shape.exec(text) ?? []
  if (kind === undefined || keyId === undefined || secret === undefined) return undefined
  if (checksum !== checksumOf(`ptc_${kind}_${keyId}_${secret}`)) return undefined
  return { kind: kind as CredentialKind, keyId, secret }
}

/** Makes a new token, or a new secret for the key id of an old one. Its text is shown once and kept nowhere. */
export function makeToken(kind: CredentialKind, keyId = randomBase62(12)): Token & { readonly text: string } {
  const secret = randomBase62(43)
  const body = `ptc_${kind}_${keyId}_${secret}`
  return { kind, keyId, secret, text: `${body}${checksumOf(body)}` }
}

/**
 * What the database keeps of a secret. The pepper is not in the database, so a stolen table opens nothing. As a key object
 * it takes 2 µs, as bytes, which are made into one each time, 12 µs.
 */
export function hashSecret(pepper: KeyObject | Uint8Array, secret: string): Buffer {
  return createHmac('sha256', pepper).update(secret).digest()
}

/** Compares in constant time. */
export function sameHash(a: Buffer, b: Buffer | null): boolean {
  return b !== null && a.length === b.length && timingSafeEqual(a, b)
}

function checksumOf(body: string): string {
  let rest = crc32(body)
  let text = ''
  for (let i = 0; i < 6; i++) {
    text = alphabet[rest % 62] + text
    rest = Math.floor(rest / 62)
  }
  return text
}

function randomBase62(length: number): string {
  return Array.from({ length }, () => alphabet[randomInt(62)]).join('')
}
