import Type from 'typebox'
import { Nullable, PageSize, Strict, Timestamp, Total, Uuid } from '../../../kernel/schemas.ts'
import { Actor } from '../../../shared/records/shapes.ts'
import type { Shapes } from '../schemas.ts'

/** Shapes of what contacts have beside what every module has (contract 5). */
const paging = (maximum = 200) => ({
  cursor: Type.Optional(
    Type.String({ maxLength: 600, description: 'The nextCursor of the page before.', examples: ['mS3Zb1…'] }),
  ),
  pageSize: Type.Optional(PageSize(maximum)),
})
const nextCursor = Nullable(
  Type.String({ description: 'Continues after these; null at the end.', examples: ['mS3Zb1…'] }),
)
const contactName = Nullable(
  Type.String({ description: 'What names it; null where the caller may not read it.', examples: ['Ada Lovelace'] }),
)
const contactId = (description: string, last = 'a') => Uuid(description, `0199a1b2-0000-7000-8000-0000000000a${last}`)

export const TypesQuery = Strict(paging())
export const Types = Strict(
  {
    items: Type.Array(
      Strict({
        contactTypeId: Type.String({ description: 'The key of the type.', examples: ['supplier'] }),
        totalRecords: Type.Integer({ ...Total, description: 'How many live contacts of the caller have it.' }),
      }),
      { description: 'Types, alphabetical.' },
    ),
    nextCursor,
  },
  { title: 'ContactTypes' },
)

const duplicatesExample = [
  { recordId: '0199a1b2-0000-7000-8000-0000000000aa', displayName: 'Ada Lovelace' },
  { recordId: '0199a1b2-0000-7000-8000-0000000000ab', displayName: 'A. Lovelace' },
]

/** Each contact of a page is looked up among all others, so pages are smaller than those of other lists. */
export const DuplicatesQuery = Strict(paging(50))
export const Duplicates = Strict(
  {
    items: Type.Array(
      Strict({
        contacts: Type.Array(Strict({ recordId: contactId('The contact.'), displayName: contactName }), {
          minItems: 2,
          maxItems: 2,
          description: 'The two, the older one first.',
          examples: [duplicatesExample],
        }),
        reasons: Type.Array(
          Type.Enum(['email', 'phone', 'name'], { description: 'What is alike.', examples: ['email'] }),
          { description: 'Why they may be one: the same address, the same number, a similar name.' },
        ),
        score: Type.Number({
          minimum: 0,
          maximum: 1,
          description:
            'How sure it is: 1 for the same e-mail address, 0.9 for the same number, else how alike the names are.',
          examples: [1],
        }),
      }),
      { description: 'Pairs. A page may hold few or none while there are more: follow `nextCursor`.' },
    ),
    nextCursor,
  },
  { title: 'ContactDuplicates' },
)

export function mergeShapes({ Row, Changes }: Shapes) {
  return {
    Merge: Strict(
      {
        ...(Changes as unknown as { properties: Type.TProperties }).properties,
        otherRecordId: contactId('The contact that becomes a part of this one, and is archived.', 'b'),
        undo: Type.Optional(
          Type.Boolean({ default: false, description: 'Take the merge of the two back.', examples: [false] }),
        ),
      },
      {
        title: 'ContactMerge',
        description: 'Beside the other contact, fields of the survivor: what they hold afterwards.',
        examples: [{ otherRecordId: '0199a1b2-0000-7000-8000-0000000000ab' }],
      },
    ),
    Merged: Strict(
      {
        contact: Row,
        otherRecordId: contactId('The other contact.', 'b'),
        reversibleUntil: Nullable(
          Timestamp('Until when the merge can be taken back; null when it was.', '2026-10-14T09:30:00.000Z'),
        ),
      },
      { title: 'MergedContact' },
    ),
  }
}

export const TimelineQuery = Strict(paging())
export const Timeline = Strict(
  {
    items: Type.Array(
      Strict({
        occurredAt: Timestamp('When it happened.'),
        kind: Type.Enum(['change', 'record'], {
          description:
            'change: the contact itself changed. record: a record was made that refers to it, such as a task or an invoice.',
          examples: ['record'],
        }),
        objectKey: Type.String({ description: 'The object of the record.', examples: ['tasks'] }),
        recordId: contactId('The record.', 'c'),
        displayName: contactName,
        operation: Type.Enum(['created', 'updated', 'archived', 'restored'], {
          description: 'What happened.',
          examples: ['created'],
        }),
        actor: Actor('Who did it.'),
        changedFields: Type.Array(Type.String(), {
          description: 'Of a change: what changed, as far as the caller may read it. `history` has the values.',
          examples: [['jobTitle']],
        }),
      }),
      { description: 'What happened, newest first.' },
    ),
    nextCursor,
  },
  { title: 'ContactTimeline' },
)
