import Type from 'typebox'
import { PageSize, Strict } from '../../kernel/schemas.ts'
import { AnyEvent, eventKey } from '../../shared/outbox/envelope-schema.ts'
import { objectKey } from './schema.ts'

/** The feed of events: what a delivery carries, to be fetched. */
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
    items: Type.Array(AnyEvent, { description: 'Events in the order in which they were committed.' }),
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
