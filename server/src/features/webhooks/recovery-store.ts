import sql from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { EventHead } from '../../shared/outbox/disclosure.ts'
import { attemptsMax } from '../../shared/outbox/dispatch-store.ts'

/** From when to when, ISO 8601; the second is not included. */
export interface Span {
  readonly since: string
  readonly until: string
}

/**
 * Puts failed deliveries of a subscription back into the queue, with as many attempts as a new one has; those behind
 * `afterId` only, so that one that fails again at once is not taken twice. Returns their ids in order.
 */
export async function requeueFailed(
  tx: Tx,
  { organizationId }: Caller,
  {
    subscriptionId,
    since,
    until,
    afterId,
    now,
    limit,
  }: Span & {
    readonly subscriptionId: string
    readonly afterId: string | null
    readonly now: string
    readonly limit: number
  },
): Promise<string[]> {
  const rows = await tx.rows<{ deliveryId: string }>(sql`
    WITH taken AS (
      DELETE FROM portico.webhook_delivery
      WHERE organization_id = ${organizationId} AND state = 'failed' AND delivery_id = ANY (ARRAY(
        SELECT delivery_id FROM portico.webhook_delivery
        WHERE organization_id = ${organizationId} AND subscription_id = ${subscriptionId} AND state = 'failed'
          AND event_key <> 'webhook.test'
          AND delivery_id >= portico.uuid_at(${since}) AND delivery_id < portico.uuid_at(${until})
          AND delivery_id > coalesce(${afterId}::uuid, '00000000-0000-0000-0000-000000000000')
        ORDER BY delivery_id LIMIT ${limit}))
      RETURNING *)
    INSERT INTO portico.webhook_queue (organization_id, delivery_id, subscription_id, app_id, event_organization_id,
      event_id, event_key, event_version, created_at, attempts, attempt_count, max_attempts, trigger, due_at)
    SELECT organization_id, delivery_id, subscription_id, app_id, event_organization_id, event_id, event_key,
      event_version, created_at, attempts, attempt_count, attempt_count + ${attemptsMax}, 'recover', ${now}
    FROM taken RETURNING delivery_id AS "deliveryId"`)
  return rows.map((row) => row.deliveryId).sort()
}

/** An event that a subscription asks for. */
export interface AskedEvent extends EventHead {
  readonly position: number
  readonly eventId: string
  readonly eventVersion: string
  /** There is no delivery of it to the subscription. */
  readonly missed: boolean
}

/** Events that the subscription asks for, in their order, behind `afterPosition`. */
export function findAsked(
  tx: Tx,
  subscriptionId: string,
  { since, until, afterPosition, limit }: Span & { readonly afterPosition: number; readonly limit: number },
): Promise<AskedEvent[]> {
  return tx.rows(sql`
    SELECT position, organization_id AS "organizationId", app_id AS "appId", event_id AS "eventId", event_key AS "eventKey",
      event_version AS "eventVersion", subject_type AS "subjectType", actor_kind AS "actorKind", actor_id AS "actorId",
      object_id AS "objectId", owner_user_id AS "ownerUserId", data_role_id AS "dataRoleId",
      location_id AS "locationId", data, missed
    FROM portico.events_for_subscription(${subscriptionId}, ${since}, ${until}, ${afterPosition}, ${limit})`)
}
