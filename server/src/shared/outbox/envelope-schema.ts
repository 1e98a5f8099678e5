import Type, { type TSchema } from 'typebox'
import type { Caller } from '../../kernel/caller.ts'
import { PlatformActor, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { type EventType, eventTypeOf, eventTypes, mayHear } from './event-types.ts'

/** The shapes of what is delivered and read as a log (specification 6.3): an envelope, and in it the data of the event. */
export const eventKey = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[\\w.-]+$',
  description: 'What happened.',
  examples: ['record.updated'],
})
export const eventVersion = Type.String({
  minLength: 1,
  maxLength: 20,
  pattern: '^[\\w.-]+$',
  description: 'The version of the shape of its data, as the event types name it.',
  examples: ['2026-11-20'],
})

export const exampleType = eventTypeOf('record.updated')!

const common = {
  id: Uuid('The event, in every delivery of it and in the log.', '0199a1b2-0000-7000-8000-0000000000e1'),
  occurredAt: Timestamp('When it happened. Compare it before applying an older event.'),
  appId: Uuid('The application.', '0199a1b2-0000-7000-8000-0000000000a1'),
  subject: Strict(
    {
      type: Type.String({ description: 'What it is about.', examples: ['record'] }),
      id: Uuid('Which one.', '0199a1b2-0000-7000-8000-0000000000aa'),
    },
    { title: 'EventSubject', description: 'What the event is about.' },
  ),
  actor: PlatformActor('Who did it.'),
}

/** An event of any type. */
export const AnyEvent = Strict(
  {
    ...common,
    type: eventKey,
    version: eventVersion,
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

const typed = eventTypes.map((type) => {
  const words = type.eventKey.split(/[._]/).map((word) => word[0]!.toUpperCase() + word.slice(1))
  const shape = {
    ...common,
    type: Type.Literal(type.eventKey, { description: 'What happened.' }),
    version: Type.Literal(type.eventVersion, { description: 'The version of the shape of `data`.' }),
    data: { ...type.data, description: 'What the event tells, as far as the credential may read it.' },
  }
  return { ...type, schema: Strict(shape, { title: `${words.join('')}Event` }) }
})

/** The types of events that a subscription of the caller may ask for, each with the schema of what is then sent. */
export function audibleEvents(caller: Caller): readonly (EventType & { readonly schema: TSchema })[] {
  return typed.filter((type) => mayHear(type, caller))
}
