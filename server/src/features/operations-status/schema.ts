import Type from 'typebox'
import { ApiErrorResponse, AppParams, Nullable, PageSize, Strict, Timestamp } from '../../kernel/schemas.ts'
import { operationId, operationStatuses } from '../../shared/operations/schema.ts'

/** Shapes of long-running operations (contract 9). */
export const ListParams = Strict(AppParams)
export const OperationParams = Strict({ ...AppParams, operationId })

const status = Type.Enum([...operationStatuses], {
  description:
    'Where it stands. `succeeded`, `partially_succeeded` (some of its rows were taken, and some not), `failed` and `cancelled` are final.',
  examples: ['succeeded'],
})
const type = Type.String({ maxLength: 60, description: 'What it does.', examples: ['records.export'] })
const count = (description: string) => Type.Integer({ minimum: 0, description, examples: [1200] })

export const LongOperation = Strict(
  {
    operationId,
    type,
    status,
    progress: Strict(
      {
        total: Nullable(count('How much there is to do; null until that is known.')),
        processed: count('What was done so far.'),
        succeeded: count('What of it was done as asked.'),
        failed: count('What of it could not be done; `errorsUrl` says why.'),
      },
      { description: 'How far it has come: rows, of imports and exports.' },
    ),
    createdAt: Timestamp('When it was begun.'),
    startedAt: Nullable(Timestamp('When a worker first took it up.')),
    completedAt: Nullable(Timestamp('When it ended.')),
    expiresAt: Nullable(Timestamp('When it is removed with its files: 7 days after its end.')),
    result: Type.Unknown({
      description: 'What came of it, as its type has it; null before its end. Of an export `fileUrl` is the download.',
      examples: [
        { objectKey: 'deal', format: 'csv', rows: 1200, sizeBytes: 91840, fileUrl: '/v1/apps/…/operations/…/file' },
      ],
    }),
    errorsUrl: Nullable(
      Type.String({
        description: 'The path of what could not be done, line by line; null where there is nothing.',
        examples: ['/v1/apps/…/operations/…/errors'],
      }),
    ),
    error: Nullable(ApiErrorResponse),
  },
  {
    title: 'LongOperation',
    description: 'Work that goes on after the answer that accepted it.',
    examples: [
      {
        operationId: '0199a1b2-0000-7000-8000-0000000000f9',
        type: 'records.export',
        status: 'succeeded',
        progress: { total: 1200, processed: 1200, succeeded: 1200, failed: 0 },
        createdAt: '2026-09-14T09:30:00.000Z',
        startedAt: '2026-09-14T09:30:00.050Z',
        completedAt: '2026-09-14T09:30:01.000Z',
        expiresAt: '2026-09-21T09:30:01.000Z',
        result: {
          objectKey: 'deal',
          format: 'csv',
          rows: 1200,
          sizeBytes: 91840,
          fileUrl: '/v1/apps/…/operations/…/file',
        },
        errorsUrl: null,
        error: null,
      },
    ],
  },
)

export const ListQuery = Strict({
  type: Type.Optional(
    Type.Array(type, {
      minItems: 1,
      maxItems: 20,
      description: 'Only of these types. Repeatable.',
      examples: [['records.export']],
    }),
  ),
  status: Type.Optional(
    Type.Array(status, {
      minItems: 1,
      maxItems: 7,
      description: 'Only of these. Repeatable.',
      examples: [['running']],
    }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: 400, description: 'The nextCursor of the page before.', examples: ['mS3Zb1…'] }),
  ),
  pageSize: Type.Optional(PageSize()),
})

export const OperationList = Strict(
  {
    items: Type.Array(LongOperation, { description: 'Operations, newest first.' }),
    nextCursor: Nullable(
      Type.String({ description: 'Continues after these; null at the end.', examples: ['mS3Zb1…'] }),
    ),
  },
  { title: 'LongOperationList' },
)

export const ErrorLines = Type.Unsafe<string>(
  Type.Unknown({
    description:
      'A JSON object on each line: `row` (from 1, without the header), `field`, `code` and `message` of its first problem, ' +
      'and `details` where there are more.',
    examples: ['{"row":7,"field":"amount","code":"field_value_invalid","message":"Expected a decimal number."}'],
  }),
)

export const FileContent = Type.Unsafe<string>(
  Type.Unknown({
    description: 'The file, as an attachment.',
    examples: ['recordId,name\r\n0199a1b2-0000-7000-8000-0000000000aa,Northwind Traders\r\n'],
  }),
)
