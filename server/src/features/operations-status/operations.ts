import { fail } from '../../kernel/errors.ts'
import { type Operation, type Reply, StreamBody } from '../../kernel/operation.ts'
import { type Context, operation } from '../../shared/context.ts'
import { pageOf } from '../../shared/cursors.ts'
import { endOperation } from '../../shared/operations/claims.ts'
import { sizeOfFile } from '../../shared/operations/files.ts'
import { findOperation, findOperations, type OperationRow, requestCancellation } from '../../shared/operations/store.ts'
import { downloadOf, isOver, viewOf } from './rules.ts'
import * as schema from './schema.ts'

const base = '/v1/apps/{saasAppId}/operations'
const one = `${base}/{operationId}`
const reading = {
  area: 'Operations',
  credentials: ['live', 'dat'],
  scope: 'operations.read',
  rateClass: 'read',
  transaction: 'read',
  mcp: true,
} as const
const retryAfter = {
  'Retry-After': { description: 'Seconds after which to ask again; while it goes on.', example: '1', sometimes: true },
} as const

const list = operation({
  ...reading,
  id: 'developerOperationsList',
  method: 'GET',
  path: base,
  summary: 'List long-running operations, newest first.',
  description: 'Those that the caller has begun; who sees everything in the organization sees all.',
  params: schema.ListParams,
  query: schema.ListQuery,
  responses: { 200: schema.OperationList },
  errors: ['cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler({ tx, caller, cursors, now }, { query }) {
    const { type: types, status: statuses } = query
    const { rows, nextCursor } = await pageOf(
      cursors,
      ['operations', caller.organizationId, types ?? null, statuses ?? null],
      query,
      (after, limit) => findOperations(tx, caller, { types, statuses, before: after?.[0], limit }, now),
      (row) => [row.operationId],
    )
    return { status: 200, body: { items: rows.map((row) => viewOf(row, caller.appId)), nextCursor } }
  },
})

const get = operation({
  ...reading,
  id: 'developerOperationsGet',
  method: 'GET',
  path: one,
  summary: 'Ask where an operation stands.',
  description:
    'Seen by whoever began it and by who sees everything in the organization; to others it does not exist. Kept for 7 days after its end.',
  params: schema.OperationParams,
  responses: { 200: schema.LongOperation },
  responseHeaders: retryAfter,
  errors: ['operation_not_found'],

  async handler(context, { params }) {
    return statusOf(context, await find(context, params.operationId))
  },
})

const cancel = operation({
  ...reading,
  id: 'developerOperationsCancel',
  method: 'POST',
  path: `${one}:cancel`,
  summary: 'Stop an operation.',
  description:
    'It stops after the step that it is at; what it has done by then stays. Cancelling what was cancelled changes nothing.',
  scope: 'operations.manage',
  rateClass: 'write',
  transaction: 'write',
  params: schema.OperationParams,
  responses: { 200: schema.LongOperation },
  responseHeaders: retryAfter,
  errors: ['operation_not_found', 'operation_ended'],

  async handler(context, { params }) {
    const { tx, caller, now } = context
    const { operationId } = params
    const asked = await requestCancellation(tx, caller, operationId, now)
    const { organizationId } = caller
    if (asked?.wasQueued) {
      await endOperation(tx, { organizationId, operationId }, { status: 'cancelled', result: null, error: null, now })
    }
    const row = await find(context, operationId)
    if (row.status !== 'cancelling' && row.status !== 'cancelled') throw fail('operation_ended')
    return statusOf(context, row)
  },
})

const errors = operation({
  ...reading,
  id: 'developerOperationsGetErrors',
  method: 'GET',
  path: `${one}/errors`,
  summary: 'Read what an operation could not do, one line of JSON for each row.',
  description: 'Grows while the operation goes on. Empty where everything could be done.',
  // The operation itself says how many there are; a file does not belong into the context of a model.
  mcp: false,
  params: schema.OperationParams,
  responses: { 200: schema.ErrorLines },
  contentTypes: ['application/x-ndjson'],
  errors: ['operation_not_found'],

  async handler(context, { params }) {
    const row = await find(context, params.operationId)
    return fileReply(context, row, 'errors', { contentType: 'application/x-ndjson', fileName: 'errors.ndjson' })
  },
})

const file = operation({
  ...reading,
  id: 'developerOperationsGetFile',
  method: 'GET',
  path: `${one}/file`,
  summary: 'Download what an export has written.',
  description:
    'Needs the scope that the export needed as well. The file holds what its maker could see when it was made; it is removed with the operation.',
  mcp: false, // a file does not belong into the context of a model
  params: schema.OperationParams,
  responses: { 200: schema.FileContent },
  contentTypes: ['text/csv', 'application/x-ndjson'],
  responseHeaders: {
    'Content-Disposition': { description: 'The name of the file.', example: 'attachment; filename="deal.csv"' },
  },
  errors: ['operation_not_found', 'operation_file_not_found'],

  async handler(context, { params }) {
    const row = await find(context, params.operationId)
    if (!context.caller.scopes.has(row.scope)) {
      throw fail('scope_missing', {
        message: `The credential lacks the scope ${row.scope}, which the operation needed.`,
        headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${row.scope}"` },
      })
    }
    const download = downloadOf(row)
    if (!download) throw fail('operation_file_not_found')
    return fileReply(context, row, 'result', download)
  },
})

async function find({ tx, caller, now }: Context, operationId: string): Promise<OperationRow> {
  const row = await findOperation(tx, caller, operationId, now)
  if (!row) throw fail('operation_not_found')
  return row
}

function statusOf({ caller }: Context, row: OperationRow): Reply {
  const reply = { status: 200, body: viewOf(row, caller.appId) }
  return isOver(row) ? reply : { ...reply, headers: { 'retry-after': '1' } }
}

async function fileReply(
  { tx, caller, operations }: Context,
  { operationId }: OperationRow,
  name: 'result' | 'errors',
  { contentType, fileName }: { readonly contentType: string; readonly fileName: string },
): Promise<Reply> {
  const owner = { organizationId: caller.organizationId, operationId }
  const sizeBytes = (await sizeOfFile(tx, owner, name)) ?? 0
  // The length that was promised: what a worker appends meanwhile is for the next request.
  const bytes = () => firstBytes(operations.read({ caller }, operationId, name), sizeBytes)
  return {
    status: 200,
    body: new StreamBody(bytes, contentType),
    headers: {
      'content-length': String(sizeBytes),
      'content-disposition': `attachment; filename="${fileName}"`,
      'cache-control': 'private, no-store',
    },
  }
}

async function* firstBytes(bytes: AsyncIterable<Uint8Array>, count: number): AsyncGenerator<Uint8Array> {
  let left = count
  if (left === 0) return
  for await (const piece of bytes) {
    yield piece.subarray(0, left)
    left -= piece.length
    if (left <= 0) return
  }
  throw new Error('A file ended before the length that was promised.')
}

export const longOperations: readonly Operation<Context>[] = [list, get, cancel, errors, file]
