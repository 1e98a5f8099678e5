import Type from 'typebox'
import { PageSize, PlatformActor, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { eventKey, eventVersion, exampleType, objectKey } from './schema.ts'

/** The feed of events: what a delivery carries, to be fetched. */
const Envelope = Strict(
  {
    id: Uuid('The event, in every delivery of it and here.', '0199a1b2-0000-7000-8000-0000000000e1'),
    type: eventKey,
    version: eventVersion,
    occurredAt: Timestamp('When it happened. Compare it before applying an older event.'),
    appId: Uuid('The application.', '0199a1b2-0000-7000-8000-0000000000a1'),
    subject: Strict(
      {
        type: Type.String({ description: 'What it is about.', examples: ['record'] }),
        id: Uuid('Which one.', '0199a1b2-0000-7000-8000-0000000000aa'),
      },
      { description: 'What the event is about.' },
    ),
    actor: PlatformActor('Who did it.'),
    data: Type.Record(Type.String(), Type.Unknown(), {
      description: 'The event data, as far as the credential may read it; its shape is that of the event type.',
      examples: [{ organizationId: '0199a1b2-0000-7000-8000-000000000001' }],
    }),
  },
  {
    title: 'WebhookEvent',
    examples: [
      {
        id: '0199a1b2-0000-7000-8000-0000000000e1',
        type: exampleType.eventKey,
        version: exampleType.eventVersion,
        occurredAt: '2026-09-14T09:30:00.000Z',
        appId: '0199a1b2-0000-7000-8000-0000000000a1',
        subject: { type: 'record', id: '0199a1b2-0000-7000-8000-0000000000aa' },
        actor: { kind: 'credential', id: 'k3V9xQ2mB7aT' },
        data: exampleType.example,
      },
    ],
  },
)

export const EventQuery = Strict({
  eventKey: Type.Optional(
    Type.Array(eventKey, {
      minItems: 1,
      maxItems: 50,
      description: 'Only events of these types. Repeat it for several.',
      examples: [['record.created', 'record.updated']],
    }),
  ),
  objectKey: Type.Optional(
    Type.Array(objectKey, {
      minItems: 1,
      maxItems: 100,
      description:
        'Only events about records of these objects, or about relationships that have such a record at an end. Repeat it for several.',
      examples: [['deal']],
    }),
  ),
  start: Type.Optional(
    Type.Enum(['oldest', 'latest'], {
      description: 'Where to begin without a cursor: at the oldest event that is kept (default), or after the latest.',
      examples: ['oldest'],
    }),
  ),
  pageSize: Type.Optional(PageSize()),
  cursor: Type.Optional(Type.String({ description: '`nextCursor` of the answer before.', examples: ['q83vEjRW'] })),
})

export const EventPage = Strict(
  {
    items: Type.Array(Envelope, { description: 'Events in the order in which they were committed.' }),
    nextCursor: Type.String({
      description: 'Where to go on, at once or later. It is always there, and holds for 30 days.',
      examples: ['q83vEjRW'],
    }),
    hasMore: Type.Boolean({
      description: 'Is there more at this moment? A page can be short, or empty, and this true.',
      examples: [false],
    }),
  },
  { title: 'EventPage' },
)
