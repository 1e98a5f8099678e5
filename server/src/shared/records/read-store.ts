import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { visible, visibleParts } from '../access/envelope.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import type { Field } from '../catalogue/field.ts'
import { isTimeout } from '../database/failures.ts'
import type { Words } from '../search-text.ts'
import { conditionSql } from './conditions.ts'
import type { RecordQuery, Selection } from './query.ts'
import { columnsOf, type RecordRow } from './record.ts'
import { searchTagsOf } from './search-document.ts'
import { questionSql } from './search-question.ts'
import { orderBy, positionOf, regionsAfter } from './sort.ts'
import { firstOfParts, isInOrder, rowOf, walkToPage } from './walk.ts'

/** Every SQL statement that reads records of custom objects. Visibility comes from `shared/access`, never from here. */
export interface Page {
  readonly rows: readonly RecordRow[]
  readonly hasMore: boolean
  /** Sort values of the last row, when there is more. */
  readonly next: readonly (string | null)[] | undefined
}

/** `seen`: what the caller sees, or a part of it. `held`: what else is asked of a record, and is not in the selection. */
function selected({ access, filter, includeArchived }: Selection, caller: Caller, seen: Sql, held: Sql): Sql {
  const live = includeArchived ? empty : sql` AND t.archived_at IS NULL`
  const filtered = filter ? sql` AND ${conditionSql(filter, 't', caller)}` : empty
  return sql`FROM ${raw(access.object.table)} t WHERE ${seen}${live}${filtered}${held}`
}

/** Where more records than these hold the words, reading all of them to sort a page out takes longer than what is below. */
const foundMax = 2000

/**
 * The records that hold the words, looked up once for a statement: `found`, and whether they are few. The planner cannot know
 * how many there will be, so a statement holds both ways to go on, of which one is taken: from few records to their rows; or
 * through the rows in the order of the page, leaving out those that are not among the many. The other way adds no row, so the
 * order of the one is that of both. IS NOT FALSE keeps the planner from making a join, which would begin with reading all rows.
 */
function lookUp(words: Words, access: ObjectAccess, caller: Caller, seesFew = false): Sql {
  const { patterns, digits } = words
  const { objectId } = access.object
  const records = sql`SELECT portico.search_records(
    ${caller.organizationId}, ${objectId}, ${patterns as string[]}, ${digits}, ${searchTagsOf(access)}) AS record_id`
  // Of a caller who sees few, through those; it answers with all of them, being fewer than it ever ranks (10,000).
  const ofFew = sql`SELECT record_id FROM portico.search_page(${exactly(words, access, caller)}, 0, ${fewMax})`
  const none = sql`SELECT NULL::uuid AS record_id WHERE false`
  const found = patterns.length === 0 ? none : seesFew ? ofFew : records
  return sql`WITH found AS MATERIALIZED (${found}),
    size AS MATERIALIZED (SELECT count(*) <= ${foundMax} AS is_small FROM found) `
}

/** The question that is answered by records which hold the words, and never by similar names. */
function exactly(words: Words, access: ObjectAccess, caller: Caller): Sql {
  return questionSql(caller, { accesses: [access], words: { ...words, whole: '' } })
}

const amongFound = sql` AND t.record_id IN (SELECT record_id FROM found) AND (SELECT is_small FROM size)`
const amongMany = sql` AND (t.record_id IN (SELECT record_id FROM found)) IS NOT FALSE AND NOT (SELECT is_small FROM size)`

/** Archived records are in no part of what a caller sees. */
const isInParts = ({ includeArchived }: Selection) => !includeArchived

export async function findPage(tx: Tx, caller: Caller, query: RecordQuery): Promise<Page> {
  const { sort, pageSize, position, words } = query
  const after = position ? regionsAfter(sort, 't', position).map((region) => sql` AND ${region}`) : [empty]
  const isWalked = words !== undefined && words.patterns.length > 0 && isInOrder(query, caller)
  // By when a record was made or changed there is one region: neither is ever empty.
  const walked = isWalked ? await walkToPage(tx, caller, query, after[0]!) : undefined
  const rows =
    walked ?? (await (isSearched(query) ? searchPage(tx, caller, query) : readPage(tx, caller, query, after)))
  const hasMore = rows.length > pageSize
  if (hasMore) rows.pop()
  const last = rows.at(-1)
  const next = hasMore && last ? positionOf(sort, last) : undefined
  return { rows, hasMore, next }
}

/** Do the documents alone tell which records are on the page? They know who may see a record, and when it was made. */
function isSearched(query: RecordQuery): boolean {
  const { words, filter } = query
  return words !== undefined && words.patterns.length > 0 && filter === undefined && isByCreation(query)
}

/** The rows of the page and the one behind it. Of all that hold the words no other row is read. */
function searchPage(tx: Tx, caller: Caller, query: RecordQuery): Promise<RecordRow[]> {
  const { words, access, sort, position, page = 1, pageSize } = query
  const [at, recordId] = position ?? [null, null]
  return tx.rows<RecordRow>(sql`
    WITH found AS MATERIALIZED (SELECT portico.search_in_order(${exactly(words!, access, caller)},
      ${sort.columns[0]!.descending}::boolean, ${at}::timestamptz, ${recordId}::uuid,
      ${(page - 1) * pageSize}::integer, ${pageSize + 1}::integer) AS record_id)
    ${rowOf(query)} FROM ${raw(access.object.table)} t
    WHERE ${visible(caller, 't')} AND t.record_id = ANY (ARRAY(SELECT record_id FROM found))
    ORDER BY ${orderBy(sort, 't')}`)
}

/** The rows of the page and the one behind it, from `after` on: one region or two, each behind the one before. */
async function readPage(tx: Tx, caller: Caller, query: RecordQuery, after: readonly Sql[]): Promise<RecordRow[]> {
  const { words, access, page = 1, pageSize } = query
  const few = await amongFew(tx, caller, query)
  const inOrder = rowsInOrder(caller, query, few)
  const skip = page > 1 ? sql` OFFSET ${(page - 1) * pageSize}` : empty
  const rows: RecordRow[] = []
  for (const region of after) {
    const limit = sql`LIMIT ${pageSize + 1 - rows.length}${skip}`
    const found = await tx.rows<RecordRow>(
      words
        ? sql`${lookUp(words, access, caller, few !== empty)}
          (${allInOrder(query, caller, empty, sql`${amongFound}${region}`, limit)})
          UNION ALL (${inOrder(sql`${amongMany}${region}`, limit)})`
        : inOrder(region, limit),
    )
    rows.push(...found)
    if (rows.length > pageSize) break
  }
  return rows
}

/** How a page of rows is found in their order, by what else is asked of them and the limit. */
function rowsInOrder(caller: Caller, query: RecordQuery, few: Sql): (held: Sql, limit: Sql) => Sql {
  // Few words lead to the records themselves, and for all that somebody sees there is one index.
  const isInOnePart = caller.unrestricted && query.words === undefined
  return isByCreation(query) && isInParts(query) && !isInOnePart
    ? (held, limit) => partsInOrder(query, caller, held, limit)
    : (held, limit) => allInOrder(query, caller, few, held, limit)
}

const isByCreation = ({ sort }: RecordQuery) => sort.columns.length === 2 && sort.columns[0]!.column === 'created_at'

function allInOrder(query: RecordQuery, caller: Caller, few: Sql, held: Sql, limit: Sql): Sql {
  const rows = selected(query, caller, visible(caller, 't'), sql`${few}${held}`)
  return sql`${rowOf(query)} ${rows} ORDER BY ${orderBy(query.sort, 't')} ${limit}`
}

/**
 * The page in the order of creation: of each part of what the caller sees as many as could be on it, in the order of the
 * part's index, and of all of them together the page.
 */
function partsInOrder(query: RecordQuery, caller: Caller, held: Sql, limit: Sql): Sql {
  const { sort, access, page = 1, pageSize } = query
  const parts = visibleParts(caller, 't').map((part) => selected(query, caller, part, held))
  return sql`${rowOf(query)}
    FROM (${firstOfParts(parts, sort, page * pageSize + 1, limit)}) AS p
    JOIN ${raw(access.object.table)} t ON t.organization_id = ${caller.organizationId} AND t.record_id = p.record_id
    ORDER BY ${orderBy(sort, 't')}`
}

/** Sorting so many takes some 20 ms; whoever sees more finds a page soon in the order of an index. */
const fewMax = 5000

/** Asked where it helps: without words, the order of creation has its indexes. */
async function amongFew(tx: Tx, caller: Caller, query: RecordQuery): Promise<Sql> {
  if (query.includeArchived || (query.words === undefined && isByCreation(query))) return empty
  return amongFewOf(tx, caller, query.access)
}

/**
 * For a caller who sees few live records of an object the condition that it is one of them; else nothing. The planner takes
 * everybody to see many, and would look for the few in the order of the sort among all the others.
 */
export async function amongFewOf(tx: Tx, caller: Caller, { object }: ObjectAccess): Promise<Sql> {
  if (caller.unrestricted) return empty
  const parts = visibleParts(caller, 't').map(
    (part) => sql`(SELECT t.record_id FROM ${raw(object.table)} t
      WHERE ${part} AND t.archived_at IS NULL LIMIT ${fewMax + 1})`,
  )
  const all = join(parts, ' UNION ALL ')
  const [row] = await tx.rows<{ count: number }>(sql`SELECT count(*) AS count FROM (${all}) AS u`)
  return row!.count > fewMax ? empty : sql` AND t.record_id = ANY (ARRAY(${all}))`
}

/** Exact, or an error: never an estimate, never zero for "unknown" (data.md, Counts). */
export async function countSelected(tx: Tx, caller: Caller, selection: Selection): Promise<number> {
  try {
    const [row] = await tx.rows<{ count: number }>(countOf(selection, caller))
    return row!.count
  } catch (error) {
    if (isTimeout(error)) throw fail('count_unavailable', { cause: error })
    throw error
  }
}

function countOf(selection: Selection, caller: Caller): Sql {
  const { words, access, filter } = selection
  const all = visible(caller, 't')
  const counted = (seen: Sql, held: Sql) => sql`(SELECT count(*) ${selected(selection, caller, seen, held)})`
  const inParts = (held: Sql) =>
    join(
      (isInParts(selection) ? visibleParts(caller, 't') : [all]).map((part) => counted(part, held)),
      ' + ',
    )
  if (words === undefined) return sql`SELECT ${inParts(empty)} AS count`
  // The documents know who may see their records, and there are none of archived ones.
  if (filter === undefined && words.patterns.length > 0) {
    return sql`SELECT portico.search_count(${exactly(words, access, caller)}) AS count`
  }
  return sql`${lookUp(words, access, caller)} SELECT ${counted(all, amongFound)} + ${inParts(amongMany)} AS count`
}

/** Not FOR UPDATE: no change touches the key, so what refers to the record need not wait for it. */
const locking = raw(' FOR NO KEY UPDATE OF t')

/**
 * Locks those of the named records that the caller sees, in one order for everybody: two batches that change the same
 * records in opposite orders would otherwise wait for each other until the database ends one of them, after a second.
 */
export async function lockRecords(
  tx: Tx,
  caller: Caller,
  access: ObjectAccess,
  recordIds: readonly string[],
  externalKeys: readonly string[],
): Promise<void> {
  await tx.rows(sql`
    SELECT FROM ${raw(access.object.table)} t
    WHERE ${visible(caller, 't')}
      AND (t.record_id = ANY (${recordIds as string[]}) OR (t.external_key = ANY (${externalKeys as string[]}) AND t.archived_at IS NULL))
    ORDER BY t.record_id${locking}`)
}

/** One record, archived or not, when the caller sees it. */
export async function findRecord(
  tx: Tx,
  caller: Caller,
  access: ObjectAccess,
  recordId: string,
  fields: readonly Field[],
  lock = false,
): Promise<RecordRow | undefined> {
  const [row] = await tx.rows<RecordRow>(sql`
    SELECT ${raw(columnsOf(fields, 't'))} FROM ${raw(access.object.table)} t
    WHERE ${visible(caller, 't')} AND t.record_id = ${recordId}${lock ? locking : empty}`)
  return row
}

/** Those of the given records that the caller sees. */
export function findRecords(
  tx: Tx,
  caller: Caller,
  access: ObjectAccess,
  recordIds: readonly string[],
): Promise<RecordRow[]> {
  return tx.rows<RecordRow>(sql`
    SELECT ${raw(columnsOf(access.readable, 't'))} FROM ${raw(access.object.table)} t
    WHERE ${visible(caller, 't')} AND t.record_id = ANY (${recordIds as string[]})`)
}

/** The live record with an external key, locked, when the caller sees it; and whether one exists that it does not see. */
export async function findByExternalKeys(
  tx: Tx,
  caller: Caller,
  access: ObjectAccess,
  externalKeys: readonly string[],
): Promise<Map<string, { recordId: string; visible: boolean }>> {
  const rows = await tx.rows<{ external_key: string; record_id: string; visible: boolean }>(sql`
    SELECT t.external_key, t.record_id, (${visible(caller, 't')}) AS visible FROM ${raw(access.object.table)} t
    WHERE t.organization_id = ${caller.organizationId} AND t.external_key = ANY (${externalKeys as string[]})
      AND t.archived_at IS NULL`)
  return new Map(rows.map((row) => [row.external_key, { recordId: row.record_id, visible: row.visible }]))
}

export interface HistoryRow {
  readonly revision: number
  readonly changed_at: string
  readonly operation: 'created' | 'updated' | 'archived' | 'restored'
  readonly actor_kind: 'user' | 'credential' | 'system'
  readonly actor_id: string
  readonly changes: Record<string, [before: unknown, after: unknown]> | null
}

/** Changes of one record, newest first, older than `beforeRevision` where given. The record itself was authorised before. */
export function findHistory(
  tx: Tx,
  caller: Caller,
  recordId: string,
  beforeRevision: string | undefined,
  limit: number,
): Promise<HistoryRow[]> {
  return tx.rows<HistoryRow>(sql`
    SELECT revision, changed_at, operation, actor_kind, actor_id, changes FROM portico.record_history
    WHERE organization_id = ${caller.organizationId} AND record_id = ${recordId}
    ${beforeRevision === undefined ? empty : sql`AND revision < ${beforeRevision}::bigint`}
    ORDER BY revision DESC LIMIT ${limit}`)
}

export function findParticipants(
  tx: Tx,
  caller: Caller,
  recordId: string,
): Promise<{ userId: string; displayName: string }[]> {
  return tx.rows(sql`
    SELECT p.user_id AS "userId", u.display_name AS "displayName"
    FROM portico.record_participant p JOIN portico.tenant_user u USING (organization_id, user_id)
    WHERE p.organization_id = ${caller.organizationId} AND p.record_id = ${recordId} ORDER BY u.display_name, p.user_id`)
}
