import Type from 'typebox'
import { AppParams, Nullable, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { BrowsePage, BrowsePaging } from '../../shared/browse.ts'

/** Shapes of global search (specification 4.3, contract 5). */
export const Params = Strict(AppParams)

const SearchText = (description: string) =>
  Type.String({
    maxLength: 500,
    // NUL and lone surrogates are no text that the database could hold.
    pattern: '^[^\\u0000\\ud800-\\udfff]*$',
    description,
    examples: ['northwind'],
  })

const filters = {
  query: Type.Optional(
    SearchText(
      'Words that must all occur in the record; parts of words count, accents and case do not. A telephone number is found in any spelling. Without words every record is listed, the last changed first.',
    ),
  ),
  moduleKey: Type.Optional(
    Type.Array(Type.String({ maxLength: 50 }), {
      maxItems: 50,
      description: 'Only records of these native modules or custom objects. Repeatable.',
      'x-object-example': 'objectKeys',
      examples: [['contacts']],
    }),
  ),
  locationId: Type.Optional(
    Uuid(
      'Only records of this location. Narrows what the caller sees, and never widens it.',
      '0199a1b2-0000-7000-8000-0000000000ff',
    ),
  ),
}

export const CountQuery = Strict(filters)
export const ListQuery = Strict({ ...filters, ...BrowsePaging })

const limit = (maximum: number) =>
  Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum,
      default: 10,
      description: `At most so many: 1 to ${maximum}.`,
      examples: [10],
    }),
  )

export const SuggestQuery = Strict({
  query: Type.Optional(SearchText('What somebody has typed so far; nothing yet suggests nothing.')),
  moduleKey: filters.moduleKey,
  locationId: filters.locationId,
  limit: limit(10),
})

export const RecentQuery = Strict({ moduleKey: filters.moduleKey, locationId: filters.locationId, limit: limit(50) })

const found = {
  moduleKey: Type.String({ description: 'The key of the module or custom object.', examples: ['contacts'] }),
  recordId: Uuid('The record.', '0199a1b2-0000-7000-8000-0000000000aa'),
  title: Nullable(
    Type.String({
      description: 'The name of the record; null where it has none, or the caller may not read it.',
      examples: ['Ada Lovelace'],
    }),
  ),
  subtitle: Nullable(
    Type.String({ description: 'What tells it from others of the same name.', examples: ['Northwind Traders'] }),
  ),
}
const updatedAt = Timestamp('When the record last changed.')

export const Hit = Strict(
  {
    ...found,
    snippet: Nullable(
      Type.String({
        maxLength: 160,
        description:
          'The text around the first word that was found, as it is written, in a field that the caller may read; null where only the title holds the words.',
        examples: ['… prefers to be called in the morning, Northwind pays the …'],
      }),
    ),
    score: Nullable(
      Type.Number({
        minimum: 0,
        maximum: 1,
        description:
          '1: it is the title; 0.9: the title begins with it; 0.8: words of the title do; 0.7: parts of the title; 0.5: elsewhere in the record; less: nothing holds the words, and the title is similar. Null without words.',
        examples: [0.9],
      }),
    ),
    updatedAt,
  },
  { title: 'GlobalSearchHit' },
)

export const List = BrowsePage(Hit, 'GlobalSearchPage')

export const Suggestions = Strict(
  { items: Type.Array(Strict(found), { description: 'Records whose titles complete what was typed, best first.' }) },
  { title: 'GlobalSearchSuggestions' },
)

export const Recent = Strict(
  {
    items: Type.Array(
      Strict({
        ...found,
        updatedAt,
        changedByCaller: Type.Boolean({ description: 'Was the last change made by this caller?', examples: [true] }),
      }),
      { description: 'Records, the last changed first.' },
    ),
  },
  { title: 'GlobalSearchRecent' },
)
