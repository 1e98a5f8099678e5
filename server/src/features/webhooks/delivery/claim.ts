import sql from 'sql-template-tag'
import type { Database } from '../../../shared/database/database.ts'
import { type StoredEvent, storedEventColumns } from '../../../shared/outbox/stored-event.ts'
import {
  type ClaimedDelivery,
  type Destination,
  inFlightMax,
  leasedAheadMax,
  leaseMs,
  suspectAfterFailures,
} from './delivery.ts'
import { queueSettings } from './queue-settings.ts'

export interface Claim {
  /** Whoever claims. */
  readonly workerId: string
  /** Whose deliveries may be taken, in the order in which they are served. */
  readonly subscriptionIds: readonly string[]
  /** Those of them that let something wait at this moment. */
  readonly slowIds: readonly string[]
  readonly now: number
  /** How many may be taken, and how many of these for receivers that fail or are slow. */
  readonly count: number
  readonly suspectCount: number
  /** How large the data of their events may be together; the first is taken in any case. */
  readonly eventBytesMax: number
}

export interface Claimed {
  readonly deliveries: readonly ClaimedDelivery[]
  /** Subscriptions that have more that is due than was taken; and whether all they may have under way is. */
  readonly unfinished: ReadonlyMap<string, { readonly isFull: boolean }>
}

interface Row extends Omit<Destination, 'organizationId' | 'subscriptionId' | 'appId'> {
  readonly askedId: string
  readonly room: number
  readonly seen: number
  readonly deliveryId: string | null
  readonly subscriberId: string
  readonly subscriberAppId: string
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly trigger: ClaimedDelivery['trigger']
  readonly leaseNumber: number
  readonly leasedUntil: string
  readonly leasedBy: string
  readonly eventBytes: number
}

const lock = sql`SELECT pg_advisory_xact_lock(7032026, 21)`

/**
 * Takes deliveries that are due: of each subscription the oldest, as many as it may still have, and the first of each before
 * the second of any. One process claims at a time, so that the limits hold over all of them: where two workers have some of
 * one subscription, they have together no more than may be sent at once. Receivers that fail or are slow share a part of the
 * places, so that however many hang, there is room for the others.
 *
 * How large an event is is known when it has been read. As it is stored it is never larger, so no more are read than could be
 * taken: 128 events of 12 MB took 10 s, under the lock for which all others wait, and larger ones more than a statement may take.
 *
 * It is not waited until the lease is on disk: when the database crashes within that half second, what was under way is sent
 * once more, as after any crash of a sender.
 */
export function claimDeliveries(database: Database, claim: Claim): Promise<Claimed> {
  const leasedUntil = iso(claim.now + leaseMs)
  return database.as('portico_system', async (tx) => {
    // The second statement sees what the last holder of the lock committed.
    const [, , rows] = await Promise.all([
      tx.rows(queueSettings({ durable: false })),
      tx.rows(lock),
      tx.rows<Row & StoredEvent>(sql`
        WITH due AS MATERIALIZED (
          SELECT asked.id, asked.ord, held.room, head.organization_id, q.delivery_id, q.event_organization_id,
            q.event_id, held.count + q.number AS turn, q.number <= held.room AS fits, receiver.suspect
          FROM unnest(${claim.subscriptionIds}::uuid[]) WITH ORDINALITY AS asked (id, ord)
          CROSS JOIN LATERAL (
            SELECT organization_id FROM portico.webhook_queue
            WHERE subscription_id = asked.id AND leased_until IS NULL AND due_at <= ${iso(claim.now)}
            ORDER BY due_at, delivery_id LIMIT 1) AS head
          JOIN portico.webhook_subscription s
            ON s.organization_id = head.organization_id AND s.subscription_id = asked.id AND s.enabled
          LEFT JOIN portico.webhook_health h
            ON h.organization_id = head.organization_id AND h.subscription_id = asked.id
          CROSS JOIN LATERAL (
            SELECT coalesce(h.consecutive_failures >= ${suspectAfterFailures}, false)
              OR asked.id = ANY (${claim.slowIds}::uuid[]) AS suspect) AS receiver
          CROSS JOIN LATERAL (
            SELECT count(*) AS count,
              greatest(0, CASE WHEN receiver.suspect OR coalesce(bool_or(l.leased_by <> ${claim.workerId}::uuid), false)
                THEN ${inFlightMax}::integer ELSE ${leasedAheadMax}::integer END - count(*))::integer AS room
            FROM portico.webhook_queue l
            WHERE l.subscription_id = asked.id AND l.leased_until IS NOT NULL) AS held
          CROSS JOIN LATERAL (
            SELECT *, row_number() OVER (ORDER BY due_at, delivery_id) AS number FROM (
              SELECT delivery_id, event_organization_id, event_id, due_at FROM portico.webhook_queue
              WHERE subscription_id = asked.id AND leased_until IS NULL AND due_at <= ${iso(claim.now)}
              ORDER BY due_at, delivery_id LIMIT held.room + 1) AS oldest) AS q),
        allowed AS (
          SELECT * FROM (
            SELECT *, row_number() OVER (PARTITION BY suspect ORDER BY turn, ord) AS place FROM due
            WHERE fits) AS placed
          WHERE NOT suspect OR place <= ${claim.suspectCount}
          ORDER BY turn, ord LIMIT ${claim.count}),
        stored AS (
          SELECT a.*, e.data, sum(coalesce(pg_column_size(e.data), 0)) OVER (ORDER BY a.turn, a.ord)
            - coalesce(pg_column_size(e.data), 0) AS stored_before
          FROM allowed a
          LEFT JOIN portico.event e ON e.organization_id = a.event_organization_id AND e.event_id = a.event_id),
        measured AS (
          SELECT organization_id, delivery_id, turn, ord, coalesce(octet_length(data::text), 0) AS bytes FROM stored
          WHERE stored_before < ${claim.eventBytesMax}),
        picked AS MATERIALIZED (
          SELECT * FROM (SELECT *, sum(bytes) OVER (ORDER BY turn, ord) - bytes AS before FROM measured) AS summed
          WHERE before < ${claim.eventBytesMax} OR before = 0),
        leased AS (
          UPDATE portico.webhook_queue q
          SET leased_until = ${leasedUntil}, leased_by = ${claim.workerId}::uuid,
            lease_number = lease_number + 1, started_at = ${iso(claim.now)}
          FROM picked p
          WHERE q.organization_id = p.organization_id AND q.delivery_id = p.delivery_id AND q.leased_until IS NULL
          RETURNING q.*, p.bytes, p.turn, p.ord)
        SELECT asked.id AS "askedId", asked.room, asked.seen, l.delivery_id AS "deliveryId",
          l.attempt_count AS "attemptCount", l.max_attempts AS "maxAttempts", l.trigger, l.lease_number AS "leaseNumber",
          l.leased_until AS "leasedUntil", l.leased_by AS "leasedBy", l.bytes AS "eventBytes",
          s.organization_id AS "subscriberId", s.app_id AS "subscriberAppId", s.key_id AS "keyId",
          s.destination_url AS "destinationUrl", s.secret_sealed AS "secretSealed",
          s.previous_secret_sealed AS "previousSecretSealed", s.previous_secret_expires_at AS "previousSecretExpiresAt",
          coalesce(h.consecutive_failures, 0) AS "consecutiveFailures", h.last_success_at AS "lastSuccessAt",
          ${storedEventColumns}
        FROM (SELECT id, room, count(*)::integer AS seen FROM due GROUP BY id, room) AS asked
        LEFT JOIN leased l ON l.subscription_id = asked.id
        LEFT JOIN portico.webhook_subscription s
          ON s.organization_id = l.organization_id AND s.subscription_id = l.subscription_id
        LEFT JOIN portico.webhook_health h
          ON h.organization_id = l.organization_id AND h.subscription_id = l.subscription_id
        LEFT JOIN portico.event e ON e.organization_id = l.event_organization_id AND e.event_id = l.event_id
        ORDER BY l.turn, l.ord`),
    ])
    return claimedFrom(rows)
  })
}

function claimedFrom(rows: readonly (Row & StoredEvent)[]): Claimed {
  const unfinished = new Map<string, { isFull: boolean }>()
  for (const [askedId, ofOne] of Map.groupBy(rows, (row) => row.askedId)) {
    const { room, seen } = ofOne[0]!
    const taken = ofOne.filter((row) => row.deliveryId !== null).length
    if (seen > taken) unfinished.set(askedId, { isFull: taken === room })
  }
  const deliveries = rows.flatMap((row) => (row.deliveryId === null ? [] : [deliveryOf(row, row.deliveryId)]))
  return { deliveries, unfinished }
}

function deliveryOf(row: Row & StoredEvent, deliveryId: string): ClaimedDelivery {
  const { attemptCount, maxAttempts, trigger, leaseNumber, leasedUntil, leasedBy, eventBytes } = row
  const lease = { attemptCount, maxAttempts, trigger, leaseNumber, leasedUntil, leasedBy, eventBytes }
  return { deliveryId, destination: destinationOf(row), event: row.eventId === null ? null : eventOf(row), ...lease }
}

function destinationOf(row: Row): Destination {
  return {
    organizationId: row.subscriberId,
    subscriptionId: row.askedId,
    appId: row.subscriberAppId,
    keyId: row.keyId,
    destinationUrl: row.destinationUrl,
    secretSealed: row.secretSealed,
    previousSecretSealed: row.previousSecretSealed,
    previousSecretExpiresAt: row.previousSecretExpiresAt,
    consecutiveFailures: row.consecutiveFailures,
    lastSuccessAt: row.lastSuccessAt,
  }
}

function eventOf(row: StoredEvent): StoredEvent {
  return {
    organizationId: row.organizationId,
    eventId: row.eventId,
    appId: row.appId,
    eventKey: row.eventKey,
    eventVersion: row.eventVersion,
    occurredAt: row.occurredAt,
    subjectType: row.subjectType,
    subjectId: row.subjectId,
    actorKind: row.actorKind,
    actorId: row.actorId,
    data: row.data,
    objectId: row.objectId,
    ownerUserId: row.ownerUserId,
    dataRoleId: row.dataRoleId,
    locationId: row.locationId,
    changedFields: row.changedFields,
    subscriptionId: row.subscriptionId,
  }
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
