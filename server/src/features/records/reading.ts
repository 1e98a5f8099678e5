import { fail } from '../../kernel/errors.ts'
import type { Operation, Reply } from '../../kernel/operation.ts'
import { contractVersion } from '../../kernel/schemas.ts'
import type { Field } from '../../shared/catalogue/field.ts'
import { type Context, operation } from '../../shared/context.ts'
import { historyPage } from '../../shared/records/history.ts'
import { chosenFields, expansions, parseQuery, parseSelection, type RecordQuery } from '../../shared/records/query.ts'
import { countSelected, findByExternalKeys, findPage, findParticipants } from '../../shared/records/read-store.ts'
import { type RecordRow, viewOf } from '../../shared/records/record.ts'
import { type RecordScope, recordScope } from '../../shared/records/scope.ts'
import { CountResult, History, HistoryQuery } from '../../shared/records/shapes.ts'
import { visibleRecord } from '../../shared/records/work.ts'
import { withExpanded } from './rules.ts'
import * as schema from './schema.ts'

const base = '/v1/apps/{saasAppId}/objects/{objectKey}/records'
const reading = {
  area: 'Records',
  credentials: ['live', 'dat'],
  scope: 'records.read',
  transaction: 'read',
  mcp: true,
} as const

const search = operation({
  ...reading,
  id: 'developerRecordsSearch',
  method: 'POST',
  path: `${base}/search`,
  summary: 'Search records by filter, words and sort.',
  description: 'Pages reach any depth. For long walks follow `nextCursor`: its cost does not grow with depth.',
  rateClass: 'search',
  params: schema.ObjectParams,
  body: schema.SearchBody,
  bodyOptional: true,
  responses: { 200: schema.SearchResult },
  errors: [
    'object_not_found',
    'filter_invalid',
    'sort_invalid',
    'cursor_invalid',
    'cursor_mismatch',
    'page_and_cursor',
    'page_size_exceeded',
    'count_unavailable',
  ],

  async handler(context, { params, body }) {
    const scope = await recordScope(context, params.objectKey)
    const { tx, caller, access } = scope
    const query = parseQuery(body, scope, context.cursors)
    const [page, total] = await Promise.all([
      findPage(tx, caller, query),
      query.includeTotal ? countSelected(tx, caller, query) : undefined,
    ])
    const records = page.rows.map((row) => viewOf(row, access, query.fields))
    if (query.expand.length > 0) await withExpanded(scope, page.rows, records, query.expand)
    return {
      status: 200,
      body: {
        records,
        hasMore: page.hasMore,
        page: query.page ?? null,
        pageSize: query.pageSize,
        nextCursor: page.next ? context.cursors.seal(query.identity, page.next) : null,
        ...(total !== undefined && { totalRecords: total, totalIsExact: true }),
      },
    }
  },
})

const count = operation({
  ...reading,
  id: 'developerRecordsCount',
  method: 'POST',
  path: `${base}/count`,
  summary: 'Count records exactly.',
  description:
    'Counts what a search with the same filter and words would list. A count that cannot be made in time is an error, never zero.',
  rateClass: 'search',
  params: schema.ObjectParams,
  body: schema.CountBody,
  bodyOptional: true,
  responses: { 200: CountResult },
  errors: ['object_not_found', 'filter_invalid', 'count_unavailable'],

  async handler(context, { params, body }) {
    const scope = await recordScope(context, params.objectKey)
    const totalRecords = await countSelected(scope.tx, scope.caller, parseSelection(body, scope))
    return { status: 200, body: { totalRecords, totalIsExact: true, contractVersion } }
  },
})

const get = operation({
  ...reading,
  id: 'developerRecordsGet',
  method: 'GET',
  path: `${base}/{recordId}`,
  summary: 'Read one record, archived or not.',
  description: 'A record that the caller may not see answers as one that does not exist.',
  rateClass: 'read',
  params: schema.RecordParams,
  query: schema.GetQuery,
  responses: { 200: schema.RecordSchema },
  responseHeaders: { ETag: { description: 'The revision, quoted.', example: '"1"' } },
  errors: ['object_not_found', 'record_not_found'],

  async handler(context, { params, query }) {
    const scope = await recordScope(context, params.objectKey)
    const { access } = scope
    const fields = chosenFields(query.fields, access)
    const expand = expansions(query.expand ?? [], scope)
    return answer(scope, await visibleRecord(scope, params.recordId), fields, expand)
  },
})

const getByKey = operation({
  ...reading,
  id: 'developerRecordsGetByKey',
  method: 'GET',
  path: `${base}/by-key/{externalKey}`,
  summary: 'Read the live record with this external key.',
  description: 'A record that the caller may not see answers as one that does not exist.',
  rateClass: 'read',
  params: schema.ExternalKeyParams,
  query: schema.GetQuery,
  responses: { 200: schema.RecordSchema },
  responseHeaders: { ETag: { description: 'The revision, quoted.', example: '"1"' } },
  errors: ['object_not_found', 'record_not_found'],

  async handler(context, { params, query }) {
    const scope = await recordScope(context, params.objectKey)
    const { access, caller, tx } = scope
    const fields = chosenFields(query.fields, access)
    const expand = expansions(query.expand ?? [], scope)
    const found = (await findByExternalKeys(tx, caller, access, [params.externalKey])).get(params.externalKey)
    if (!found?.visible) throw fail('record_not_found')
    return answer(scope, await visibleRecord(scope, found.recordId), fields, expand)
  },
})

const history = operation({
  ...reading,
  id: 'developerRecordsGetHistory',
  method: 'GET',
  path: `${base}/{recordId}/history`,
  summary: 'Read what happened to a record, newest first.',
  description:
    'Each change with the values before and after. Changes of fields that the caller may not read are left out.',
  rateClass: 'read',
  params: schema.RecordParams,
  query: HistoryQuery,
  responses: { 200: History },
  errors: ['object_not_found', 'record_not_found', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler(context, { params, query }) {
    const scope = await recordScope(context, params.objectKey)
    return { status: 200, body: await historyPage(context, scope, params.recordId, query) }
  },
})

const participants = operation({
  ...reading,
  id: 'developerRecordsListParticipants',
  method: 'GET',
  path: `${base}/{recordId}/participants`,
  summary: 'List the users who take part in a record.',
  description: 'Participants see and may edit the record whoever owns it.',
  rateClass: 'read',
  params: schema.RecordParams,
  responses: { 200: schema.Participants },
  errors: ['object_not_found', 'record_not_found'],

  async handler(context, { params }) {
    const scope = await recordScope(context, params.objectKey)
    await visibleRecord(scope, params.recordId)
    const items = await findParticipants(scope.tx, scope.caller, params.recordId)
    return { status: 200, body: { items, nextCursor: null } }
  },
})

async function answer(
  scope: RecordScope,
  row: RecordRow,
  fields: readonly Field[],
  expand: RecordQuery['expand'],
): Promise<Reply> {
  const record = viewOf(row, scope.access, fields)
  if (expand.length > 0) await withExpanded(scope, [row], [record], expand)
  return { status: 200, body: record, headers: { etag: `"${record.revision}"` } }
}

export const readingOperations: readonly Operation<Context>[] = [search, count, get, getByKey, history, participants]
