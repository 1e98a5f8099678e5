import { expect, test } from 'vitest'
import { signStandard, vectors } from '../../../../../sdk/test/signatures.ts'
import { signatureHeaders } from './signing.ts'

const ids = { deliveryId: 'the delivery', eventId: 'the event' }

test.each(vectors)('the vector holds: $note', ({ secret, timestamp, body, signature }) => {
  const headers = signatureHeaders({ ...ids, timestamp: Number(timestamp), body, secrets: [secret] })
  expect(headers).toMatchObject({
    'x-service-timestamp': timestamp,
    'x-service-signature': signature,
    'x-service-delivery': 'the delivery',
    'x-service-event': 'the event',
    'webhook-id': 'the event',
    'webhook-timestamp': timestamp,
    'webhook-signature': signStandard(secret, 'the event', timestamp, body),
  })
})

test('two secrets make two signatures, the new one first', () => {
  const { body, timestamp } = vectors[0]!
  const sign = (...secrets: string[]) => signatureHeaders({ ...ids, timestamp: Number(timestamp), body, secrets })
  const [both, first, second] = [sign('whsec_bmV3', 'whsec_b2xk'), sign('whsec_bmV3'), sign('whsec_b2xk')]
  expect(both['x-service-signature']).toBe(`${first['x-service-signature']},${second['x-service-signature']}`)
  expect(both['webhook-signature']).toBe(`${first['webhook-signature']} ${second['webhook-signature']}`)
})
