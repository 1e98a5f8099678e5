import sql from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { placedWithin } from '../../shared/access/envelope.ts'
import { type StoredEvent, storedEventColumns } from '../../shared/outbox/stored-event.ts'

/** Every SQL statement of the feed of events. */
export interface FeedRow extends StoredEvent {
  readonly position: number
}

/** Events that one answer looks at: half a second of them. What is asked for may be rare in a month of a busy organisation. */
export const lookedAtMax = 100_000

export interface FeedSelection {
  readonly afterPosition: number
  readonly eventKeys: readonly string[]
  /** Of events about records: the objects that the caller may read. */
  readonly objectIds: readonly string[]
  /** Their keys, where only events about them are asked for; undefined: those about anything. */
  readonly objectKeys: readonly string[] | undefined
  readonly limit: number
}

/**
 * Events in the order of their commits, and how far was looked, in one statement: the reader goes on behind everything that was
 * not for it. `isCut`: not to the latest. Tests of subscriptions are not in the feed. What of it the caller may know says
 * `knowable`; here as much of that as can be said of a row, lest empty pages count what the caller may not see.
 */
export async function findEvents(
  tx: Tx,
  caller: Caller,
  { afterPosition, eventKeys, objectIds, objectKeys, limit }: FeedSelection,
): Promise<{ readonly rows: FeedRow[]; readonly end: number; readonly isCut: boolean }> {
  const { organizationId, unrestricted, actor } = caller
  const began = unrestricted ? sql`true` : sql`e.actor_kind = ${actor.kind} AND e.actor_id = ${actor.id}`
  const link = sql`e.data -> 'relationship'`
  const others = objectKeys
    ? sql`e.subject_type = 'relationship' AND ARRAY[${link} ->> 'fromObjectKey', ${link} ->> 'toObjectKey'] && ${objectKeys as string[]}::text[]`
    : sql`true`
  const rows = await tx.rows<FeedRow & { readonly end: number; readonly isCut: boolean | null }>(sql`
    WITH found AS MATERIALIZED (
      SELECT e.position, ${storedEventColumns}
      FROM (SELECT * FROM portico.event WHERE organization_id = ${organizationId} AND position > ${afterPosition}
        ORDER BY position LIMIT ${lookedAtMax}) AS e
      WHERE e.subscription_id IS NULL AND e.event_key = ANY (${eventKeys as string[]})
        AND ((e.object_id IS NULL AND ${others}) OR (e.object_id = ANY (${objectIds as string[]}::uuid[]) AND ${placedWithin(caller, 'e')}))
        AND (e.subject_type <> 'operation' OR ${began})
      ORDER BY e.position LIMIT ${limit}),
    looked AS MATERIALIZED (
      SELECT (SELECT coalesce(max(position), 0) FROM portico.event WHERE organization_id = ${organizationId}) AS latest,
        -- Asked where the page is not full: only then could it have ended before the latest.
        CASE WHEN (SELECT count(*) FROM found) < ${limit} THEN (SELECT position FROM portico.event
          WHERE organization_id = ${organizationId} AND position > ${afterPosition}
          ORDER BY position OFFSET ${lookedAtMax - 1} LIMIT 1) END AS cut)
    SELECT coalesce(l.cut, l.latest) AS "end", l.cut < l.latest AS "isCut", f.*
    FROM looked l LEFT JOIN found f ON true ORDER BY f.position`)
  const { end, isCut } = rows[0]!
  return { rows: rows.filter((row) => row.eventId !== null), end, isCut: isCut ?? false }
}
