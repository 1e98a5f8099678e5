import type { Json } from './json-schema.ts'
import type { Projection } from './projection.ts'

/** An event that the service sends to whoever subscribed to it. */
export interface ContractEvent {
  readonly eventKey: string
  readonly description: string
  /** The schema of what is sent; it has a title. */
  readonly schema: object
  /** The scope that a subscription to it takes beside `webhooks.manage`; null: none. */
  readonly requires: string | null
}

/** What the service sends, as OpenAPI 3.1 says it: requests that a receiver answers. */
export function webhooksOf(events: readonly ContractEvent[], projection: Projection): Json {
  return Object.fromEntries(
    events.map(({ eventKey, description, schema, requires }) => {
      const operation = {
        operationId: `on${(schema as { title: string }).title}`,
        summary: description.split('. ')[0]!.replace(/\.?$/, '.'),
        description: `${description}\n\n${manners}`,
        tags: ['Webhooks'],
        parameters: headers.map(([name, header]) => projection.parameter(name, header)),
        requestBody: { required: true, content: { 'application/json': { schema: projection.schemas.use(schema) } } },
        responses,
        // The receiver knows the sender by the signature.
        security: [],
        ...(requires && { 'x-required-scope': requires }),
      }
      return [eventKey, { post: operation }]
    }),
  )
}

const manners =
  'Sent to the destination of each subscription that asks for it, at least once and in no order. Verify the signature, and ignore an `id` that you had.'

const responses = {
  '2XX': { description: 'Received. Answer within 15 seconds; what takes longer belongs after the answer.' },
  410: { description: 'The receiver is gone: its subscription is disabled.' },
  default: { description: 'Not received: it is sent again later, in ten attempts over some three days.' },
}

const header = (name: string, description: string, example: string): readonly [string, Json] => [
  name,
  { name, in: 'header', required: true, description, schema: { type: 'string' }, example },
]

const exampleEventId = '0199a1b2-0000-7000-8000-0000000000e1'
const headers = [
  header('X-Service-Timestamp', 'Unix seconds, part of what is signed.', '1789378200'),
  header(
    'X-Service-Signature',
    '`v1=` and the hexadecimal HMAC-SHA256 of timestamp, a period and the body; two, with a comma between, while a secret is replaced.',
    `v1=${'5f'.repeat(32)}`,
  ),
  header('X-Service-Delivery', 'The delivery.', '0199a1b2-0000-7000-8000-0000000000d1'),
  header('X-Service-Event', 'The event: the same in every delivery of it.', exampleEventId),
  header('webhook-id', 'The event, for verifiers of Standard Webhooks.', exampleEventId),
  header('webhook-timestamp', 'Unix seconds, for verifiers of Standard Webhooks.', '1789378200'),
  header(
    'webhook-signature',
    'For verifiers of Standard Webhooks: `v1,` and the Base64 of the HMAC-SHA256.',
    'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=',
  ),
]
