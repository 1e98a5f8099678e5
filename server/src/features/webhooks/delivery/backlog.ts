import sql, { raw } from 'sql-template-tag'
import type { Database } from '../../../shared/database/database.ts'
import { presenceKey, presentKeys } from '../../../shared/database/presence.ts'
import { attemptsKept, leasesMax } from './delivery.ts'
import { queueSettings } from './queue-settings.ts'

/** What there is to do, over all organisations. Every statement runs as `portico_system`. */
export interface Backlog {
  /** Subscriptions that have something due, those first whose oldest is due longest. */
  readonly due: readonly string[]
  /** Subscriptions that are disabled or gone and still have deliveries that wait. */
  readonly ended: readonly string[]
}

const subscriptionsMax = 10_000

/**
 * Finds the subscriptions that have work by jumping from one to the next in the index, so that a million deliveries of one cost
 * what a single one costs.
 */
export async function findBacklog(database: Database, now: number): Promise<Backlog> {
  const rows = await database.as('portico_system', async (tx) => {
    const [, found] = await Promise.all([
      tx.rows(queueSettings({ durable: true })),
      tx.rows<{ id: string; ended: boolean }>(sql`
        WITH RECURSIVE head AS (
          (SELECT organization_id, subscription_id, due_at FROM portico.webhook_queue WHERE leased_until IS NULL
            ORDER BY subscription_id, due_at, delivery_id LIMIT 1)
          UNION ALL
          SELECT next.* FROM head CROSS JOIN LATERAL (
            SELECT organization_id, subscription_id, due_at FROM portico.webhook_queue
            WHERE leased_until IS NULL AND subscription_id > head.subscription_id
            ORDER BY subscription_id, due_at, delivery_id LIMIT 1) AS next)
        SELECT head.subscription_id AS id, s.enabled IS NOT TRUE AS ended
        FROM head LEFT JOIN portico.webhook_subscription s
          ON s.organization_id = head.organization_id AND s.subscription_id = head.subscription_id
        WHERE head.due_at <= ${iso(now)} OR s.enabled IS NOT TRUE
        ORDER BY head.due_at LIMIT ${subscriptionsMax}`),
    ])
    return found
  })
  return {
    due: rows.filter(({ ended }) => !ended).map(({ id }) => id),
    ended: rows.filter(({ ended }) => ended).map(({ id }) => id),
  }
}

/**
 * Ends up to `limit` deliveries that wait for a subscription which is disabled or gone. Returns how many those were. What is
 * under way ends by itself.
 */
export async function endDeliveries(
  database: Database,
  { subscriptionId, now, limit }: { readonly subscriptionId: string; readonly now: number; readonly limit: number },
): Promise<number> {
  return database.as('portico_system', async (tx) => {
    const [, ended] = await Promise.all([
      tx.rows(queueSettings({ durable: true })),
      tx.rows(sql`
        WITH waiting AS MATERIALIZED (
          SELECT q.organization_id, q.delivery_id FROM portico.webhook_queue q
          WHERE q.subscription_id = ${subscriptionId} AND q.leased_until IS NULL AND NOT EXISTS (
            SELECT FROM portico.webhook_subscription s
            WHERE s.organization_id = q.organization_id AND s.subscription_id = q.subscription_id AND s.enabled)
          LIMIT ${limit} FOR UPDATE OF q SKIP LOCKED),
        over AS (
          DELETE FROM portico.webhook_queue q USING waiting w
          WHERE q.organization_id = w.organization_id AND q.delivery_id = w.delivery_id RETURNING q.*)
        INSERT INTO portico.webhook_delivery (organization_id, delivery_id, subscription_id, app_id,
          event_organization_id, event_id, event_key, event_version, created_at, attempts, attempt_count, max_attempts,
          state, category, completed_at)
        SELECT organization_id, delivery_id, subscription_id, app_id, event_organization_id, event_id, event_key,
          event_version, created_at, attempts, attempt_count, max_attempts, 'failed', 'subscription_disabled', ${iso(now)}
        FROM over RETURNING 1`),
    ])
    return ended.length
  })
}

/** Workers that have leases and cannot be seen: they died, or have lost their connection for a moment. */
export async function findAbsentWorkers(database: Database): Promise<string[]> {
  const rows = await database.as('portico_system', (tx) =>
    tx.rows<{ id: string }>(sql`
      WITH holder AS MATERIALIZED (
        SELECT DISTINCT leased_by AS id FROM portico.webhook_queue WHERE leased_until IS NOT NULL)
      SELECT id FROM holder WHERE ${raw(presenceKey('id'))} NOT IN (SELECT key FROM ${presentKeys} AS present)`),
  )
  return rows.map(({ id }) => id)
}

/**
 * Leases that ran out, and those of workers that died. Each is kept as an attempt that does not count, since the receiver may
 * have nothing to do with it, and the delivery is due again, or given up when that has happened too often. Returns the ids of
 * those that were given up.
 */
export async function takeBackLostLeases(
  database: Database,
  { now, deadIds }: { readonly now: number; readonly deadIds: readonly string[] },
): Promise<string[]> {
  const rows = await database.as('portico_system', async (tx) => {
    const [, found] = await Promise.all([
      tx.rows(queueSettings({ durable: true })),
      tx.rows<{ deliveryId: string }>(sql`
        WITH lost AS MATERIALIZED (
          SELECT organization_id, delivery_id, lease_number,
            CASE WHEN jsonb_array_length(attempts) >= ${attemptsKept} THEN attempts - 0 ELSE attempts END
              || jsonb_build_object('attemptNumber', attempt_count + 1, 'trigger', trigger,
                'startedAt', to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                'durationMs', greatest(0, floor(extract(epoch FROM ${iso(now)}::timestamptz - started_at) * 1000))::integer,
                'httpStatus', NULL, 'category', 'worker_lost', 'responseExcerpt', NULL, 'responseTruncated', false)
              AS attempts
          FROM portico.webhook_queue
          WHERE leased_until < ${iso(now)} OR (leased_until IS NOT NULL AND leased_by = ANY (${deadIds}::uuid[]))
          LIMIT 1000 FOR UPDATE SKIP LOCKED),
        again AS (
          UPDATE portico.webhook_queue q
          SET leased_until = NULL, leased_by = NULL, started_at = NULL, due_at = ${iso(now)}, attempts = l.attempts
          FROM lost l
          WHERE q.organization_id = l.organization_id AND q.delivery_id = l.delivery_id
            AND l.lease_number < ${leasesMax}),
        over AS (
          DELETE FROM portico.webhook_queue q USING lost l
          WHERE q.organization_id = l.organization_id AND q.delivery_id = l.delivery_id
            AND l.lease_number >= ${leasesMax}
          RETURNING q.*, l.attempts AS all_attempts),
        kept AS (
          INSERT INTO portico.webhook_delivery (organization_id, delivery_id, subscription_id, app_id,
            event_organization_id, event_id, event_key, event_version, created_at, attempts, attempt_count, max_attempts,
            state, category, completed_at)
          SELECT organization_id, delivery_id, subscription_id, app_id, event_organization_id, event_id, event_key,
            event_version, created_at, all_attempts, attempt_count, max_attempts, 'failed', 'worker_lost', ${iso(now)}
          FROM over)
        SELECT delivery_id AS "deliveryId" FROM over`),
    ])
    return found
  })
  return rows.map(({ deliveryId }) => deliveryId)
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
