/**
 * Verifies deliveries of Portico's webhooks. One file without dependencies, on Web Crypto alone: Node 20 and later, Deno,
 * Bun, browsers and edge runtimes.
 */

/** What a delivery carries. Deduplicate by `id`; before applying an older event compare `occurredAt`. */
export interface WebhookEvent<Data = unknown> {
  readonly id: string
  readonly type: string
  readonly version: string
  /** ISO 8601. */
  readonly occurredAt: string
  readonly appId: string
  readonly subject: { readonly type: string; readonly id: string }
  readonly actor: { readonly kind: string; readonly [property: string]: unknown }
  readonly data: Data
}

export interface WebhookDelivery {
  /** As any server gives them: `Headers`, or an object such as `request.headers` of Node. Names in any case. */
  readonly headers: WebhookHeaders
  /** The raw body, before anything has parsed it. */
  readonly body: string | Uint8Array | ArrayBuffer
  /** The secret of the subscription; several while one replaces another. */
  readonly secret: string | readonly string[]
  /** How far the clocks of sender and receiver may be apart, either way; 300. */
  readonly toleranceSeconds?: number
  /** The receiver's clock; that of the machine. Milliseconds, as `Date.now()`. */
  readonly now?: number | Date
}

export type WebhookHeaders =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined }

export type WebhookRefusal =
  | 'missing_header'
  | 'malformed_header'
  | 'timestamp_out_of_tolerance'
  | 'signature_mismatch'
  | 'malformed_body'

const sentences: Readonly<Record<WebhookRefusal, string>> = {
  missing_header: 'The request carries no timestamp and signature of a webhook.',
  malformed_header: 'The timestamp or the signature does not have the form of one.',
  timestamp_out_of_tolerance: 'The timestamp is too far from the clock of this machine.',
  signature_mismatch: 'No signature was made with this secret over this body.',
  malformed_body: 'The signature is right, but the body is no JSON.',
}

/** The request is not a delivery to be trusted: answer 400, and do nothing else. */
export class WebhookVerificationError extends Error {
  override readonly name = 'WebhookVerificationError'
  readonly reason: WebhookRefusal

  constructor(reason: WebhookRefusal) {
    super(sentences[reason])
    this.reason = reason
  }
}

/** More than two are never sent; each costs a hash of the body. */
const signaturesMax = 5
const signatureHeaderLengthMax = 2048

const encoder = new TextEncoder()

/**
 * Returns the event of a delivery whose signature was made with one of the secrets, at a time near now; throws
 * `WebhookVerificationError` otherwise. Reads `X-Service-Timestamp` and `X-Service-Signature`, or where those are missing
 * the headers of Standard Webhooks (`webhook-id`, `webhook-timestamp`, `webhook-signature`). Signatures are compared in
 * constant time, by Web Crypto.
 */
export async function verifyWebhook<Data = unknown>(delivery: WebhookDelivery): Promise<WebhookEvent<Data>> {
  const secrets = typeof delivery.secret === 'string' ? [delivery.secret] : delivery.secret
  if (secrets.length === 0 || secrets.includes('')) throw new TypeError('A webhook is verified with a secret.')
  const body = typeof delivery.body === 'string' ? encoder.encode(delivery.body) : new Uint8Array(delivery.body)
  const scheme = readHeaders(delivery.headers)
  checkAge(scheme.timestamp, delivery)
  const signed = concatenate(encoder.encode(scheme.signedPrefix), body)
  let isGenuine = false
  for (const secret of secrets) {
    const bytes = scheme.keyOf(secret)
    if (!bytes) continue
    const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
    for (const signature of scheme.signatures) {
      if (await crypto.subtle.verify('HMAC', key, signature, signed)) isGenuine = true
    }
  }
  if (!isGenuine) throw new WebhookVerificationError('signature_mismatch')
  return parse<Data>(body)
}

type Bytes = Uint8Array<ArrayBuffer>

interface Scheme {
  /** Unix seconds, as they were sent. */
  readonly timestamp: string
  readonly signatures: readonly Bytes[]
  /** What is signed, before the body. */
  readonly signedPrefix: string
  keyOf(secret: string): Bytes | undefined
}

function readHeaders(headers: WebhookHeaders): Scheme {
  const own = pair(headers, 'x-service-timestamp', 'x-service-signature')
  if (own) {
    const signatures = split(own.signature, ',', /^v1=([0-9a-f]{64})$/, bytesOfHex)
    return { ...own, signatures, signedPrefix: `${own.timestamp}.`, keyOf: (secret) => encoder.encode(secret) }
  }
  const standard = pair(headers, 'webhook-timestamp', 'webhook-signature')
  const id = headerOf(headers, 'webhook-id')
  if (!standard || !id) throw new WebhookVerificationError('missing_header')
  const signatures = split(standard.signature, ' ', /^v1,([A-Za-z0-9+/]{43}=)$/, bytesOfBase64)
  const signedPrefix = `${id}.${standard.timestamp}.`
  return { ...standard, signatures, signedPrefix, keyOf: (secret) => bytesOfBase64(secret.replace(/^whsec_/, '')) }
}

function pair(headers: WebhookHeaders, timestampName: string, signatureName: string) {
  const timestamp = headerOf(headers, timestampName)
  const signature = headerOf(headers, signatureName)
  return timestamp === undefined || signature === undefined ? undefined : { timestamp, signature }
}

function headerOf(headers: WebhookHeaders, name: string): string | undefined {
  if (typeof headers.get === 'function') return headers.get(name) ?? undefined
  const entry = Object.entries(headers).find(([key]) => key.toLowerCase() === name)
  const value = entry?.[1] as string | readonly string[] | undefined
  return typeof value === 'object' ? value.join(',') : value
}

/** The signatures of a header that are of version 1; others belong to versions to come. */
function split(header: string, separator: string, form: RegExp, read: (text: string) => Bytes | undefined): Bytes[] {
  const parts = header.length <= signatureHeaderLengthMax ? header.split(separator) : []
  const signatures = parts.flatMap((part) => read(form.exec(part.trim())?.[1] ?? '') ?? [])
  const found = signatures.filter(({ length }) => length > 0).slice(0, signaturesMax)
  if (found.length === 0) throw new WebhookVerificationError('malformed_header')
  return found
}

function checkAge(timestamp: string, { toleranceSeconds = 300, now = Date.now() }: WebhookDelivery): void {
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('malformed_header')
  const apartSeconds = Math.abs(Math.floor(Number(now) / 1000) - Number(timestamp))
  // Written so that a clock that is no number refuses as well.
  if (!(apartSeconds <= toleranceSeconds)) throw new WebhookVerificationError('timestamp_out_of_tolerance')
}

function parse<Data>(body: Bytes): WebhookEvent<Data> {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as WebhookEvent<Data>
  } catch {
    throw new WebhookVerificationError('malformed_body')
  }
}

function concatenate(first: Uint8Array, second: Uint8Array): Bytes {
  const all = new Uint8Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

function bytesOfHex(text: string): Bytes {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))
}

/** Undefined: this is no Base64, or nothing. */
function bytesOfBase64(text: string): Bytes | undefined {
  try {
    const binary = atob(text)
    return binary === '' ? undefined : Uint8Array.from(binary, (character) => character.charCodeAt(0))
  } catch {
    return undefined
  }
}
