import { createHmac } from 'node:crypto'

/** What is signed, and with which secrets: the one that holds, and while it replaces another that one too, in this order. */
export interface ToSign {
  readonly deliveryId: string
  readonly eventId: string
  /** Unix seconds. */
  readonly timestamp: number
  readonly body: string
  readonly secrets: readonly string[]
}

/**
 * The headers of a delivery (specification 6.4), and those of Standard Webhooks beside them, whose id is the event's: receivers
 * deduplicate by it. The same secret has two keys: the bytes of its text, and what its Base64 stands for.
 */
export function signatureHeaders({ deliveryId, eventId, timestamp, body, secrets }: ToSign): Record<string, string> {
  return {
    'x-service-timestamp': String(timestamp),
    'x-service-signature': secrets.map((secret) => signOwn(secret, timestamp, body)).join(','),
    'x-service-delivery': deliveryId,
    'x-service-event': eventId,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((secret) => signStandard(secret, eventId, timestamp, body)).join(' '),
  }
}

/** `v1=` and the HMAC-SHA256 in hexadecimal over timestamp, a period and the body. */
export function signOwn(secret: string, timestamp: number | string, body: string): string {
  return `v1=${createHmac('sha256', secret).update(`${timestamp}.`).update(body).digest('hex')}`
}

function signStandard(secret: string, id: string, timestamp: number, body: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`
}
