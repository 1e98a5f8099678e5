import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { visible, visibleParts } from '../../shared/access/envelope.ts'
import type { ObjectAccess } from '../../shared/access/permissions.ts'
import { isTimeout } from '../../shared/database/failures.ts'
import { amongFewOf } from '../../shared/records/read-store.ts'
import { questionSql } from '../../shared/records/search-question.ts'
import type { Words } from '../../shared/search-text.ts'

/** Every SQL statement of global search: which records, and how many. They are read, and authorised again, elsewhere. */
export interface Question {
  readonly accesses: readonly ObjectAccess[]
  readonly locationId: string | undefined
  /** Undefined when nothing is searched for. */
  readonly words: (Words & { readonly whole: string }) | undefined
}

export interface Found {
  readonly recordId: string
  readonly objectId: string
  /** 1 to 5 as in `portico.search_tier`, 6 for a similar title; null when nothing was searched for. */
  readonly tier: number | null
  readonly similarity: number | null
}

/** From row `skip` on the next `take` rows, best first. */
export async function findHits(
  tx: Tx,
  caller: Caller,
  question: Question,
  skip: number,
  take: number,
): Promise<Found[]> {
  if (isHopeless(question)) return []
  if (!question.words) return (await findLatest(tx, caller, question, skip + take)).slice(skip)
  return tx.rows<Found>(sql`
    SELECT record_id AS "recordId", object_id AS "objectId", tier, similarity
    FROM portico.search_page(${questionSql(caller, question)}, ${skip}::integer, ${take}::integer)`)
}

/** Exact, or an error: never an estimate, never zero for "unknown". */
export async function countHits(tx: Tx, caller: Caller, question: Question): Promise<number> {
  if (isHopeless(question)) return 0
  try {
    const counts = question.words
      ? [tx.rows<{ count: number }>(sql`SELECT portico.search_count(${questionSql(caller, question)}) AS count`)]
      : question.accesses.map((access) => {
          const parts = visibleParts(caller, 't').map((part) => sql`(SELECT count(*) ${live(part, question, access)})`)
          return tx.rows<{ count: number }>(sql`SELECT ${join(parts, ' + ')} AS count`)
        })
    return (await Promise.all(counts)).reduce((total, [row]) => total + row!.count, 0)
  } catch (error) {
    if (isTimeout(error)) throw fail('count_unavailable', { cause: error })
    throw error
  }
}

/** Records whose titles complete what was typed. */
export async function findTitles(tx: Tx, caller: Caller, question: Question, take: number): Promise<Found[]> {
  if (isHopeless(question) || !question.words) return []
  return tx.rows<Found>(sql`
    SELECT record_id AS "recordId", object_id AS "objectId", tier, similarity
    FROM portico.search_titles(${questionSql(caller, question)}, ${take}::integer)`)
}

/** The last changed records, newest first: of each object as many as could be among them, through its own index. */
export async function findLatest(tx: Tx, caller: Caller, question: Question, take: number): Promise<Found[]> {
  const lists = await Promise.all(
    question.accesses.map(async (access) => {
      const rows = await tx.rows<{ recordId: string; updatedAt: string }>(sql`
        SELECT t.record_id AS "recordId", t.updated_at AS "updatedAt"
        ${live(visible(caller, 't'), question, access)}${await amongFewOf(tx, caller, access)}
        ORDER BY t.updated_at DESC, t.record_id DESC LIMIT ${take}::integer`)
      return rows.map((row) => ({ ...row, objectId: access.object.objectId, tier: null, similarity: null }))
    }),
  )
  const order = (one: { recordId: string; updatedAt: string }) => one.updatedAt + one.recordId
  return lists
    .flat()
    .sort((a, b) => (order(a) < order(b) ? 1 : -1))
    .slice(0, take)
}

/** `seen`: what the caller sees, or a part of it. */
function live(seen: Sql, { locationId }: Question, { object }: ObjectAccess) {
  const located = locationId === undefined ? empty : sql` AND t.location_id = ${locationId}::uuid`
  return sql`FROM ${raw(object.table)} t WHERE ${seen} AND t.archived_at IS NULL${located}`
}

/** Nothing that the caller may read, or words that fold to nothing. */
function isHopeless({ accesses, words }: Question): boolean {
  return accesses.length === 0 || words?.patterns.length === 0
}
