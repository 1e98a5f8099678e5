import { Secret, TOTP } from 'otpauth'
import { createPasswords } from '../../src/shared/identity/passwords.ts'
import type { Answer } from './http-client.ts'
import type { Platform, TestBuilder } from './platform.ts'

export const password = 'correct horse battery staple'
let hashed: Promise<string> | undefined

/** People of tests have no password; this gives one of them `password`. */
export async function givePassword({ db }: Platform, { builderId }: Pick<TestBuilder, 'builderId'>): Promise<void> {
  hashed ??= createPasswords().hash(password)
  const values = [await hashed, builderId]
  await db.database.as('portico_owner', (tx) =>
    tx.rows({ text: 'UPDATE portico.builder SET password_hash = $1 WHERE builder_id = $2', values }),
  )
}

export interface SignedInAnswer {
  readonly token: string
  readonly session: { readonly sessionId: string; readonly expiresAt: string; readonly label: string }
  readonly account: { readonly accountId: string; readonly name: string }
  readonly builder: { readonly builderId: string; readonly email: string; readonly totpEnabled: boolean }
  readonly role: string
  readonly accounts: readonly { readonly accountId: string; readonly role: string }[]
}

export function signIn(
  { call }: Pick<Platform, 'call'>,
  email: string,
  more: Readonly<Record<string, unknown>> = {},
): Promise<Answer<SignedInAnswer>> {
  return call('POST', '/v1/platform/sessions', { body: { email, password, ...more } })
}

/** What an authenticator shows at that time. */
export function codeAt(secret: string, time: number): string {
  return new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: time })
}

/** The one-time token of the newest mail to an address. */
export function linkTokenOf({ mailbox }: Platform, address: string): string {
  const { text } = mailbox.newestTo(address)
  return /#token=([\w-]{43})\b/.exec(text)![1]!
}
