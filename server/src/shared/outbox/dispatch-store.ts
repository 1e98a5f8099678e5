import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import { type EventChoice, type Wanted, wantedOf } from './choices.ts'
import type { MovedEvent } from './dispatch.ts'
import type { Holder } from './standings.ts'

/** Every SQL statement of the dispatcher. All of them run as `portico_system`, over all organisations. */

/** Taken for the transaction, by whoever moves events. */
const lock = sql`SELECT pg_try_advisory_xact_lock(7032026, 20) AS held`

/**
 * Of events that are moved at once, as they are stored. Half a gigabyte, 500 large records, took longer than a statement may,
 * and so did every next try: nobody's events left any more. The first is moved whatever its size.
 */
const movedBytesMax = 16 * 1024 * 1024

/** Organisations that are looked at in one turn, in the order of their ids; each look-up takes 5 µs. */
const waitingMax = 2000
/** Rows that are looked at in one turn, shared by the organisations that have some. */
const lookedAtMax = 12_500

/**
 * Moves up to `limit` events from the outbox to `portico.event` and gives each its position: the oldest of each organisation
 * before the second of any, and those of one organisation in the order in which they were written. What is not committed yet
 * is not seen, and comes in a later turn.
 */
export async function moveEvents(tx: Tx, limit: number): Promise<MovedEvent[] | 'busy'> {
  const [row] = await tx.rows<{ held: boolean }>(lock)
  if (!row!.held) return 'busy'
  // By the place of the row: with a list of keys a planner that believes the outbox to be empty reads all of it.
  return tx.rows<MovedEvent>(sql`
    WITH RECURSIVE waiting AS (
      (SELECT organization_id, 1 AS number FROM portico.outbox ORDER BY organization_id LIMIT 1)
      UNION ALL
      SELECT (SELECT o.organization_id FROM portico.outbox o WHERE o.organization_id > w.organization_id
          ORDER BY o.organization_id LIMIT 1), w.number + 1
      FROM waiting w WHERE w.organization_id IS NOT NULL AND w.number < ${waitingMax}),
    picked AS MATERIALIZED (
      SELECT place, sum(size) OVER (ORDER BY turn, written) - size AS before FROM (
        SELECT oldest.* FROM waiting w CROSS JOIN LATERAL (
          SELECT o.ctid AS place, o.written, pg_column_size(o.data) AS size, row_number() OVER (ORDER BY o.written) AS turn
          FROM (SELECT ctid, written, data FROM portico.outbox WHERE organization_id = w.organization_id
            ORDER BY written LIMIT (SELECT greatest(20, ${lookedAtMax} / count(*)) FROM waiting)) AS o) AS oldest
        WHERE w.organization_id IS NOT NULL
        ORDER BY turn, written LIMIT ${limit}) AS sized),
    taken AS (
      DELETE FROM portico.outbox
      WHERE ctid = ANY (ARRAY(SELECT place FROM picked WHERE before < ${movedBytesMax}))
      RETURNING *),
    moved AS (
      INSERT INTO portico.event AS e (organization_id, event_id, position, app_id, event_key, event_version, occurred_at,
        subject_type, subject_id, actor_kind, actor_id, data, object_id, owner_user_id, data_role_id, location_id,
        changed_fields, subscription_id)
      SELECT organization_id, event_id, nextval('portico.event_position'), app_id, event_key, event_version, occurred_at,
        subject_type, subject_id, actor_kind, actor_id, data, object_id, owner_user_id, data_role_id, location_id,
        changed_fields, subscription_id
      FROM (SELECT * FROM taken ORDER BY written) AS t
      RETURNING e.*)
    SELECT organization_id AS "organizationId", event_id AS "eventId", app_id AS "appId", event_key AS "eventKey",
      event_version AS "eventVersion", subject_type AS "subjectType", actor_kind AS "actorKind",
      actor_id AS "actorId", object_id AS "objectId", owner_user_id AS "ownerUserId",
      data_role_id AS "dataRoleId", location_id AS "locationId", subscription_id AS "subscriptionId",
      CASE WHEN subject_type = 'relationship' THEN data ELSE '{}'::json END AS data
    FROM moved ORDER BY position`)
}

/** A subscription that is enabled. */
export interface SubscriptionRow extends Holder {
  readonly subscriptionId: string
  readonly scope: 'account' | 'app'
  readonly wanted: Wanted
}

/** Those that some of the events could be for. */
export async function findSubscriptions(tx: Tx, events: readonly MovedEvent[]): Promise<SubscriptionRow[]> {
  const organizationIds = [...new Set(events.map((event) => event.organizationId))]
  const appIds = [...new Set(events.map((event) => event.appId))]
  const rows = await tx.rows<Omit<SubscriptionRow, 'wanted'> & { events: EventChoice[] }>(sql`
    SELECT organization_id AS "organizationId", app_id AS "appId", subscription_id AS "subscriptionId", scope,
      key_id AS "keyId", events
    FROM portico.webhook_subscription
    WHERE enabled AND (organization_id = ANY (${organizationIds}::uuid[]) OR (scope = 'app' AND app_id = ANY (${appIds}::uuid[])))`)
  return rows.map(({ events, ...row }) => ({ ...row, wanted: wantedOf(events) }))
}

export interface NewDelivery {
  readonly organization_id: string
  readonly delivery_id: string
  readonly subscription_id: string
  readonly app_id: string
  readonly event_organization_id: string
  readonly event_id: string
  readonly event_key: string
  readonly event_version: string
  readonly created_at: string
  readonly trigger: 'schedule' | 'manual' | 'recover' | 'test'
}

/** How often a delivery is tried before it is given up (contract 6); a test, about which somebody waits to hear, once. */
export const attemptsMax = 10

/** Queues deliveries, due at once. */
export async function insertDeliveries(tx: Tx, deliveries: readonly NewDelivery[]): Promise<void> {
  if (deliveries.length === 0) return
  await tx.rows(sql`
    INSERT INTO portico.webhook_queue (organization_id, delivery_id, subscription_id, app_id, event_organization_id,
      event_id, event_key, event_version, created_at, due_at, trigger, max_attempts)
    SELECT organization_id, delivery_id, subscription_id, app_id, event_organization_id, event_id, event_key,
      event_version, created_at, created_at, trigger, CASE trigger WHEN 'test' THEN 1 ELSE ${attemptsMax} END
    FROM json_to_recordset(${JSON.stringify(deliveries)}::json) AS d (organization_id uuid, delivery_id uuid,
      subscription_id uuid, app_id uuid, event_organization_id uuid, event_id uuid, event_key text, event_version text,
      created_at timestamptz, trigger text)`)
}
