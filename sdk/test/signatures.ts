import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** The vectors of the contract, and a signer of its own: with node:crypto, so that the verifier is not held against itself. */
export interface SignatureVector {
  readonly note: string
  readonly secret: string
  readonly timestamp: string
  readonly body: string
  readonly signature: string
}

const file = new URL('./vectors/webhook-signatures.json', import.meta.url)
export const vectors = (JSON.parse(readFileSync(file, 'utf8')) as { cases: SignatureVector[] }).cases

export function signOwn(secret: string, timestamp: string, body: string | Uint8Array): string {
  return `v1=${createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')}`
}

/** The scheme of Standard Webhooks: the key is what follows `whsec_`, in Base64. */
export function signStandard(secret: string, id: string, timestamp: string, body: string | Uint8Array): string {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}
