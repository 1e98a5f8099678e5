import { randomBytes, randomInt } from 'node:crypto'
import { Secret, TOTP } from 'otpauth'
import { fail } from '../../../kernel/errors.ts'
import { type BuilderRole, scopesOfRole } from '../../../kernel/scopes.ts'

/** Longest that a session lasts. */
export const sessionMs = 12 * 60 * 60_000
/** Sessions that one person has in one account at once. */
export const sessionsMax = 50
export const invitationMs = 7 * 24 * 60 * 60_000
export const passwordResetMs = 60 * 60_000
/** Members and pending invitations of one account. */
export const teamMax = 200

/** The secret of a one-time link: 256 bits. What is kept is its hash (`mint.hashOf`). */
export function newLinkSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** Only owners make owners, change them or send them away. */
export function requireOwnerAmong(actor: BuilderRole, ...roles: readonly BuilderRole[]): void {
  if (actor !== 'owner' && roles.includes('owner')) {
    throw fail('permission_denied', { message: 'Only an owner may make, change or remove an owner.' })
  }
}

/** May somebody invite to this role who has that one, or, with null, is no member any more? */
export function mayInvite(inviter: BuilderRole | null, invited: BuilderRole): boolean {
  if (inviter === null || !scopesOfRole[inviter].includes('account.manage')) return false
  return inviter === 'owner' || invited !== 'owner'
}

/** An account without an owner could never have one again. */
export function requireOwnerLeft(
  members: readonly { readonly builderId: string; readonly role: BuilderRole }[],
  builderId: string,
  next: BuilderRole | null,
): void {
  if (next === 'owner') return
  const owners = members.filter(({ role }) => role === 'owner')
  if (owners.length === 1 && owners[0]!.builderId === builderId) throw fail('last_owner')
}

const issuer = 'Portico'
const periodSeconds = 30
const secretBytes = 20

/** A second factor by RFC 6238, with what authenticators take for granted: HMAC-SHA-1, six digits, 30 seconds. */
function authenticator(secret: Secret, label = ''): TOTP {
  return new TOTP({ issuer, label, secret, algorithm: 'SHA1', digits: 6, period: periodSeconds })
}

/** A new secret of 160 bits (RFC 4226 section 4, R6), as text and as the URI of a QR code. */
export function newTotp(email: string): { readonly secret: string; readonly otpauthUri: string } {
  const secret = new Secret({ size: secretBytes })
  return { secret: secret.base32, otpauthUri: authenticator(secret, email).toString() }
}

/**
 * The time step that a code belongs to, when it is the one of now, of the step before or of the one after (RFC 6238 5.2);
 * undefined when it is none of them, or when that step or a later one was used before.
 */
export function totpStepOf(secret: string, code: string, lastStep: number | null, now: number): number | undefined {
  const delta = authenticator(Secret.fromBase32(secret)).validate({ token: code, timestamp: now, window: 1 })
  if (delta === null) return undefined
  const step = TOTP.counter({ period: periodSeconds, timestamp: now }) + delta
  return lastStep !== null && step <= lastStep ? undefined : step
}

const recoveryCodes = 10
/** Base 32 without letters that are read as digits (Crockford). */
const recoveryAlphabet = '0123456789abcdefghjkmnpqrstvwxyz'

/** Ten codes of 50 bits each, in two halves that can be read out. */
export function newRecoveryCodes(): string[] {
  const half = () => Array.from({ length: 5 }, () => recoveryAlphabet[randomInt(32)]).join('')
  return Array.from({ length: recoveryCodes }, () => `${half()}-${half()}`)
}

export function isRecoveryCode(code: string): boolean {
  return code.includes('-')
}
