import Type from 'typebox'
import { Nullable, PageSize, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { Actor } from '../records/shapes.ts'

/** Shapes of links between records (contract 4), for every way to them. */
export const relationshipKey = Type.String({
  minLength: 1,
  maxLength: 80,
  description: 'The key of the relationship, as the model defines it.',
  examples: ['attendees'],
})

export const relationshipId = Uuid('The link between two records.', '0199a1b2-0000-7000-8000-0000000000ba')

const objectKey = (description: string, example: string) =>
  Type.String({ maxLength: 50, description, examples: [example] })

const createdAt = Timestamp('When the records were related.')
const createdBy = Actor('Who related the records.')

export const Link = Strict(
  {
    relationshipId,
    relationshipKey,
    fromRecordId: Uuid('The record at `from`.', '0199a1b2-0000-7000-8000-0000000000aa'),
    fromObjectKey: objectKey('Its object.', 'meeting'),
    toRecordId: Uuid('The record at `to`.', '0199a1b2-0000-7000-8000-0000000000ab'),
    toObjectKey: objectKey('Its object.', 'contact'),
    createdAt,
    createdBy,
  },
  { title: 'Relationship', description: 'Two records that are related.' },
)

const RelatedRecord = Strict(
  {
    relationshipId,
    relationshipKey,
    direction: Type.Enum(['forward', 'inverse'], {
      description: 'forward: the record at hand is at `from`. inverse: it is at `to`.',
      examples: ['forward'],
    }),
    label: Type.String({ description: 'What people call it, seen from the record at hand.', examples: ['Attendees'] }),
    record: Strict(
      {
        recordId: Uuid('The other record.', '0199a1b2-0000-7000-8000-0000000000ab'),
        objectKey: objectKey('Its object.', 'contact'),
        displayName: Nullable(
          Type.String({
            description: 'What names it; null where it has no name or the caller may not read it.',
            examples: ['Ada Lovelace'],
          }),
        ),
      },
      { description: 'The record at the other end.' },
    ),
    createdAt,
    createdBy,
  },
  { title: 'RelatedRecord' },
)

const page = {
  cursor: Type.Optional(
    Type.String({ maxLength: 400, description: 'The nextCursor of the page before.', examples: ['mS3Zb1…'] }),
  ),
  pageSize: Type.Optional(PageSize()),
}
const nextCursor = Nullable(
  Type.String({ description: 'Continues after these; null at the end.', examples: ['mS3Zb1…'] }),
)

export const RelatedQuery = Strict({ relationshipKey: Type.Optional(relationshipKey), ...page })

export const RelatedRecords = Strict(
  { items: Type.Array(RelatedRecord, { description: 'Related records, the latest related first.' }), nextCursor },
  { title: 'RelatedRecords' },
)

export const LinkQuery = Strict({
  relationshipKey: Type.Optional(relationshipKey),
  recordId: Type.Optional(Uuid('Only links of this record, at either end.', '0199a1b2-0000-7000-8000-0000000000aa')),
  fromRecordId: Type.Optional(Uuid('Only links from this record.', '0199a1b2-0000-7000-8000-0000000000aa')),
  toRecordId: Type.Optional(Uuid('Only links to this record.', '0199a1b2-0000-7000-8000-0000000000ab')),
  ...page,
})

export const Links = Strict(
  { items: Type.Array(Link, { description: 'Links, the latest first.' }), nextCursor },
  { title: 'Relationships' },
)
