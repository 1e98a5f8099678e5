import sql, { empty, join, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { noteQueued } from '../../shared/outbox/emitted.ts'
import type { DeliveryCategory, DeliveryState, DeliveryView } from './delivery-schema.ts'
import { manageable } from './store.ts'

/** Every SQL statement of requests about deliveries: those of the queue, and those that are over. */
export interface DeliveryRow extends Omit<DeliveryView, 'retryEligible'> {
  /** Null: the subscription was deleted. */
  readonly subscriptionEnabled: boolean | null
}

export interface DeliverySelection {
  readonly deliveryId?: string | undefined
  readonly subscriptionId?: string | undefined
  readonly eventId?: string | undefined
  readonly eventKey?: string | undefined
  readonly state?: DeliveryState | undefined
  readonly category?: DeliveryCategory | undefined
  readonly createdFrom?: string | undefined
  readonly createdTo?: string | undefined
  /** The last delivery of the page before. */
  readonly beforeId?: string | undefined
  readonly limit: number
}

/** A delivery by hand, or again since a time, begins anew whatever was tried before. */
const queuedState = sql`CASE WHEN d.leased_until IS NOT NULL THEN 'delivering'
  WHEN d.attempt_count = 0 OR d.trigger IN ('manual', 'recover', 'test') THEN 'pending' ELSE 'retrying' END`

const common = sql`d.organization_id, d.delivery_id AS "deliveryId", d.subscription_id AS "subscriptionId",
  d.event_id AS "eventId", d.event_key AS "eventKey", d.event_version AS "eventVersion",
  d.event_organization_id AS "organizationId", d.attempt_count AS "attemptCount", d.max_attempts AS "maxAttempts",
  d.created_at AS "createdAt", d.attempts`

const queued = sql`${common}, ${queuedState} AS state,
  CASE WHEN d.leased_until IS NULL THEN d.due_at END AS "nextAttemptAt", NULL::timestamptz AS "completedAt"`
const over = sql`${common}, d.state, NULL::timestamptz AS "nextAttemptAt", d.completed_at AS "completedAt"`

/** Newest first; one statement, so that a delivery that is on its way from one table to the other is in one of them. */
export async function findDeliveries(tx: Tx, caller: Caller, selection: DeliverySelection): Promise<DeliveryRow[]> {
  const { state, category, limit } = selection
  const isOver = state === 'delivered' || state === 'failed'
  const page = (parts: Sql, table: Sql, conditions: Sql) =>
    sql`(SELECT ${parts} FROM (${newestOf(caller, table, conditions, limit)}) AS d)`
  const shared = conditionsOf(selection)
  const waiting = [
    shared,
    state === undefined ? empty : sql`AND ${queuedState} = ${state}`,
    category === undefined ? empty : sql`AND d.attempts -> -1 ->> 'category' = ${category}`,
  ]
  const history = [
    shared,
    state === undefined ? empty : sql`AND d.state = ${state}`,
    // Whatever is no success has failed, and those have an index.
    category === undefined || category === 'success' ? empty : sql`AND d.state = 'failed'`,
    category === undefined ? empty : sql`AND d.category = ${category}`,
  ]
  const pages = [
    ...(isOver ? [] : [page(queued, sql`portico.webhook_queue`, join(waiting, ' '))]),
    ...(isOver || state === undefined ? [page(over, sql`portico.webhook_delivery`, join(history, ' '))] : []),
  ]
  return tx.rows(sql`SELECT d."deliveryId", d."subscriptionId", d."eventId", d."eventKey", d."eventVersion",
      d."organizationId", d.state, d."attemptCount", d."maxAttempts", d."nextAttemptAt", d."createdAt", d."completedAt",
      d.attempts, s.enabled AS "subscriptionEnabled"
    FROM (${join(pages, ' UNION ALL ')}) AS d
    LEFT JOIN portico.webhook_subscription s
      ON s.organization_id = d.organization_id AND s.subscription_id = d."subscriptionId"
    ORDER BY d."deliveryId" DESC LIMIT ${limit}`)
}

/**
 * The newest that the caller may know of. One with an envelope is asked for those of each of its subscriptions: a condition on
 * all of them would read through everything that is not for it (130 ms of a million deliveries).
 */
function newestOf(caller: Caller, table: Sql, conditions: Sql, limit: number): Sql {
  const newest = (more: Sql) => sql`SELECT d.* FROM ${table} d
    WHERE d.organization_id = ${caller.organizationId} ${more} ${conditions} ORDER BY d.delivery_id DESC LIMIT ${limit}`
  if (caller.unrestricted) return newest(empty)
  return sql`SELECT d.* FROM portico.webhook_subscription s
    CROSS JOIN LATERAL (${newest(sql`AND d.subscription_id = s.subscription_id`)}) AS d
    WHERE ${manageable(caller)} ORDER BY d.delivery_id DESC LIMIT ${limit}`
}

function conditionsOf(selection: DeliverySelection): Sql {
  const { deliveryId, subscriptionId, eventId, eventKey, createdFrom, createdTo, beforeId } = selection
  return join(
    [
      deliveryId === undefined ? empty : sql`AND d.delivery_id = ${deliveryId}`,
      subscriptionId === undefined ? empty : sql`AND d.subscription_id = ${subscriptionId}`,
      eventId === undefined ? empty : sql`AND d.event_id = ${eventId}`,
      eventKey === undefined ? empty : sql`AND d.event_key = ${eventKey}`,
      // Ids lead to the time they were made at: partitions that cannot hold any are not looked into.
      createdFrom === undefined ? empty : sql`AND d.delivery_id >= portico.uuid_at(${createdFrom}::timestamptz)`,
      createdTo === undefined ? empty : sql`AND d.delivery_id < portico.uuid_at(${createdTo}::timestamptz)`,
      beforeId === undefined ? empty : sql`AND d.delivery_id < ${beforeId}`,
    ],
    ' ',
  )
}

/**
 * Puts a delivery that failed back into the queue, for one attempt, due at once. That it is taken out of history decides: of two
 * who ask at the same time one finds it. False: it has not failed.
 */
export async function requeue(tx: Tx, { organizationId }: Caller, deliveryId: string, now: string): Promise<boolean> {
  noteQueued(tx)
  const rows = await tx.rows(sql`WITH taken AS (
      DELETE FROM portico.webhook_delivery
      WHERE organization_id = ${organizationId} AND delivery_id = ${deliveryId} AND state = 'failed' RETURNING *)
    INSERT INTO portico.webhook_queue (organization_id, delivery_id, subscription_id, app_id, event_organization_id,
      event_id, event_key, event_version, created_at, attempts, attempt_count, max_attempts, trigger, due_at)
    SELECT organization_id, delivery_id, subscription_id, app_id, event_organization_id, event_id, event_key,
      event_version, created_at, attempts, attempt_count, attempt_count + 1, 'manual', ${now}
    FROM taken RETURNING delivery_id`)
  return rows.length > 0
}

/** A request has a time limit; of more than these the worker ends the rest soon. */
const endedAtOnceMax = 10_000

/** Ends what waits for a subscription that is disabled or goes. What is under way, or being taken, ends by itself. */
export async function endQueued(
  tx: Tx,
  { organizationId }: Caller,
  subscriptionId: string,
  now: string,
): Promise<void> {
  await tx.rows(sql`WITH waiting AS MATERIALIZED (
      SELECT delivery_id FROM portico.webhook_queue
      WHERE organization_id = ${organizationId} AND subscription_id = ${subscriptionId} AND leased_until IS NULL
      LIMIT ${endedAtOnceMax} FOR UPDATE SKIP LOCKED),
    ended AS (
      DELETE FROM portico.webhook_queue q USING waiting w
      WHERE q.organization_id = ${organizationId} AND q.delivery_id = w.delivery_id RETURNING q.*)
    INSERT INTO portico.webhook_delivery (organization_id, delivery_id, subscription_id, app_id, event_organization_id,
      event_id, event_key, event_version, created_at, attempts, attempt_count, max_attempts, state, category, completed_at)
    SELECT organization_id, delivery_id, subscription_id, app_id, event_organization_id, event_id, event_key,
      event_version, created_at, attempts, attempt_count, max_attempts, 'failed', 'subscription_disabled', ${now}
    FROM ended`)
}
