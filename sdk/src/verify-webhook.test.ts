import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { signOwn, signStandard, vectors } from '../test/signatures.ts'
import { verifyWebhook, type WebhookDelivery, WebhookVerificationError } from './verify-webhook.ts'

const { secret, timestamp, body, signature } = vectors[0]!
const now = Number(timestamp) * 1000
const headers = { 'X-Service-Timestamp': timestamp, 'X-Service-Signature': signature }
const genuine: WebhookDelivery = { headers, body, secret, now }

/** The event, or why there is none. */
async function outcome(delivery: Partial<WebhookDelivery>) {
  try {
    return await verifyWebhook({ ...genuine, ...delivery })
  } catch (error) {
    if (error instanceof WebhookVerificationError) return error.reason
    throw error
  }
}
const withHeaders = (changes: Record<string, string | undefined>) => outcome({ headers: { ...headers, ...changes } })
const event = expect.objectContaining({ type: 'membership.role_changed' })

test.each(vectors)('the vector holds: $note', async ({ body, ...vector }) => {
  const signed = { 'x-service-timestamp': vector.timestamp, 'x-service-signature': vector.signature }
  const result = await outcome({ headers: signed, body, secret: vector.secret })
  // An empty body is signed like any other, and is no event.
  expect(result).toEqual(body === '' ? 'malformed_body' : JSON.parse(body))
})

test('headers and body are taken in every form that servers give them', async () => {
  const bytes = new TextEncoder().encode(body)
  const inside = new Uint8Array([0, ...bytes, 0]).subarray(1, -1)
  for (const form of [
    new Headers(headers),
    { 'x-service-timestamp': [timestamp], 'x-service-signature': [signature] },
  ]) {
    expect(await outcome({ headers: form })).toEqual(event)
  }
  for (const form of [bytes, Buffer.from(body), bytes.buffer, inside])
    expect(await outcome({ body: form })).toEqual(event)
  expect(await outcome({ now: new Date(now) })).toEqual(event)
})

describe('the timestamp', () => {
  test.each([
    [0, event],
    [300, event],
    [-300, event],
    [301, 'timestamp_out_of_tolerance'],
    [-301, 'timestamp_out_of_tolerance'],
  ])('%i s from the clock of the receiver', async (apart, expected) => {
    expect(await outcome({ now: now + apart * 1000 })).toEqual(expected)
  })

  test('is held against the clock of the machine and five minutes where nothing else is said', async () => {
    const { now: _, ...delivery } = genuine
    await expect(verifyWebhook(delivery)).rejects.toMatchObject({ reason: 'timestamp_out_of_tolerance' })
    const recent = String(Math.floor(Date.now() / 1000) - 200)
    const signed = { 'x-service-timestamp': recent, 'x-service-signature': signOwn(secret, recent, body) }
    expect(await verifyWebhook({ ...delivery, headers: signed })).toEqual(event)
  })

  test('is refused where the clock or the tolerance is no number', async () => {
    expect(await outcome({ now: Number.NaN })).toBe('timestamp_out_of_tolerance')
    expect(await outcome({ toleranceSeconds: Number.NaN })).toBe('timestamp_out_of_tolerance')
  })

  test('is part of what is signed', async () => {
    expect(await withHeaders({ 'X-Service-Timestamp': String(Number(timestamp) + 1) })).toBe('signature_mismatch')
  })

  test.each(['', ' ', '1e9', '-1789378200', '1789378200.0', '0x6AA8', '١٧٨٩', '9'.repeat(13)])(
    '%j is no timestamp, whoever signed it',
    async (text) => {
      const signed = { 'X-Service-Timestamp': text, 'X-Service-Signature': signOwn(secret, text, body) }
      expect(await withHeaders(signed)).toBe('malformed_header')
    },
  )
})

describe('signatures', () => {
  const other = 'whsec_00000000000000000000000000000000'
  const old = signOwn(other, timestamp, body)

  test('of both secrets are sent while one replaces the other, and either verifies', async () => {
    for (const header of [`${signature},${old}`, `${old},${signature}`, `${old}, ${signature}`]) {
      expect(await withHeaders({ 'X-Service-Signature': header })).toEqual(event)
    }
    expect(await outcome({ secret: [other, secret] })).toEqual(event)
    expect(await outcome({ secret: [other] })).toBe('signature_mismatch')
  })

  test('of versions to come are passed over', async () => {
    expect(await withHeaders({ 'X-Service-Signature': `v2=abc,${signature}` })).toEqual(event)
    expect(await withHeaders({ 'X-Service-Signature': `v0=${signature.slice(3)}` })).toBe('malformed_header')
  })

  test.each(['', 'v1=', 'v1', signature.slice(3), signature.slice(0, -1), `${signature}0`, signature.toUpperCase()])(
    '%j is none',
    async (header) => {
      expect(await withHeaders({ 'X-Service-Signature': header })).toBe('malformed_header')
    },
  )

  test('in large numbers are not tried', async () => {
    const many = `${`${old},`.repeat(5)}${signature}`
    expect(await withHeaders({ 'X-Service-Signature': many })).toBe('signature_mismatch')
    expect(await withHeaders({ 'X-Service-Signature': `${signature},${'x'.repeat(2048)}` })).toBe('malformed_header')
  })

  test('do not hold for any other body, secret or signature', async () => {
    const bytes = new TextEncoder().encode(body)
    const change = fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }))
    await fc.assert(
      fc.asyncProperty(change, async ([at, flip]) => {
        const changed = bytes.slice()
        changed[at]! ^= flip
        expect(await outcome({ body: changed })).toBe('signature_mismatch')
      }),
    )
    expect(await outcome({ body: `${body} ` })).toBe('signature_mismatch')
    expect(await outcome({ secret: `${secret} ` })).toBe('signature_mismatch')
    const flipped = signature.replace(/.$/, (digit) => (digit === '0' ? '1' : '0'))
    expect(await withHeaders({ 'X-Service-Signature': flipped })).toBe('signature_mismatch')
  })

  test('are missing where either header is', async () => {
    for (const name of ['X-Service-Timestamp', 'X-Service-Signature']) {
      expect(await withHeaders({ [name]: undefined })).toBe('missing_header')
    }
    expect(await outcome({ headers: new Headers() })).toBe('missing_header')
  })
})

describe('headers of Standard Webhooks', () => {
  const id = '0199a1b2-0000-7000-8000-000000000001'
  const standard = (changes: Record<string, string> = {}, made = signStandard(secret, id, timestamp, body)) =>
    outcome({
      headers: { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': made, ...changes },
    })

  test('verify as well, with several signatures', async () => {
    expect(await standard()).toEqual(event)
    const made = signStandard(secret, id, timestamp, body)
    const other = signStandard('whsec_0000000000000000000000000000000A', id, timestamp, body)
    expect(await standard({}, `${other} v1a,abc ${made}`)).toEqual(event)
    expect(await standard({}, other)).toBe('signature_mismatch')
  })

  /** The example of the specification of Standard Webhooks. */
  test('agree with the libraries of others', async () => {
    const headers = {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    }
    const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    expect(await outcome({ headers, body: '{"test": 2432232314}', secret, now: 1_614_265_330_000 })).toEqual({
      test: 2432232314,
    })
  })

  test('are held to the same rules', async () => {
    expect(await standard({ 'webhook-id': 'another' })).toBe('signature_mismatch')
    expect(await standard({ 'webhook-timestamp': '1' })).toBe('timestamp_out_of_tolerance')
    expect(await standard({}, signature)).toBe('malformed_header')
    expect(await outcome({ headers: { 'webhook-timestamp': timestamp, 'webhook-signature': 'v1,a' } })).toBe(
      'missing_header',
    )
  })

  test('do not help a request whose own headers are wrong', async () => {
    const bad = { 'x-service-timestamp': timestamp, 'x-service-signature': signOwn('another', timestamp, body) }
    expect(await standard(bad)).toBe('signature_mismatch')
  })

  test('cannot be signed with a secret that is no Base64', async () => {
    const headers = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${'A'.repeat(43)}=` }
    expect(await outcome({ headers, secret: 'whsec_ключ-秘密' })).toBe('signature_mismatch')
  })
})

test('without a secret nothing is verified', async () => {
  for (const none of ['', [], [secret, '']]) await expect(outcome({ secret: none })).rejects.toThrow(TypeError)
})

test('a body that is no text is no event, however it is signed', async () => {
  const body = new Uint8Array([0x22, 0xff, 0x22])
  const signed = { 'x-service-timestamp': timestamp, 'x-service-signature': signOwn(secret, timestamp, body) }
  expect(await outcome({ headers: signed, body })).toBe('malformed_body')
})
