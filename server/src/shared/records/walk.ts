import sql, { join, raw, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { visibleParts } from '../access/envelope.ts'
import type { Words } from '../search-text.ts'
import { conditionSql } from './conditions.ts'
import type { RecordQuery } from './query.ts'
import { columnNames, columnsOf, type RecordRow } from './record.ts'
import { searchTagsOf } from './search-document.ts'
import { orderBy, type Sort, sortValues } from './sort.ts'

/**
 * Pages in an order that has an index. Words that many records hold are found by going through the records in that order:
 * what one in fifty holds fills a page of 50 after 2,500 records, however many hold it, while the index of words gives all of
 * them before the first is known.
 */

/** So many records tell how many hold the words, in some 3 ms; whoever sees no more has the answer by then. */
const sampled = 1200

/** Going through so many takes some 20 ms; of words that fewer hold, less than one in a hundred, the index of words is sooner. */
const reachMax = 5000

/** For a record more on the page, or on those before it, so many more: of words that so many hold the index takes long. */
const reachPerRecord = 10

/** Pages further behind are left to the index of words: what is gone through is listed in memory. */
const wantedMax = 10_000

/** Words of one and two letters are in no index: all documents would be read, a million in more than a second. */
const reachMaxOfShort = 60_000

/** Beyond what the sample promises, because it is one. What is not needed is listed, and not looked at. */
const margin = 2

/**
 * How many records to go through for `wanted` of those that hold the words, when `held` of the first `walked` do; undefined
 * when the index of words is sooner there. `areShort`: it has none of the words.
 */
export function reachFor(wanted: number, walked: number, held: number, areShort: boolean): number | undefined {
  if (held === 0) return undefined
  const expected = Math.ceil((wanted / held) * walked)
  const most = (areShort ? reachMaxOfShort : reachMax) + reachPerRecord * wanted
  return expected <= most ? expected * margin : undefined
}

/** Is there an index that gives the live records of the caller in the order of the sort, a part of what it sees each? */
export function isInOrder({ sort, includeArchived }: RecordQuery, caller: Caller): boolean {
  if (includeArchived || sort.columns.length !== 2) return false
  const { column } = sort.columns[0]!
  return column === 'created_at' || (column === 'updated_at' && caller.unrestricted)
}

interface Walked {
  readonly walked: number
  readonly held: number
}

/**
 * The rows of the page and the one behind it, by going through records from `after` on (a condition; empty: from the first);
 * undefined when few seem to hold the words. Each attempt is one statement: what changes meanwhile cannot come between what
 * was found and what is read.
 */
export async function walkToPage(
  tx: Tx,
  caller: Caller,
  query: RecordQuery,
  after: Sql,
): Promise<RecordRow[] | undefined> {
  const wanted = (query.page ?? 1) * query.pageSize + 1
  let reach: number | undefined = wanted > wantedMax ? undefined : sampled
  for (let attempt = 0; attempt < 2 && reach !== undefined; attempt++) {
    const rows: (RecordRow & Walked)[] = await tx.rows<RecordRow & Walked>(walkSql(caller, query, after, reach))
    const { walked, held } = rows[0]!
    if (held >= wanted || walked < reach) return rows.filter((row) => row.record_id !== null)
    reach = reachFor(wanted, walked, held, areShort(query.words!))
  }
  return undefined
}

/** As `portico.searches_by_words` says it: the longest comes first, between two signs of LIKE. */
function areShort({ patterns, digits }: Words): boolean {
  return digits === null && patterns[0]!.length < 5
}

/** One row at least, which says how many records were gone through and how many of them hold the words. */
function walkSql(caller: Caller, query: RecordQuery, after: Sql, reach: number): Sql {
  const { access, sort, filter, page = 1, pageSize } = query
  const { patterns, digits } = query.words!
  const table = raw(access.object.table)
  const own = sql`${table} t ON t.organization_id = ${caller.organizationId}`
  const parts = visibleParts(caller, 't').map(
    (part) => sql`FROM ${table} t WHERE ${part} AND t.archived_at IS NULL${after}`,
  )
  const walked = sql`(${firstOfParts(parts, sort, reach, sql`LIMIT ${reach}`)}) AS w`
  const idsOf = (from: Sql) => sql`ARRAY(SELECT w.record_id FROM ${from} ORDER BY ${orderBy(sort, 'w')}) AS ids`
  const matching = sql`walked w JOIN ${own} AND t.record_id = w.record_id`
  // Without a filter they are listed once, as an array that knows how many there are.
  const listed = filter
    ? sql`WITH walked AS MATERIALIZED (SELECT * FROM ${walked}),
      listed AS MATERIALIZED (SELECT ${idsOf(sql`${matching} WHERE ${conditionSql(filter, 't', caller)}`)},
        (SELECT count(*) FROM walked) AS walked),`
    : sql`WITH ids AS MATERIALIZED (SELECT ${idsOf(walked)}),
      listed AS MATERIALIZED (SELECT ids, cardinality(ids) AS walked FROM ids),`
  return sql`${listed}
    found AS MATERIALIZED (SELECT walked, portico.search_among(${caller.organizationId}, ${access.object.objectId}, ids,
      ${patterns as string[]}, ${digits}, ${searchTagsOf(access)}, ${page * pageSize + 1}::integer) AS ids FROM listed)
    ${rowOf(query)}, f.walked, cardinality(f.ids) AS held
    FROM found f LEFT JOIN ${own} AND t.record_id = ANY (f.ids[${(page - 1) * pageSize + 1}::integer : ${page * pageSize + 1}::integer])
    ORDER BY ${orderBy(sort, 't')}`
}

/** Of each part the first `most` in the order of its index, and of all of them together those of `limit`: ids and sort values. */
export function firstOfParts(parts: readonly Sql[], sort: Sort, most: number, limit: Sql): Sql {
  const keys = (alias: string) => raw(sort.columns.map(({ column }) => `${alias}."${column}"`).join(', '))
  const each = parts.map((part) => sql`(SELECT ${keys('t')} ${part} ORDER BY ${orderBy(sort, 't')} LIMIT ${most})`)
  return sql`SELECT ${keys('u')} FROM (${join(each, ' UNION ALL ')}) AS u ORDER BY ${orderBy(sort, 'u')} ${limit}`
}

/** The select list of the rows of a page. */
export function rowOf({ columns, sort }: RecordQuery): Sql {
  return sql`SELECT ${raw(columnsOf(columns, 't'))}${sortValues(sort, 't', columnNames(columns))}`
}
