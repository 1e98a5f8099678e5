import Type, { type TObject } from 'typebox'
import type { Caller } from '../../kernel/caller.ts'
import { Nullable, Revision, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import type { Scope } from '../../kernel/scopes.ts'
import { operationId } from '../operations/schema.ts'
import { Actor, dataRoleId, externalKey, locationId, ownerUserId, recordId } from '../records/shapes.ts'
import { Link } from '../relationships/schema.ts'
import { lifecycleEvents, lifecycleEventVersion } from './lifecycle-events.ts'

/**
 * The catalogue of events (specification 6, contract 6): every fact that the service tells others. A feature that has new facts
 * to tell adds its rows here; what may be subscribed to, the answer of the event-types route and the checks of a
 * subscription all come from this table.
 */
export interface EventType {
  readonly eventKey: string
  readonly eventVersion: string
  /** `app`: also for subscriptions to every organisation of the application (specification 6.1). */
  readonly scopes: readonly ('account' | 'app')[]
  /** Sensitive: the data names people. Tenant: it holds what a tenant keeps in records. */
  readonly classification: 'sensitive' | 'tenant' | 'operational'
  readonly description: string
  /** What the credential of a subscription must have beside `webhooks.manage`; null: nothing. */
  readonly requires: Scope | null
  /** Is it about a record of some object, or a link of one? */
  readonly hasObject?: true
  readonly data: TObject
  readonly example: object
}

/** Of the events that are not lifecycle events; those have the version of the specification. */
export const eventVersion = '2026-11-20'

const organizationId = Uuid('The organization.', '0199a1b2-0000-7000-8000-000000000001')
const objectKey = Type.String({ maxLength: 50, description: 'The object of the record.', examples: ['deal'] })

const EventRecord = Strict(
  {
    recordId,
    objectKey,
    displayName: Nullable(
      Type.String({
        description: 'What names it; null where it has no name or the credential may not read it.',
        examples: ['Northwind renewal'],
      }),
    ),
    fields: Type.Record(Type.String(), Type.Unknown(), {
      description: 'The fields that the credential of the subscription may read, as they were after the change.',
      examples: [{ name: 'Northwind renewal', stage: 'open' }],
      'x-object-schema': 'record',
    }),
    ownerUserId: Nullable(ownerUserId),
    dataRoleId: Nullable(dataRoleId),
    locationId: Nullable(locationId),
    externalKey: Nullable(externalKey),
    createdAt: Timestamp('When the record was created.'),
    createdBy: Actor('Who created it.'),
    updatedAt: Timestamp('When it was changed last.'),
    updatedBy: Actor('Who changed it last.'),
    archivedAt: Nullable(Timestamp('When it was archived; null while it is live.')),
    revision: Revision,
  },
  // Not …Record: the records of an object are called by its key and that.
  { title: 'RecordOfEvent', description: 'The record after the change.' },
)

const RecordEvent = Strict({ organizationId, record: EventRecord })
const RecordChange = Strict({
  organizationId,
  record: EventRecord,
  changedFields: Type.Array(Type.String({ description: 'A field key, or a property of the record.' }), {
    description:
      'What the change changed, of that which the credential may read. Empty where several changes cancel out.',
    examples: [['stage']],
  }),
})
const RelationshipEvent = Strict({ organizationId, relationship: Link })

const recordExample = {
  recordId: '0199a1b2-0000-7000-8000-0000000000aa',
  objectKey: 'deal',
  displayName: 'Northwind renewal',
  fields: { name: 'Northwind renewal', stage: 'open', amount: '1200.00' },
  ownerUserId: null,
  dataRoleId: '0199a1b2-0000-7000-8000-0000000000ee',
  locationId: null,
  externalKey: null,
  createdAt: '2026-09-14T09:30:00.000Z',
  createdBy: { kind: 'credential', id: 'k3V9xQ2mB7aT' },
  updatedAt: '2026-09-14T09:30:00.000Z',
  updatedBy: { kind: 'credential', id: 'k3V9xQ2mB7aT' },
  archivedAt: null,
  revision: 1,
}
const recordEventExample = { organizationId: '0199a1b2-0000-7000-8000-000000000001', record: recordExample }
const relationshipExample = {
  organizationId: '0199a1b2-0000-7000-8000-000000000001',
  relationship: {
    relationshipId: '0199a1b2-0000-7000-8000-0000000000ba',
    relationshipKey: 'attendees',
    fromRecordId: '0199a1b2-0000-7000-8000-0000000000aa',
    fromObjectKey: 'meeting',
    toRecordId: '0199a1b2-0000-7000-8000-0000000000ab',
    toObjectKey: 'contact',
    createdAt: '2026-09-14T09:30:00.000Z',
    createdBy: { kind: 'user', id: '0199a1b2-0000-7000-8000-0000000000dd' },
  },
}

const count = (description: string) => Type.Integer({ minimum: 0, description, examples: [1200] })

const ofAccount = { eventVersion, scopes: ['account'] } as const
const ofRecords = { ...ofAccount, classification: 'tenant', requires: 'records.read', hasObject: true } as const
const ofRelationships = {
  ...ofAccount,
  classification: 'tenant',
  requires: 'relationships.read',
  hasObject: true,
} as const

const lifecycle = Object.entries(lifecycleEvents).map(([eventKey, { description, data, example }]): EventType => {
  const common = {
    eventVersion: lifecycleEventVersion,
    scopes: ['account', 'app'],
    classification: 'sensitive',
  } as const
  return { eventKey, ...common, description, requires: null, data, example }
})

export const eventTypes: readonly EventType[] = [
  ...lifecycle,
  {
    ...ofRecords,
    eventKey: 'record.created',
    description: 'A record was created, of a custom object or of a native module.',
    data: RecordEvent,
    example: recordEventExample,
  },
  {
    ...ofRecords,
    eventKey: 'record.updated',
    description: 'Fields, owner, role, location or participants of a record changed.',
    data: RecordChange,
    example: { ...recordEventExample, changedFields: ['stage'] },
  },
  {
    ...ofRecords,
    eventKey: 'record.archived',
    description: 'A record was archived.',
    data: RecordEvent,
    example: { ...recordEventExample, record: { ...recordExample, archivedAt: '2026-09-14T09:30:00.000Z' } },
  },
  {
    ...ofRecords,
    eventKey: 'record.restored',
    description: 'An archived record was restored.',
    data: RecordEvent,
    example: recordEventExample,
  },
  {
    ...ofRelationships,
    eventKey: 'relationship.created',
    description: 'Two records were related.',
    data: RelationshipEvent,
    example: relationshipExample,
  },
  {
    ...ofRelationships,
    eventKey: 'relationship.deleted',
    description: 'Two records are related no longer.',
    data: RelationshipEvent,
    example: relationshipExample,
  },
  {
    ...ofAccount,
    eventKey: 'operation.completed',
    classification: 'operational',
    requires: 'operations.read',
    description:
      'Work that went on after its request has ended: as succeeded, partially_succeeded, failed or cancelled. Told to the credential that began it, and to those without an envelope.',
    data: Strict({
      organizationId,
      operation: Strict(
        {
          operationId,
          type: Type.String({ maxLength: 60, description: 'What it did.', examples: ['records.import'] }),
          status: Type.Enum(['succeeded', 'partially_succeeded', 'failed', 'cancelled'], {
            description: 'How it ended.',
            examples: ['succeeded'],
          }),
          progress: Strict(
            {
              total: Nullable(count('How much there was to do; null where that was never known.')),
              processed: count('What was done.'),
              succeeded: count('What of it was done as asked.'),
              failed: count('What of it could not be done.'),
            },
            { description: 'How far it came.' },
          ),
          createdAt: Timestamp('When it was begun.'),
          completedAt: Timestamp('When it ended.'),
        },
        { description: 'The operation. Its status resource says more.' },
      ),
    }),
    example: {
      organizationId: '0199a1b2-0000-7000-8000-000000000001',
      operation: {
        operationId: '0199a1b2-0000-7000-8000-0000000000b1',
        type: 'records.import',
        status: 'succeeded',
        progress: { total: 1200, processed: 1200, succeeded: 1200, failed: 0 },
        createdAt: '2026-09-14T09:30:00.000Z',
        completedAt: '2026-09-14T09:30:04.000Z',
      },
    },
  },
  {
    ...ofAccount,
    eventKey: 'webhook.test',
    classification: 'operational',
    requires: null,
    description: 'Somebody tests a subscription. It is sent on request only, to the subscription that is tested.',
    data: Strict({
      organizationId,
      subscriptionId: Uuid('The subscription.', '0199a1b2-0000-7000-8000-0000000000cc'),
      message: Type.String({ description: 'A sentence for people.', examples: ['This is a test.'] }),
    }),
    example: {
      organizationId: '0199a1b2-0000-7000-8000-000000000001',
      subscriptionId: '0199a1b2-0000-7000-8000-0000000000cc',
      message: 'This is a test.',
    },
  },
]

const byKey = new Map(eventTypes.map((type) => [type.eventKey, type]))

/**
 * May a credential hear of events of this type at all? Those that name people are about a whole organisation, and an envelope
 * of roles and locations has no room for that.
 */
export function mayHear({ requires, classification }: EventType, { scopes, unrestricted }: Caller): boolean {
  return (requires === null || scopes.has(requires)) && (classification !== 'sensitive' || unrestricted)
}

/** The type of an event; undefined where nothing is called that. */
export function eventTypeOf(eventKey: string): EventType | undefined {
  return byKey.get(eventKey)
}
