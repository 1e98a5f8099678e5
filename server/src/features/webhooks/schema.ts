import Type, { type Static } from 'typebox'
import { AppParams, Nullable, PageSize, Revision, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { Name } from '../../shared/identity/person-schemas.ts'
import { eventKey, eventVersion, exampleType } from '../../shared/outbox/envelope-schema.ts'
import { expectedRevision } from '../../shared/records/shapes.ts'

/** Shapes of subscriptions, and of the types of events that they can ask for. */
const exampleSubscriptionId = '0199a1b2-0000-7000-8000-0000000000cc'
export const subscriptionId = Uuid('The subscription.', exampleSubscriptionId)

export const SubscriptionParams = Strict({ ...AppParams, subscriptionId })

const scopes = ['account', 'app'] as const
const disabledReasons = ['manual', 'failing', 'gone', 'credential_revoked'] as const
export type DisabledReason = (typeof disabledReasons)[number]

export const urlLengthMax = 2048
const displayName = Name('What people call it.', 'Data warehouse')
const destinationUrl = Type.String({
  minLength: 1,
  maxLength: urlLengthMax,
  description: 'Where deliveries go: https, at a public address, without a user name or password.',
  examples: ['https://hooks.northwind.example/portico'],
})
const scope = Type.Enum([...scopes], {
  description:
    '`account`, unless said otherwise: events of the own organization. `app`: the lifecycle events of every organization of the application.',
  examples: ['account'],
})
export const objectKey = Type.String({
  minLength: 1,
  maxLength: 50,
  pattern: '^[a-z][a-z0-9-]*$',
  description: 'The key of an object, or of a native module.',
  examples: ['deal'],
})
const EventChoice = Strict({
  eventKey,
  eventVersion,
  objectKeys: Type.Optional(
    Type.Array(objectKey, {
      minItems: 1,
      maxItems: 100,
      description:
        'Of events about records and relationships: only those of these objects, a relationship when either end is. Without it: of every object that the credential may read, also of those that come later.',
      examples: [['deal', 'contacts']],
    }),
  ),
})
const events = Type.Array(EventChoice, {
  minItems: 1,
  maxItems: 50,
  description: 'What is delivered: each event at most once.',
  examples: [[{ eventKey: 'record.updated', eventVersion: '2026-11-20' }]],
})
const enabled = Type.Boolean({ description: 'Are events delivered?', examples: [true] })
export const CreateBody = Strict(
  {
    displayName,
    destinationUrl,
    scope: Type.Optional(scope),
    events,
    enabled: Type.Optional(
      Type.Boolean({ description: 'Are events delivered from the beginning?', default: true, examples: [true] }),
    ),
  },
  { title: 'WebhookSubscriptionCreate' },
)

export const ReplaceBody = Strict(
  {
    displayName,
    destinationUrl,
    scope: Type.Optional(scope),
    events,
    enabled: Type.Optional(
      Type.Boolean({ description: 'Are events delivered? Without it that stays as it is.', examples: [true] }),
    ),
    expectedRevision,
  },
  { title: 'WebhookSubscriptionReplace' },
)

export const RotateBody = Strict(
  {
    overlapSeconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 604_800,
        default: 0,
        description: 'How long deliveries are signed with the old secret as well: up to 7 days.',
        examples: [3600],
      }),
    ),
  },
  { title: 'WebhookSecretRotation' },
)

const Health = Strict(
  {
    consecutiveFailures: Type.Integer({
      minimum: 0,
      description: 'Failed attempts since the last success.',
      examples: [0],
    }),
    firstFailureAt: Nullable(Timestamp('When the first of them was; null while there is none.')),
    lastSuccessAt: Nullable(
      Timestamp(
        'When something was delivered last, within a minute; null: not since it was created, enabled again or got another destination.',
      ),
    ),
  },
  { description: 'How the receiver answers.' },
)

const fields = {
  subscriptionId,
  displayName,
  destinationUrl: Type.String({
    description: 'Where deliveries go, in the spelling that was checked.',
    examples: ['https://hooks.northwind.example/portico'],
  }),
  scope,
  events,
  enabled,
  disabledReason: Nullable(
    Type.Enum([...disabledReasons], {
      description:
        'Why it is disabled: by hand, after 5 days and 10 attempts without a success, because the receiver answered 410, or because the credential that it was saved with is gone.',
      examples: ['failing'],
    }),
  ),
  disabledAt: Nullable(Timestamp('When it was disabled; null while it is enabled.')),
  health: Health,
  secretHint: Type.String({ description: 'The last characters of the signing secret.', examples: ['bmU='] }),
  secretRotatedAt: Nullable(Timestamp('When the secret was replaced last; null: never yet.')),
  previousSecretExpiresAt: Nullable(Timestamp('Until then deliveries are signed with the secret before, too.')),
  revision: Revision,
  createdAt: Timestamp('When it was created.'),
  updatedAt: Timestamp('When it was changed last.'),
}

const exampleSubscription = {
  subscriptionId: exampleSubscriptionId,
  displayName: 'Data warehouse',
  destinationUrl: 'https://hooks.northwind.example/portico',
  scope: 'account',
  events: [{ eventKey: 'record.updated', eventVersion: '2026-11-20' }],
  enabled: true,
  disabledReason: null,
  disabledAt: null,
  health: { consecutiveFailures: 0, firstFailureAt: null, lastSuccessAt: '2026-09-14T09:31:00.000Z' },
  secretHint: 'bmU=',
  secretRotatedAt: null,
  previousSecretExpiresAt: null,
  revision: 1,
  createdAt: '2026-09-14T09:30:00.000Z',
  updatedAt: '2026-09-14T09:30:00.000Z',
} as const

export const Subscription = Strict(fields, { title: 'WebhookSubscription', examples: [exampleSubscription] })
export type SubscriptionView = Static<typeof Subscription>

const exampleSecret = 'whsec_ZXhhbXBsZSBvZiBhIHNlY3JldCwgbm90IGEgcmVhbCBvbmU='

export const SubscriptionWithSecret = Strict(
  {
    ...fields,
    secret: Type.String({
      description: 'Signs the deliveries. Shown this once: keep it where the receiver can read it.',
      examples: [exampleSecret],
    }),
  },
  {
    title: 'WebhookSubscriptionWithSecret',
    examples: [
      {
        ...exampleSubscription,
        health: { ...exampleSubscription.health, lastSuccessAt: null },
        secret: exampleSecret,
      },
    ],
  },
)

export const ListQuery = Strict({
  pageSize: Type.Optional(PageSize()),
  cursor: Type.Optional(Type.String({ description: '`nextCursor` of the page before.', examples: ['q83vEjRW'] })),
})

export const nextCursor = Nullable(
  Type.String({ description: 'Continues the list; null on the last page.', examples: ['q83vEjRW'] }),
)

export const SubscriptionList = Strict(
  { items: Type.Array(Subscription, { description: 'Subscriptions, newest first.' }), nextCursor },
  { title: 'WebhookSubscriptionList' },
)

export const TestSent = Strict(
  {
    subscriptionId,
    eventId: Uuid('The test. Its delivery is found by it.', '0199a1b2-0000-7000-8000-0000000000e1'),
    deliveriesUrl: Type.String({
      description: 'Where to see what became of it.',
      examples: ['/v1/apps/…/webhook-deliveries?eventId=…'],
    }),
  },
  { title: 'WebhookTestSent' },
)

export const EventTypeList = Strict(
  {
    items: Type.Array(
      Strict({
        eventKey,
        eventVersion,
        scopes: Type.Array(scope, {
          description: 'The scopes of subscriptions that can ask for it.',
          examples: [['account']],
        }),
        classification: Type.Enum(['sensitive', 'tenant', 'operational'], {
          description:
            'What its data may hold: `sensitive` names people, `tenant` is what the organization keeps in records, `operational` is neither.',
          examples: ['tenant'],
        }),
        description: Type.String({ description: 'When it is sent.', examples: [exampleType.description] }),
        dataSchema: Type.Record(Type.String(), Type.Unknown(), {
          description: 'The JSON Schema of its `data`.',
          examples: [exampleType.data],
        }),
        example: Type.Record(Type.String(), Type.Unknown(), {
          description: 'An example of its `data`.',
          examples: [exampleType.example],
        }),
      }),
      { description: 'Every type of event that there is.' },
    ),
  },
  { title: 'WebhookEventTypeList' },
)
