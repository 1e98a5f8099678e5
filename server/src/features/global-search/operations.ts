import type { Operation } from '../../kernel/operation.ts'
import { contractVersion, Strict } from '../../kernel/schemas.ts'
import { browseLimit, browsePageOf, windowOf } from '../../shared/browse.ts'
import { type Context, operation } from '../../shared/context.ts'
import { profileOf, type RecordContext } from '../../shared/records/scope.ts'
import { CountResult } from '../../shared/records/shapes.ts'
import { type TenantContext, tenantOperation } from '../../shared/tenant-context.ts'
import { hitOf, readFound, summaryOf } from './presentation.ts'
import { type Filters, questionOf } from './rules.ts'
import * as schema from './schema.ts'
import { countHits, findHits, findLatest, findTitles } from './store.ts'

const base = '/v1/apps/{saasAppId}/modules/global-search'
const searching = {
  area: 'Global search',
  credentials: ['live', 'dat'],
  scope: 'modules.global-search.read',
  rateClass: 'search',
  transaction: 'read',
  mcp: true,
  method: 'GET',
  params: schema.Params,
} as const

const list = operation({
  ...searching,
  id: 'developerModulesGlobalSearchList',
  path: base,
  summary: 'Search the records of every module and object.',
  description: `Finds what holds all words, best first: exact titles, titles that begin with them, words of titles, parts of titles, then other fields; among equals the last changed. When nothing holds them, up to 50 records whose titles are similar. Browses the first ${browseLimit} by numbered pages; past them pages are empty.`,
  query: schema.ListQuery,
  responses: { 200: schema.List },
  errors: ['page_size_exceeded', 'count_unavailable'],

  async handler(context, { query }) {
    const { tx, caller } = context
    const question = await questionFor(context, query)
    const window = windowOf(query)
    const [found, total] = await Promise.all([
      window.size === 0 ? [] : findHits(tx, caller, question, window.offset, window.size + 1),
      query.includeTotal ? countHits(tx, caller, question) : undefined,
    ])
    const rows = await readFound(context, question, found.slice(0, window.size))
    const page = browsePageOf(window, { rows, hasMore: found.length > window.size }, total)
    const text = question.words && query.query
    return { status: 200, body: { ...page, items: page.items.map((read) => hitOf(read, text)) } }
  },
})

const count = operation({
  ...searching,
  id: 'developerModulesGlobalSearchCount',
  path: `${base}/count`,
  summary: 'Count what a global search finds, exactly.',
  description:
    'Counts what a list with the same arguments would find, without its window. A count that cannot be made in time is an error, never zero.',
  query: schema.CountQuery,
  responses: { 200: CountResult },
  errors: ['count_unavailable'],
  handler: async (context, { query }) => ({ status: 200, body: await countOf(context, query) }),
})

const suggest = operation({
  ...searching,
  id: 'developerModulesGlobalSearchSuggest',
  path: `${base}/suggest`,
  summary: 'Complete what somebody types into a search box.',
  description:
    'Records whose titles begin with it, then those whose titles hold its words; when there are none, similar titles.',
  query: schema.SuggestQuery,
  responses: { 200: schema.Suggestions },
  errors: [],

  async handler(context, { query }) {
    const question = await questionFor(context, query)
    const found = await findTitles(context.tx, context.caller, question, query.limit ?? 10)
    return { status: 200, body: { items: (await readFound(context, question, found)).map(summaryOf) } }
  },
})

const recent = operation({
  ...searching,
  id: 'developerModulesGlobalSearchListRecent',
  path: `${base}/recent`,
  summary: 'List the records that changed last.',
  description: 'Across modules and objects, the last changed first, with whether the caller changed it.',
  query: schema.RecentQuery,
  responses: { 200: schema.Recent },
  errors: [],

  async handler(context, { query }) {
    const { tx, caller } = context
    const question = await questionFor(context, query)
    const read = await readFound(context, question, await findLatest(tx, caller, question, query.limit ?? 10))
    const items = read.map((one) => ({
      ...summaryOf(one),
      updatedAt: one.row.updated_at,
      changedByCaller: one.row.updated_by_kind === caller.actor.kind && one.row.updated_by_id === caller.actor.id,
    }))
    return { status: 200, body: { items } }
  },
})

const tenantCount = tenantOperation({
  ...searching,
  id: 'developerTenantGlobalSearchCount',
  path: '/api/modules/global-search/count',
  area: 'Global search',
  credentials: ['ses'],
  params: Strict({}),
  mcp: false, // what a person does in a browser; a model has credentials of its own
  summary: 'Count what a global search finds, exactly.',
  description: 'The number that the API gives for the same user and the same arguments.',
  query: schema.CountQuery,
  responses: { 200: CountResult },
  errors: ['count_unavailable', 'organization_not_found'],
  handler: async (context, { query }) => ({ status: 200, body: await countOf(context, query) }),
})

async function questionFor(context: RecordContext, filters: Filters) {
  const known = profileOf(context)
  return questionOf(known instanceof Promise ? await known : known, filters)
}

async function countOf(context: RecordContext, filters: Filters) {
  const totalRecords = await countHits(context.tx, context.caller, await questionFor(context, filters))
  return { totalRecords, totalIsExact: true, contractVersion }
}

export const globalSearchOperations: readonly Operation<Context>[] = [list, count, suggest, recent]
export const globalSearchTenantOperations: readonly Operation<TenantContext>[] = [tenantCount]
