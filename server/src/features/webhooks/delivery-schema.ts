import Type, { type Static } from 'typebox'
import { AppParams, Nullable, PageSize, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { eventKey, eventVersion } from '../../shared/outbox/envelope-schema.ts'
import { fetchCategories } from '../../shared/safe-fetch/categories.ts'
import { nextCursor, subscriptionId } from './schema.ts'

/** Shapes of deliveries and of their attempts. */
export const deliveryStates = ['pending', 'delivering', 'retrying', 'delivered', 'failed'] as const
export type DeliveryState = (typeof deliveryStates)[number]

/** What became of an attempt, or of a delivery (contract 6). */
export const deliveryCategories = [...fetchCategories, 'worker_lost', 'subscription_disabled'] as const
export type DeliveryCategory = (typeof deliveryCategories)[number]

const deliveryId = Uuid('The delivery.', '0199a1b2-0000-7000-8000-0000000000d1')
const eventId = Uuid('The event. Every delivery of it carries the same id.', '0199a1b2-0000-7000-8000-0000000000e1')
const category = Type.Enum([...deliveryCategories], {
  description: 'What became of it, in one word.',
  examples: ['http_5xx'],
})

export const DeliveryParams = Strict({ ...AppParams, deliveryId })

const Attempt = Strict(
  {
    attemptNumber: Type.Integer({ minimum: 1, description: 'Counts the attempts, from 1.', examples: [1] }),
    trigger: Type.Enum(['schedule', 'manual', 'recover', 'test'], {
      description: 'What it was due to: the schedule, or somebody who asked for it.',
      examples: ['schedule'],
    }),
    startedAt: Timestamp('When it began.'),
    durationMs: Type.Integer({
      minimum: 0,
      description: 'From looking up the name to the end of the answer.',
      examples: [84],
    }),
    httpStatus: Nullable(Type.Integer({ description: 'The status of the answer; null without one.', examples: [503] })),
    category,
    responseExcerpt: Nullable(
      Type.String({
        description:
          'How the answer begins, at most 4 KiB; null without one. It is what the receiver wrote: do not trust it.',
        examples: ['Service Unavailable'],
      }),
    ),
    responseTruncated: Type.Boolean({ description: 'Was the answer longer?', examples: [false] }),
  },
  { title: 'WebhookAttempt' },
)

export const Delivery = Strict(
  {
    deliveryId,
    subscriptionId,
    eventId,
    eventKey,
    eventVersion,
    organizationId: Uuid('The organization that the event is about.'),
    state: Type.Enum([...deliveryStates], {
      description:
        '`pending` waits for its attempt, `delivering` is under way, `retrying` waits for the next one; `delivered` and `failed` are over.',
      examples: ['retrying'],
    }),
    attemptCount: Type.Integer({
      minimum: 0,
      description:
        'How many attempts were made; one that broke off because a process of the service died does not count.',
      examples: [1],
    }),
    maxAttempts: Type.Integer({ minimum: 1, description: 'It is given up after so many.', examples: [10] }),
    nextAttemptAt: Nullable(Timestamp('When it is due; null while an attempt is under way, and when it is over.')),
    createdAt: Timestamp('When the event was to be delivered.'),
    completedAt: Nullable(Timestamp('When it was over; null before.')),
    retryEligible: Type.Boolean({
      description: 'Can it be tried once more by hand? It can when it failed and its subscription is still there.',
      examples: [false],
    }),
    attempts: Type.Array(Attempt, { description: 'The last 20 attempts, in their order.' }),
  },
  {
    title: 'WebhookDelivery',
    examples: [
      {
        deliveryId: '0199a1b2-0000-7000-8000-0000000000d1',
        subscriptionId: '0199a1b2-0000-7000-8000-0000000000cc',
        eventId: '0199a1b2-0000-7000-8000-0000000000e1',
        eventKey: 'record.updated',
        eventVersion: '2026-11-20',
        organizationId: '0199a1b2-0000-7000-8000-000000000001',
        state: 'retrying',
        attemptCount: 1,
        maxAttempts: 10,
        nextAttemptAt: '2026-09-14T09:30:05.200Z',
        createdAt: '2026-09-14T09:30:00.000Z',
        completedAt: null,
        retryEligible: false,
        attempts: [
          {
            attemptNumber: 1,
            trigger: 'schedule',
            startedAt: '2026-09-14T09:30:00.020Z',
            durationMs: 84,
            httpStatus: 503,
            category: 'http_5xx',
            responseExcerpt: 'Service Unavailable',
            responseTruncated: false,
          },
        ],
      },
    ],
  },
)
export type DeliveryView = Static<typeof Delivery>

export const DeliveryQuery = Strict({
  subscriptionId: Type.Optional(subscriptionId),
  eventId: Type.Optional(eventId),
  eventKey: Type.Optional(eventKey),
  state: Type.Optional(
    Type.Enum([...deliveryStates], { description: 'Only deliveries in this state.', examples: ['failed'] }),
  ),
  category: Type.Optional(
    Type.Enum([...deliveryCategories], {
      description: 'Only deliveries that came to this, the last attempt of those that are not over.',
      examples: ['timeout'],
    }),
  ),
  createdFrom: Type.Optional(Timestamp('Only deliveries from this moment on.')),
  createdTo: Type.Optional(Timestamp('Only deliveries before this moment.', '2026-09-15T09:30:00.000Z')),
  pageSize: Type.Optional(PageSize(100)),
  cursor: Type.Optional(Type.String({ description: '`nextCursor` of the page before.', examples: ['q83vEjRW'] })),
})

export const DeliveryList = Strict(
  { items: Type.Array(Delivery, { description: 'Deliveries, newest first.' }), nextCursor },
  { title: 'WebhookDeliveryList' },
)
