import Type from 'typebox'
import { Nullable, PageSize, Revision, Strict, Timestamp, Total, Uuid } from '../../kernel/schemas.ts'
import { operators } from '../catalogue/data-types.ts'

/** Shapes that every way to records shares: that of objects, and that of each native module. */
export const recordId = Uuid('The record.', '0199a1b2-0000-7000-8000-0000000000aa')
export const externalKey = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]+$',
  description: 'A key of your own, unique among the live records of the object.',
  examples: ['crm-1042'],
})

export const Actor = (description: string) =>
  Strict(
    {
      kind: Type.Enum(['user', 'credential', 'system'], { description: 'What acted.', examples: ['user'] }),
      id: Type.String({ description: 'Its id: a user id, or the key id of a credential.', examples: ['k3V9xQ2mB7aT'] }),
    },
    { description },
  )

export const ownerUserId = Uuid('The user who owns the record.', '0199a1b2-0000-7000-8000-0000000000dd')
export const dataRoleId = Uuid('The DataRole that the record belongs to.', '0199a1b2-0000-7000-8000-0000000000ee')
export const locationId = Uuid(
  'The location that narrows who of the role sees it.',
  '0199a1b2-0000-7000-8000-0000000000ff',
)

export const participants = Type.Array(Uuid('A user.', '0199a1b2-0000-7000-8000-0000000000dd'), {
  maxItems: 100,
  description: 'Users who see and may edit the record whoever owns it.',
})

export const Placement = {
  ownerUserId: Type.Optional(Nullable(ownerUserId)),
  dataRoleId: Type.Optional(Nullable(dataRoleId)),
  locationId: Type.Optional(Nullable(locationId)),
}

export const expectedRevision = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Refuse with 409 unless this is the current revision. `If-Match` does the same.',
    examples: [3],
  }),
)

export const search = Type.String({
  maxLength: 500,
  pattern: '^[^\\u0000\\ud800-\\udfff]*$',
  description: 'Words that must all occur in the searchable fields; parts of words and spelling without accents count.',
  examples: ['northwind renewal'],
})
export const RevisionBody = Strict({ expectedRevision }, { title: 'RecordRevision' })
export const RevisionQuery = Strict({ expectedRevision })

export const CountResult = Strict(
  {
    totalRecords: Total,
    totalIsExact: Type.Literal(true, { description: 'A count is always exact.', examples: [true] }),
    contractVersion: Type.String({
      description: 'The contract that defines it.',
      examples: ['1.0.0-developer-platform'],
    }),
  },
  { title: 'RecordCountResult' },
)

export const HistoryQuery = Strict({
  cursor: Type.Optional(
    Type.String({ maxLength: 400, description: 'The nextCursor of the page before.', examples: ['mS3Zb1…'] }),
  ),
  pageSize: Type.Optional(PageSize()),
})

export const History = Strict(
  {
    items: Type.Array(
      Strict({
        revision: Revision,
        operation: Type.Enum(['created', 'updated', 'archived', 'restored'], {
          description: 'What happened.',
          examples: ['updated'],
        }),
        changedAt: Timestamp('When it happened.'),
        changedBy: Actor('Who did it.'),
        changes: Type.Array(
          Strict({
            field: Type.String({ description: 'The field, or the property of the record.', examples: ['ownerUserId'] }),
            before: Type.Unknown({ description: 'The value before.', examples: [null] }),
            after: Type.Unknown({
              description: 'The value after.',
              examples: ['0199a1b2-0000-7000-8000-0000000000dd'],
            }),
          }),
          { description: 'What an update changed, as far as the caller may read it.' },
        ),
      }),
      { description: 'Changes, newest first.' },
    ),
    nextCursor: Nullable(
      Type.String({ description: 'Continues after these; null at the end.', examples: ['mS3Zb1…'] }),
    ),
  },
  { title: 'RecordHistory' },
)

export const filter = Type.Unsafe<unknown>(
  Type.Object(
    {},
    {
      additionalProperties: true,
      description:
        'A tree: `{"and": […]}`, `{"or": […]}`, `{"not": …}`, `{"field", "op", "value"}` or `{"related": "<reference field or relationship>", "some": …}`. ' +
        'At most 5 levels and 50 comparisons. Text compares without regard to case. Values: `$me`, `$now`, `$today`.',
      'x-object-example': 'filter',
      'x-filter-operators': operators,
    },
  ),
)

export const includeArchived = Type.Boolean({ description: 'Archived records too?', default: false, examples: [false] })

export const sort = Type.Union(
  [
    Type.String({ description: 'One sort value.', examples: ['created_desc'] }),
    Type.Array(Type.String(), { minItems: 1, maxItems: 3, description: 'Up to three, the first leads.' }),
  ],
  {
    description:
      'created, updated, name or the key of a sortable field, with _asc or _desc. Default created_desc. Empty values are the largest.',
    examples: ['created_desc', ['updated_desc', 'created_desc']],
  },
)

export const fieldKeys = Type.Array(Type.String(), {
  maxItems: 300,
  description: 'Only these fields.',
  'x-object-example': 'fieldKeys',
})
