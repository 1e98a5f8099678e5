import Type, { type Static } from 'typebox'
import { Strict } from '../../kernel/schemas.ts'
import { fieldKeys, filter, includeArchived, search, sort } from '../records/shapes.ts'

/** Shapes of imports and exports, which objects and native modules share. */
const format = Type.Enum(['csv', 'ndjson'], {
  description: 'CSV (RFC 4180, UTF-8, with a header) or a JSON object on each line.',
  examples: ['csv'],
})

export const ExportBody = Strict(
  {
    format,
    filter: Type.Optional(filter),
    search: Type.Optional(search),
    sort: Type.Optional(sort),
    fields: Type.Optional(fieldKeys),
    includeArchived: Type.Optional(includeArchived),
    escapeFormulas: Type.Optional(
      Type.Boolean({
        description:
          'Of CSV: puts an apostrophe before text that a spreadsheet would take for a formula (=, +, -, @, tab, carriage return). Imports take it away again.',
        default: true,
        examples: [true],
      }),
    ),
  },
  {
    title: 'RecordExport',
    description:
      'A search, whose rows are written into a file page by page, with the rights that the caller has at each page: at most 5,000,000 rows or 2 GiB. Whoever began it, and who sees everything in the organization, downloads it from `/operations/{operationId}/file`.',
    examples: [{ format: 'csv' }],
  },
)

const target = Type.String({
  maxLength: 60,
  description:
    'The key of a field, externalKey, ownerUserId, dataRoleId or locationId; recordId where an upsert goes by it.',
  examples: ['name'],
})

export const ImportBody = Strict(
  {
    format,
    content: Type.Optional(
      Type.String({
        description: 'The file, where it is small; otherwise send multipart/form-data.',
        examples: ['name,externalKey\nNorthwind Traders,crm-1042\n'],
      }),
    ),
    mapping: Type.Optional(
      Type.Unsafe<Record<string, string>>(
        Type.Object(
          {},
          {
            additionalProperties: target,
            maxProperties: 1000,
            description:
              'What becomes of which column: fields by the names of columns, or of properties. Columns that it does not name are not read. Without it, names of columns are keys of fields, and columns that exports have and nobody can write are not read.',
            examples: [{ Company: 'name', Reference: 'externalKey' }],
          },
        ),
      ),
    ),
    mode: Type.Optional(
      Type.Enum(['insert', 'upsert'], {
        description: 'Create a record for each row, or change the one that has its key.',
        default: 'insert',
        examples: ['upsert'],
      }),
    ),
    key: Type.Optional(
      Type.String({
        maxLength: 50,
        description:
          'What an upsert finds records by: externalKey, the key of a unique field, or recordId, where rows without an id are new records. Only with the mode `upsert`.',
        default: 'externalKey',
        examples: ['externalKey'],
      }),
    ),
    onError: Type.Optional(
      Type.Enum(['continue', 'stop'], {
        description: 'After a row that cannot be taken: go on, or end there.',
        default: 'continue',
        examples: ['continue'],
      }),
    ),
    emptyCells: Type.Optional(
      Type.Enum(['ignore', 'clear'], {
        description: 'Of CSV: an empty cell says nothing, or that the field has no value.',
        default: 'ignore',
        examples: ['ignore'],
      }),
    ),
    delimiter: Type.Optional(
      Type.Enum([',', ';', '\t'], { description: 'Of CSV: what stands between cells.', default: ',', examples: [','] }),
    ),
    dryRun: Type.Optional(
      Type.Boolean({
        description: 'Only tell what would become of the rows, and write nothing.',
        default: false,
        examples: [false],
      }),
    ),
  },
  {
    title: 'RecordImport',
    description:
      'What to make of a file, which is written in batches, with the rights that the caller has at each. It is `content` in JSON; or, up to 100 MiB and 1,000,000 rows, multipart/form-data: the part `options` (this, without `content`) first, then the part `file`. `/operations/{operationId}/errors` names the rows that could not be taken.',
    examples: [{ format: 'csv', content: 'name\nNorthwind Traders\n', dryRun: true }],
  },
)

export type ExportOptions = Static<typeof ExportBody>
export type ImportOptions = Static<typeof ImportBody>
