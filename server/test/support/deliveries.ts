import sql from 'sql-template-tag'
import { uuidv7 } from '../../src/kernel/ids.ts'
import type { Database } from '../../src/shared/database/database.ts'

interface Seed {
  readonly organizationId: string
  readonly appId: string
  readonly subscriptionId: string
  /** The same as the subscription's unless said otherwise. */
  readonly eventOrganizationId?: string
  readonly eventId?: string
  readonly eventKey?: string
  readonly state?: 'delivered' | 'failed'
  readonly category?: string
  readonly createdAt?: number
  readonly attempts?: readonly object[]
}

/** Writes a delivery that is over, as workers do; a failed one unless said otherwise. Returns its id. */
export async function seedDelivery(database: Database, seed: Seed): Promise<string> {
  const { organizationId, appId, subscriptionId, eventKey = 'record.updated', state = 'failed' } = seed
  const { category = state === 'failed' ? 'http_5xx' : 'success', createdAt = Date.now() } = seed
  const deliveryId = uuidv7(createdAt)
  const at = new Date(createdAt).toISOString()
  const attempts = seed.attempts ?? [attemptOf({ startedAt: at, category })]
  await database.inOrganization(organizationId, (tx) =>
    tx.rows(sql`INSERT INTO portico.webhook_delivery (organization_id, delivery_id, subscription_id, app_id,
        event_organization_id, event_id, event_key, event_version, created_at, attempts, attempt_count, max_attempts, state,
        category, completed_at)
      VALUES (${organizationId}, ${deliveryId}, ${subscriptionId}, ${appId}, ${seed.eventOrganizationId ?? organizationId},
        ${seed.eventId ?? uuidv7(createdAt)}, ${eventKey}, '2026-11-20', ${at}, ${JSON.stringify(attempts)},
        ${attempts.length}, 10, ${state}, ${category}, ${at})`),
  )
  return deliveryId
}

interface QueueSeed extends Omit<Seed, 'state' | 'category'> {
  readonly leasedUntil?: string
  readonly trigger?: string
}

/** Writes a delivery that is not over. */
export async function seedQueued(database: Database, seed: QueueSeed): Promise<string> {
  const { organizationId, appId, subscriptionId, createdAt = Date.now(), attempts = [], leasedUntil = null } = seed
  const deliveryId = uuidv7(createdAt)
  const at = new Date(createdAt).toISOString()
  await database.inOrganization(organizationId, (tx) =>
    tx.rows(sql`INSERT INTO portico.webhook_queue (organization_id, delivery_id, subscription_id, app_id,
        event_organization_id, event_id, event_key, event_version, created_at, attempts, attempt_count, max_attempts, due_at,
        leased_until, trigger)
      VALUES (${organizationId}, ${deliveryId}, ${subscriptionId}, ${appId}, ${organizationId}, ${seed.eventId ?? uuidv7(createdAt)},
        ${seed.eventKey ?? 'record.updated'}, '2026-11-20', ${at}, ${JSON.stringify(attempts)}, ${attempts.length}, 10, ${at},
        ${leasedUntil}, ${seed.trigger ?? 'schedule'})`),
  )
  return deliveryId
}

/** An attempt as it is kept with its delivery. */
export function attemptOf(change: object = {}): object {
  return {
    attemptNumber: 1,
    trigger: 'schedule',
    startedAt: '2026-09-14T09:30:00.000Z',
    durationMs: 12,
    httpStatus: 503,
    category: 'http_5xx',
    responseExcerpt: 'busy',
    responseTruncated: false,
    ...change,
  }
}
