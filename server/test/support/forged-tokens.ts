import { crc32 } from 'node:zlib'
import type { CredentialKind } from '../../src/kernel/caller.ts'
import { makeToken } from '../../src/shared/identity/tokens.ts'

/** Whatever stands in an Authorization header and is not a token that was issued; `kinds` are those the door looks up. */
export function authorizationsThatNobodyIssued(token: string, kinds: readonly CredentialKind[]): string[] {
  const [, kind, keyId, rest] = token.split('_') as [string, CredentialKind, string, string]
  const secret = rest.slice(0, 43)
  const otherSecret = `${secret.startsWith('a') ? 'b' : 'a'}${secret.slice(1)}`
  return [
    'Bearer',
    'Bearer ',
    'Bearer null',
    `Basic ${Buffer.from(`x:${token}`).toString('base64')}`,
    token,
    `Bearer ${token}x`,
    `Bearer ${token.slice(0, -1)}`,
    `Bearer ${token.slice(0, -1)}${token.endsWith('0') ? '1' : '0'}`,
    `Bearer ptc_${kind}_${keyId}_${otherSecret}${rest.slice(43)}`,
    `Bearer ${withChecksum(`ptc_${kind}_${keyId}_${otherSecret}`)}`,
    ...kinds.filter((one) => one !== kind).map((one) => `Bearer ${withChecksum(`ptc_${one}_${keyId}_${secret}`)}`),
    ...kinds.map((one) => `Bearer ${makeToken(one).text}`),
    `Bearer ${'x'.repeat(10_000)}`,
  ]
}

const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** A well-formed token with a secret of somebody's choice. */
function withChecksum(body: string): string {
  let rest = crc32(body)
  let checksum = ''
  for (let i = 0; i < 6; i++) {
    checksum = alphabet[rest % 62] + checksum
    rest = Math.floor(rest / 62)
  }
  return body + checksum
}
