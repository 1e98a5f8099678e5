import { Failure, fail } from '../../kernel/errors.ts'
import type { Reply } from '../../kernel/operation.ts'
import type { Context } from '../context.ts'
import type { ReceivedFile } from '../operations/operations.ts'
import { acceptedHeaders, OperationAccepted } from '../operations/schema.ts'
import { parseQuery } from '../records/query.ts'
import type { RecordScope } from '../records/scope.ts'
import { requireMapping } from './columns.ts'
import { type Exchange, exchangeScope } from './exchange.ts'
import type { ExportInput } from './export.ts'
import type { ImportInput } from './import.ts'
import { ExportBody, type ExportOptions, ImportBody, type ImportOptions } from './schema.ts'

/** How imports and exports are declared and begun, by objects and by modules alike. */
export const uploadBytesMax = 100 * 1024 * 1024

const accepted = {
  responses: { 202: OperationAccepted },
  responseHeaders: acceptedHeaders,
  rateClass: 'batch',
} as const

export const exporting = {
  ...accepted,
  method: 'POST',
  transaction: 'write',
  body: ExportBody,
  mcp: false, // what it writes is a file, which does not belong into the context of a model
  errors: ['object_not_found', 'filter_invalid', 'sort_invalid', 'operation_limit_reached'],
  description: 'Answers 202 with an operation to follow. The body says what is written, and who may download it.',
} as const

export const importing = {
  ...accepted,
  method: 'POST',
  transaction: 'own',
  once: true,
  body: ImportBody,
  uploadBytesMax,
  mcp: false, // it reads a file
  errors: ['object_not_found', 'permission_denied', 'field_read_only', 'operation_limit_reached', 'malformed_request'],
  description:
    'Answers 202 with an operation to follow. The body says how a file is sent, and what becomes of its rows.',
} as const

export async function beginExport(context: Context, exchange: Exchange, options: ExportOptions): Promise<Reply> {
  const { scope: needed, ...exchanged } = exchange
  const scope = await exchangeScope(context, exchange)
  const { format: _, escapeFormulas: __, ...search } = options
  // What is wrong with the search is said now.
  parseQuery(search, scope, context.cursors)
  const input: ExportInput = { ...exchanged, options }
  return context.operations.begin(context, { type: 'records.export', scope: needed, input })
}

export async function beginImport(context: Context, exchange: Exchange, body: ImportOptions): Promise<Reply> {
  const { scope: needed, ...exchanged } = exchange
  const { content, ...options } = body
  const { upload, operations } = context
  if ((content === undefined) === (upload === undefined)) {
    const message = 'Send `content`, or multipart/form-data with the parts `options` and `file`.'
    throw fail('validation_failed', { field: 'content', message })
  }
  await context.inTransaction('read', async (tx) =>
    requireImportable(await exchangeScope({ ...context, tx }, exchange), options),
  )
  const take = (bytes: AsyncIterable<Uint8Array>) =>
    operations.receive(context, { type: 'records.import', scope: needed }, bytes)
  const file = await (upload ? upload.receive(take) : take(oneChunk(content!)))
  const input: ImportInput = { ...exchanged, options }
  return answerWith(context, file, input)
}

/** A repetition of the request is answered as the first time, and its file is not needed. */
async function answerWith(context: Context, file: ReceivedFile, input: ImportInput): Promise<Reply> {
  let isTaken = false
  try {
    const reply = await context.answerOnce(file.sha256, (tx) => {
      isTaken = true
      return context.operations.beginReceived({ ...context, tx }, file, input)
    })
    if (!isTaken) await context.operations.discard(context, file)
    return reply
  } catch (error) {
    if (error instanceof Failure) await context.operations.discard(context, file)
    throw error
  }
}

function requireImportable({ access }: RecordScope, { mode, key, mapping }: ImportInput['options']): void {
  if (!access.create && !(mode === 'upsert' && access.update)) throw fail('permission_denied')
  if (key !== undefined && mode !== 'upsert') {
    // Left unsaid, who forgot the mode would find everything twice.
    throw fail('validation_failed', { field: 'key', message: 'A key goes with the mode `upsert`.' })
  }
  requireMapping({ mapping, mode, key }, access)
  const isField = key !== undefined && key !== 'externalKey' && key !== 'recordId'
  if (isField && !access.readableByKey.get(key)?.unique) {
    const message = 'Expected externalKey, recordId, or the key of a unique field.'
    throw fail('validation_failed', { field: 'key', message })
  }
}

async function* oneChunk(content: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content)
}
