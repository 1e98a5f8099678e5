import { randomBytes } from 'node:crypto'

/**
 * A new signing secret: `whsec_` and 32 random bytes in Base64, the form of Standard Webhooks. The key of
 * X-Service-Signature is its text as a whole, in UTF-8.
 */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`
}

/** What people recognise a secret by. */
export function hintOf(secret: string): string {
  return secret.slice(-4)
}

/** What a sealed secret belongs to: it cannot be opened as another subscription's. */
export function sealedFor(subscriptionId: string): readonly string[] {
  return ['webhook-secret', subscriptionId]
}
