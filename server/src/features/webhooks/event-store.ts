import sql from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { placedWithin } from '../../shared/access/envelope.ts'
import { type StoredEvent, storedEventColumns } from '../../shared/outbox/stored-event.ts'

/** Every SQL statement of the feed of events. */
export interface FeedRow extends StoredEvent {
  readonly position: number
}

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
 * Events in the order of their commits, and the latest position that there is, in one statement: with it the reader goes on
 * behind everything that it was not for. Tests of subscriptions are not in the feed. What of it the caller may know says
 * `knowable`; here as much of that as can be said of a row, lest empty pages count what the caller may not see.
 */
export async function findEvents(
  tx: Tx,
  caller: Caller,
  { afterPosition, eventKeys, objectIds, objectKeys, limit }: FeedSelection,
): Promise<{ readonly rows: FeedRow[]; readonly latest: number }> {
  const { organizationId, unrestricted, actor } = caller
  const began = unrestricted ? sql`true` : sql`e.actor_kind = ${actor.kind} AND e.actor_id = ${actor.id}`
  const link = sql`e.data -> 'relationship'`
  const others = objectKeys
    ? sql`e.subject_type = 'relationship' AND ARRAY[${link} ->> 'fromObjectKey', ${link} ->> 'toObjectKey'] && ${objectKeys as string[]}::text[]`
    : sql`true`
  const rows = await tx.rows<FeedRow & { readonly latest: number }>(sql`SELECT l.latest, f.*
    FROM (SELECT coalesce(max(position), 0) AS latest FROM portico.event WHERE organization_id = ${organizationId}) AS l
    LEFT JOIN LATERAL (
      SELECT e.position, ${storedEventColumns} FROM portico.event AS e
      WHERE e.organization_id = ${organizationId} AND e.position > ${afterPosition} AND e.subscription_id IS NULL
        AND e.event_key = ANY (${eventKeys as string[]})
        AND ((e.object_id IS NULL AND ${others}) OR (e.object_id = ANY (${objectIds as string[]}::uuid[]) AND ${placedWithin(caller, 'e')}))
        AND (e.subject_type <> 'operation' OR ${began})
      ORDER BY e.position LIMIT ${limit}) AS f ON true
    ORDER BY f.position`)
  return { rows: rows.filter((row) => row.eventId !== null), latest: rows[0]!.latest }
}
