import type { Operation } from '../../kernel/operation.ts'
import { contractVersion } from '../../kernel/schemas.ts'
import { browseLimit, browsePageOf, type Paging, windowOf } from '../../shared/browse.ts'
import { type Context, operation } from '../../shared/context.ts'
import { historyPage } from '../../shared/records/history.ts'
import { parseQuery } from '../../shared/records/query.ts'
import { countSelected, findPage } from '../../shared/records/read-store.ts'
import type { RecordContext } from '../../shared/records/scope.ts'
import { CountResult, History, HistoryQuery } from '../../shared/records/shapes.ts'
import { visibleRecord } from '../../shared/records/work.ts'
import { relatedPage } from '../../shared/relationships/pages.ts'
import { RelatedQuery, RelatedRecords } from '../../shared/relationships/schema.ts'
import { basePath, etag, moduleScope, operationId, readingOf } from './declaration.ts'
import type { Module } from './module.ts'
import { rowOf } from './row.ts'
import { ModuleParams, RowParams, type Shapes } from './schemas.ts'
import { type ListArguments, searchBodyOf, selectionOf } from './selection.ts'

const filterErrors = ['object_not_found', 'count_unavailable'] as const
const recordErrors = ['object_not_found', 'record_not_found'] as const

/** The operations of a module that read: list, count, get, history and relationships. */
export function readingOperationsOf(module: Module, shapes: Shapes): readonly Operation<Context>[] {
  const reading = readingOf(module)
  const base = `${basePath}/${module.key}`
  const things = module.pluralLabel.toLowerCase()
  const thing = module.label.toLowerCase()

  const list = operation({
    ...reading,
    id: operationId(module, 'List'),
    method: 'GET',
    path: base,
    summary: `List ${things}.`,
    description: `Browses the first ${browseLimit} by numbered pages; past them pages are empty. \`POST /objects/${module.key}/records/search\` reaches any depth. A location narrows what the caller sees, and never widens it.`,
    rateClass: 'search',
    params: ModuleParams,
    query: shapes.ListQuery,
    responses: { 200: shapes.List },
    errors: [...filterErrors, 'sort_invalid', 'page_size_exceeded'],

    async handler(context, input) {
      const query = input.query as ListArguments & Paging
      const scope = await moduleScope(context, module)
      const { tx, caller } = scope
      const window = windowOf(query)
      const { sort, ...rest } = { sort: query['sort'], ...searchBodyOf(module, scope, query) }
      const search = {
        ...rest,
        ...(sort !== undefined && { sort }),
        page: window.pageNumber,
        pageSize: window.pageSize,
      }
      const records = parseQuery(search, scope, context.cursors)
      const [page, total] = await Promise.all([
        window.size === 0 ? { rows: [], hasMore: false } : findPage(tx, caller, records),
        query.includeTotal ? countSelected(tx, caller, records) : undefined,
      ])
      const { items, ...answer } = browsePageOf(window, page, total)
      return { status: 200, body: { items: items.map((row) => rowOf(row, scope)), ...answer } }
    },
  })

  const count = operation({
    ...reading,
    id: operationId(module, 'Count'),
    method: 'GET',
    path: `${base}/count`,
    summary: `Count ${things} exactly.`,
    description:
      'Counts what a list with the same arguments would find, without its window. A count that cannot be made in time is an error, never zero.',
    rateClass: 'search',
    params: ModuleParams,
    query: shapes.CountQuery,
    responses: { 200: CountResult },
    errors: filterErrors,

    async handler(context, { query }) {
      return { status: 200, body: await countOf(context, module, query as ListArguments) }
    },
  })

  const get = operation({
    ...reading,
    id: operationId(module, 'Get'),
    method: 'GET',
    path: `${base}/{recordId}`,
    summary: `Read one ${thing}, archived or not.`,
    description: 'One that the caller may not see answers as one that does not exist.',
    rateClass: 'read',
    params: RowParams,
    responses: { 200: shapes.Row },
    responseHeaders: etag,
    errors: recordErrors,

    async handler(context, { params }) {
      const scope = await moduleScope(context, module)
      const row = await visibleRecord(scope, params.recordId)
      return { status: 200, body: rowOf(row, scope), headers: { etag: `"${row.revision}"` } }
    },
  })

  const history = operation({
    ...reading,
    id: operationId(module, 'GetHistory'),
    method: 'GET',
    path: `${base}/{recordId}/history`,
    summary: `Read what happened to one ${thing}, newest first.`,
    description:
      'Each change with the values before and after. Changes of fields that the caller may not read are left out.',
    rateClass: 'read',
    params: RowParams,
    query: HistoryQuery,
    responses: { 200: History },
    errors: [...recordErrors, 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

    async handler(context, { params, query }) {
      const scope = await moduleScope(context, module)
      return { status: 200, body: await historyPage(context, scope, params.recordId, query) }
    },
  })

  const relationships = operation({
    ...reading,
    id: operationId(module, 'ListRelationships'),
    method: 'GET',
    path: `${base}/{recordId}/relationships`,
    summary: `List what one ${thing} is related to, the latest related first.`,
    description:
      'Records at the other ends of its relationships, whichever end it is at. What the caller may not see is not listed. `POST /relationships` relates records.',
    rateClass: 'read',
    params: RowParams,
    query: RelatedQuery,
    responses: { 200: RelatedRecords },
    errors: [...recordErrors, 'reference_not_found', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

    async handler(context, { params, query }) {
      const scope = await moduleScope(context, module)
      return { status: 200, body: await relatedPage(context, scope, params.recordId, query) }
    },
  })

  return [list, count, get, history, relationships]
}

/** The exact count, for the API and for users on the host of their organisation. */
export async function countOf(context: RecordContext, module: Module, query: ListArguments) {
  const scope = await moduleScope(context, module)
  const totalRecords = await countSelected(scope.tx, scope.caller, selectionOf(module, scope, query))
  return { totalRecords, totalIsExact: true, contractVersion }
}
