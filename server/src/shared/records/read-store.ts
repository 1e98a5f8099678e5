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
import { columnNames, columnsOf, type RecordRow } from './record.ts'
import { searchTagsOf } from './search-document.ts'
import { orderBy, positionOf, regionsAfter, sortValues } from './sort.ts'

/** Every SQL statement that reads records of custom objects. Visibility comes from `shared/access`, never from here. */
export interface Page {
  readonly rows: readonly RecordRow[]
  readonly hasMore: boolean
  /** Sort values of the last row, when there is more. */
  readonly next: readonly (string | null)[] | undefined
}

function selected(selection: Selection, caller: Caller, seen = visible(caller, 't')): Sql {
  const { access, filter, words, includeArchived } = selection
  const { object } = access
  const live = includeArchived ? empty : sql` AND t.archived_at IS NULL`
  const filtered = filter ? sql` AND ${conditionSql(filter, 't', caller)}` : empty
  return sql`FROM ${raw(object.table)} t WHERE ${seen}${live}${filtered}${searched(words, access, caller)}`
}

/** Is what the caller sees best gone through part by part? Words lead to the records themselves; archived ones are in no part. */
function isInParts({ words, includeArchived }: Selection, caller: Caller): boolean {
  return !caller.unrestricted && words === undefined && !includeArchived
}

function searched(words: Words | undefined, access: ObjectAccess, caller: Caller): Sql {
  if (words === undefined) return empty
  const { patterns, digits } = words
  if (patterns.length === 0) return sql` AND false`
  // MATERIALIZED: otherwise, where it takes the other conditions to leave few rows, the planner calls the function for each
  // row of the table (300 records: 60 ms instead of 4).
  return sql` AND t.record_id IN (WITH found AS MATERIALIZED (SELECT portico.search_records(
    ${caller.organizationId}, ${access.object.objectId}, ${patterns as string[]}, ${digits}, ${searchTagsOf(access)}) AS record_id)
    SELECT record_id FROM found)`
}

export async function findPage(tx: Tx, caller: Caller, query: RecordQuery): Promise<Page> {
  const { sort, pageSize, position } = query
  const inParts = isInParts(query, caller)
  const isByCreation = sort.columns.length === 2 && sort.columns[0]!.column === 'created_at'
  const few = inParts && !isByCreation ? await amongFew(tx, caller, query.access.object.table) : empty
  const skip = query.page !== undefined && query.page > 1 ? sql` OFFSET ${(query.page - 1) * pageSize}` : empty
  const rows: RecordRow[] = []
  for (const region of position ? regionsAfter(sort, 't', position).map((after) => sql` AND ${after}`) : [empty]) {
    const limit = sql`LIMIT ${pageSize + 1 - rows.length}${skip}`
    const chosen =
      inParts && isByCreation
        ? pageOfParts(query, caller, region, limit)
        : sql`${selected(query, caller)}${few}${region} ORDER BY ${orderBy(sort, 't')} ${limit}`
    const found = await tx.rows<RecordRow>(sql`
      SELECT ${raw(columnsOf(query.columns, 't'))}${sortValues(sort, 't', columnNames(query.columns))} ${chosen}`)
    rows.push(...found)
    if (rows.length > pageSize) break
  }
  const hasMore = rows.length > pageSize
  if (hasMore) rows.pop()
  const last = rows.at(-1)
  const next = hasMore && last ? positionOf(sort, last) : undefined
  return { rows, hasMore, next }
}

/**
 * The page in the order of creation: of each part of what the caller sees as many as could be on it, in the order of the
 * part's index, and of all of them together the page.
 */
function pageOfParts(query: RecordQuery, caller: Caller, region: Sql, limit: Sql): Sql {
  const { sort, access, page = 1, pageSize } = query
  const parts = visibleParts(caller, 't').map(
    (part) => sql`(SELECT t.record_id, t.created_at ${selected(query, caller, part)}${region}
      ORDER BY ${orderBy(sort, 't')} LIMIT ${page * pageSize + 1})`,
  )
  return sql`FROM (SELECT u.* FROM (${join(parts, ' UNION ALL ')}) AS u ORDER BY ${orderBy(sort, 'u')} ${limit}) AS p
    JOIN ${raw(access.object.table)} t ON t.organization_id = ${caller.organizationId} AND t.record_id = p.record_id
    ORDER BY ${orderBy(sort, 't')}`
}

/** Sorting so many takes some 20 ms; whoever sees more finds a page soon in the order of an index. */
const fewMax = 5000

/**
 * For a caller who sees few live records of a table the condition that it is one of them; else nothing. The planner takes
 * everybody to see many, and would look for the few in the order of the sort among all the others.
 */
export async function amongFew(tx: Tx, caller: Caller, table: string): Promise<Sql> {
  if (caller.unrestricted) return empty
  const parts = visibleParts(caller, 't').map(
    (part) =>
      sql`(SELECT t.record_id FROM ${raw(table)} t WHERE ${part} AND t.archived_at IS NULL LIMIT ${fewMax + 1})`,
  )
  const all = join(parts, ' UNION ALL ')
  const [row] = await tx.rows<{ count: number }>(sql`SELECT count(*) AS count FROM (${all}) AS u`)
  return row!.count > fewMax ? empty : sql` AND t.record_id = ANY (ARRAY(${all}))`
}

/** Exact, or an error: never an estimate, never zero for "unknown" (data.md, Counts). */
export async function countSelected(tx: Tx, caller: Caller, selection: Selection): Promise<number> {
  const parts = isInParts(selection, caller) ? visibleParts(caller, 't') : [visible(caller, 't')]
  const counts = parts.map((part) => sql`(SELECT count(*) ${selected(selection, caller, part)})`)
  try {
    const [row] = await tx.rows<{ count: number }>(sql`SELECT ${join(counts, ' + ')} AS count`)
    return row!.count
  } catch (error) {
    if (isTimeout(error)) throw fail('count_unavailable', { cause: error })
    throw error
  }
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
