import sql from 'sql-template-tag'
import type { Tx } from '../../../kernel/transaction.ts'
import type { Database } from '../../../shared/database/database.ts'
import { type DisabledReason, disableSubscription } from '../../../shared/outbox/disable.ts'
import { attemptsKept, type Destination, type Settlement } from './delivery.ts'
import { healthChanges, writeHealth } from './health.ts'
import { queueSettings } from './queue-settings.ts'
import { isGivenUp } from './schedule.ts'

/** Subscriptions that were disabled by what became of their deliveries. */
export interface Settled {
  readonly disabled: readonly { readonly subscriptionId: string; readonly reason: DisabledReason }[]
}

/**
 * Writes what became of deliveries, of many in one transaction: a commit costs more than all the rows in it. Only under the
 * lease that each was claimed with: a worker that was given up for lost writes nothing.
 */
export function settleDeliveries(database: Database, settlements: readonly Settlement[]): Promise<Settled> {
  return database.as('portico_system', async (tx) => {
    const [, rows] = await Promise.all([
      tx.rows(queueSettings({ durable: true })),
      tx.rows<{ deliveryId: string }>(writing(settlements)),
    ])
    const written = new Set(rows.map((row) => row.deliveryId))
    const valid = settlements.filter(({ claimed }) => written.has(claimed.deliveryId))
    return { disabled: [...(await disableGone(tx, valid)), ...(await disableFailing(tx, valid))] }
  })
}

function writing(settlements: readonly Settlement[]) {
  const rows = settlements.map(({ claimed, outcome, category, attempt, dueAt, at }) => ({
    organization_id: claimed.destination.organizationId,
    delivery_id: claimed.deliveryId,
    lease_number: claimed.leaseNumber,
    leased_until: claimed.leasedUntil,
    leased_by: claimed.leasedBy,
    outcome,
    category,
    attempt,
    due_at: dueAt === null ? null : new Date(dueAt).toISOString(),
    at: new Date(at).toISOString(),
  }))
  return sql`
    WITH result AS MATERIALIZED (
      SELECT * FROM json_to_recordset(${JSON.stringify(rows)}::json) AS r (organization_id uuid, delivery_id uuid,
        lease_number integer, leased_until timestamptz, leased_by uuid, outcome text, category text, attempt jsonb, due_at timestamptz,
        at timestamptz)),
    ended AS (
      DELETE FROM portico.webhook_queue q USING result r
      WHERE r.outcome IN ('delivered', 'failed') AND q.organization_id = r.organization_id
        AND q.delivery_id = r.delivery_id AND q.lease_number = r.lease_number AND q.leased_until = r.leased_until
        AND q.leased_by = r.leased_by
      RETURNING q.*, r.outcome, r.category, r.attempt, r.at),
    kept AS (
      INSERT INTO portico.webhook_delivery (organization_id, delivery_id, subscription_id, app_id,
        event_organization_id, event_id, event_key, event_version, created_at, attempts, attempt_count, max_attempts,
        state, category, completed_at)
      SELECT organization_id, delivery_id, subscription_id, app_id, event_organization_id, event_id, event_key,
        event_version, created_at,
        CASE WHEN attempt IS NULL THEN attempts WHEN jsonb_array_length(attempts) >= ${attemptsKept}
          THEN (attempts - 0) || attempt ELSE attempts || attempt END,
        attempt_count + CASE WHEN attempt IS NULL THEN 0 ELSE 1 END, max_attempts, outcome, category, at
      FROM ended),
    again AS (
      UPDATE portico.webhook_queue q SET leased_until = NULL, leased_by = NULL, started_at = NULL, due_at = r.due_at,
        lease_number = q.lease_number - CASE WHEN r.outcome = 'released' THEN 1 ELSE 0 END,
        trigger = CASE WHEN r.attempt IS NULL THEN q.trigger ELSE 'schedule' END,
        attempts = CASE WHEN r.attempt IS NULL THEN q.attempts WHEN jsonb_array_length(q.attempts) >= ${attemptsKept}
          THEN (q.attempts - 0) || r.attempt ELSE q.attempts || r.attempt END,
        attempt_count = q.attempt_count + CASE WHEN r.attempt IS NULL THEN 0 ELSE 1 END
      FROM result r
      WHERE r.outcome IN ('again', 'released') AND q.organization_id = r.organization_id
        AND q.delivery_id = r.delivery_id AND q.lease_number = r.lease_number AND q.leased_until = r.leased_until
        AND q.leased_by = r.leased_by
      RETURNING q.delivery_id, q.app_id, r.attempt, r.at),
    counted AS (
      INSERT INTO portico.webhook_usage AS u (app_id, day, attempts)
      SELECT app_id, (at AT TIME ZONE 'UTC')::date AS day, count(*) FROM (
        SELECT app_id, attempt, at FROM ended UNION ALL SELECT app_id, attempt, at FROM again) AS attempted
      WHERE attempt IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2
      ON CONFLICT (app_id, day) DO UPDATE SET attempts = u.attempts + excluded.attempts)
    SELECT delivery_id AS "deliveryId" FROM ended UNION ALL SELECT delivery_id FROM again`
}

/** A receiver that says 410 is gone for good: for the address that said so, not for one that took its place meanwhile. */
async function disableGone(tx: Tx, settlements: readonly Settlement[]): Promise<Settled['disabled']> {
  const gone = new Map<string, { destination: Destination; at: number }>()
  for (const { claimed, attempt, at } of settlements) {
    if (attempt?.category !== 'gone') continue
    gone.set(claimed.destination.subscriptionId, { destination: claimed.destination, at })
  }
  const disabled: { subscriptionId: string; reason: DisabledReason }[] = []
  for (const { destination, at } of gone.values()) {
    if (await disableSubscription(tx, destination, 'gone', at)) {
      disabled.push({ subscriptionId: destination.subscriptionId, reason: 'gone' })
    }
  }
  return disabled
}

async function disableFailing(tx: Tx, settlements: readonly Settlement[]): Promise<Settled['disabled']> {
  const disabled: { subscriptionId: string; reason: DisabledReason }[] = []
  const now = Math.max(...settlements.map(({ at }) => at))
  const destinations = new Map(
    settlements.map(({ claimed: { destination } }) => [destination.subscriptionId, destination]),
  )
  for (const health of await writeHealth(tx, healthChanges(settlements))) {
    if (!isGivenUp(health, now)) continue
    const { subscriptionId } = health
    if (await disableSubscription(tx, destinations.get(subscriptionId)!, 'failing', now)) {
      disabled.push({ subscriptionId, reason: 'failing' })
    }
  }
  return disabled
}
