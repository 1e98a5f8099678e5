import Type from 'typebox'
import {
  ApiErrorResponse,
  AppParams,
  Nullable,
  PageSize,
  pageSizeMax,
  Revision,
  Strict,
  Timestamp,
  Total,
  Uuid,
} from '../../kernel/schemas.ts'
import {
  Actor,
  dataRoleId,
  expectedRevision,
  externalKey,
  fieldKeys,
  filter,
  includeArchived,
  locationId,
  ownerUserId,
  Placement,
  participants,
  recordId,
  search,
  sort,
} from '../../shared/records/shapes.ts'

/** Shapes of records (specification 2.8 and 4.2, contract 4). */
const objectKey = Type.String({ maxLength: 50, description: 'The key of the object.', examples: ['deal'] })
export const ObjectParams = Strict({ ...AppParams, objectKey })
export const RecordParams = Strict({ ...AppParams, objectKey, recordId })
export const ExternalKeyParams = Strict({ ...AppParams, objectKey, externalKey })

export const RecordSchema = Strict(
  {
    recordId,
    objectKey,
    displayName: Nullable(
      Type.String({
        description: 'The value of the field that names the record.',
        examples: ['Renewal 2027'],
        'x-object-example': 'displayName',
      }),
    ),
    fields: Type.Object(
      {},
      {
        additionalProperties: true,
        description: 'Values by field key. Fields that the caller may not read are absent.',
        'x-object-schema': 'record',
      },
    ),
    ownerUserId: Nullable(ownerUserId),
    dataRoleId: Nullable(dataRoleId),
    locationId: Nullable(locationId),
    externalKey: Nullable(externalKey),
    createdAt: Timestamp('When the record was created.'),
    createdBy: Actor('Who created the record.'),
    updatedAt: Timestamp('When the record last changed.'),
    updatedBy: Actor('Who last changed the record.'),
    archivedAt: Nullable(Timestamp('When the record was archived; null while it is live.')),
    revision: Revision,
    access: Strict(
      {
        canUpdate: Type.Boolean({ description: 'May the caller update this record?', examples: [true] }),
        canArchive: Type.Boolean({ description: 'May the caller archive this record?', examples: [false] }),
      },
      { description: 'What the caller may do with the record.' },
    ),
    expanded: Type.Optional(
      Type.Object(
        {},
        {
          additionalProperties: true,
          description:
            'By the names in `expand`: the record behind a reference, null where the caller sees none; of a relationship ' +
            '`{records, hasMore}` with at most 20 related records.',
          'x-object-example': 'expanded',
        },
      ),
    ),
  },
  { title: 'Record', description: 'A record as the caller may see it.', 'x-object-record': true },
)

const FieldsInput = (schema: 'create' | 'update' | 'upsert', description: string) =>
  Type.Unsafe<Record<string, unknown>>(
    Type.Object({}, { additionalProperties: true, maxProperties: 300, description, 'x-object-schema': schema }),
  )

export const CreateBody = Strict(
  {
    fields: FieldsInput('create', 'Values by field key.'),
    ...Placement,
    participants: Type.Optional(participants),
    externalKey: Type.Optional(Nullable(externalKey)),
  },
  { title: 'RecordCreate', 'x-object-example': 'create' },
)

export const UpdateBody = Strict(
  {
    fields: Type.Optional(FieldsInput('update', 'Values to set by field key; null clears one.')),
    ...Placement,
    participants: Type.Optional(participants),
    externalKey: Type.Optional(Nullable(externalKey)),
    expectedRevision,
  },
  { title: 'RecordUpdate', 'x-object-example': 'update' },
)

export const UpsertBody = Strict(
  {
    fields: FieldsInput('upsert', 'Values by field key.'),
    ...Placement,
    participants: Type.Optional(participants),
    expectedRevision,
  },
  { title: 'RecordUpsert', 'x-object-example': 'upsert' },
)

export const SearchBody = Strict(
  {
    page: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000_000,
        description: 'The page, from 1, at any depth. Its cost grows with depth; that of `cursor` does not.',
        examples: [1],
      }),
    ),
    cursor: Type.Optional(
      // Three sort values of 2,000 characters each, written as \u0001 in JSON and then in base64, make 48,000.
      Type.String({ maxLength: 50_000, description: 'The nextCursor of the page before.', examples: ['mS3Zb1…'] }),
    ),
    pageSize: Type.Optional(PageSize()),
    sort: Type.Optional(sort),
    filter: Type.Optional(filter),
    search: Type.Optional(search),
    fields: Type.Optional(fieldKeys),
    expand: Type.Optional(
      Type.Array(Type.String(), {
        maxItems: 10,
        description: 'Reference fields and relationships whose records to include.',
        'x-object-example': 'expand',
      }),
    ),
    includeArchived: Type.Optional(includeArchived),
    includeTotal: Type.Optional(
      Type.Boolean({ description: 'The exact total too? It waits for the count.', default: false, examples: [true] }),
    ),
  },
  {
    title: 'RecordSearch',
    'x-object-example': 'search',
  },
)

export const SearchResult = Strict(
  {
    records: Type.Array(RecordSchema, { description: 'The records of the page.' }),
    hasMore: Type.Boolean({ description: 'Are there records after these?', examples: [true] }),
    page: Nullable(Type.Integer({ description: 'The page; null when a cursor was sent.', examples: [1] })),
    pageSize: Type.Integer({ description: 'Rows on a page.', minimum: 1, maximum: pageSizeMax, examples: [50] }),
    nextCursor: Nullable(
      Type.String({ description: 'Continues after these; null at the end.', examples: ['mS3Zb1…'] }),
    ),
    totalRecords: Type.Optional(Total),
    totalIsExact: Type.Optional(Type.Boolean({ description: 'Always true: totals are counted.', examples: [true] })),
  },
  { title: 'RecordSearchResult' },
)

export const CountBody = Strict(
  { filter: Type.Optional(filter), search: Type.Optional(search), includeArchived: Type.Optional(includeArchived) },
  { title: 'RecordCount' },
)

export const GetQuery = Strict({
  fields: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: 300,
      description: 'Only these fields. Repeatable.',
      'x-object-example': 'fieldKeys',
    }),
  ),
  expand: Type.Optional(
    Type.Array(Type.String(), {
      maxItems: 10,
      description: 'Reference fields and relationships whose records to include. Repeatable.',
      'x-object-example': 'expand',
    }),
  ),
})

export const ParticipantsBody = Strict({ participants, expectedRevision }, { title: 'ParticipantsUpdate' })

export const Participants = Strict(
  {
    items: Type.Array(
      Strict({
        userId: Uuid('The user.', '0199a1b2-0000-7000-8000-0000000000dd'),
        displayName: Type.String({ description: 'The name of the user.', examples: ['Ada Lovelace'] }),
      }),
      { description: 'Users who take part in the record.' },
    ),
    nextCursor: Type.Null({ description: 'Always null: a record has at most 100 participants.', examples: [null] }),
  },
  { title: 'Participants' },
)

export const batchItemsMax = 200

export const BatchBody = Strict(
  {
    atomic: Type.Optional(Type.Boolean({ description: 'All or nothing?', default: false, examples: [true] })),
    items: Type.Array(
      Strict({
        operation: Type.Enum(['create', 'update', 'archive', 'upsert'], {
          description: 'What to do.',
          examples: ['create'],
        }),
        recordId: Type.Optional(recordId),
        externalKey: Type.Optional(Nullable(externalKey)),
        fields: Type.Optional(FieldsInput('upsert', 'Values by field key.')),
        ...Placement,
        participants: Type.Optional(participants),
        expectedRevision,
      }),
      { minItems: 1, maxItems: batchItemsMax, description: 'At most 200 items, done in this order.' },
    ),
  },
  {
    title: 'RecordBatch',
    'x-object-example': 'batch',
  },
)

export const BatchResults = Strict(
  {
    results: Type.Array(
      Strict({
        index: Type.Integer({ minimum: 0, description: 'The position of the item.', examples: [0] }),
        status: Type.Integer({ description: 'The status that it would have had alone.', examples: [201] }),
        record: Type.Optional(RecordSchema),
        error: Type.Optional(ApiErrorResponse),
      }),
      { description: 'One result for each item, in order.' },
    ),
  },
  { title: 'RecordBatchResult' },
)
