import sql from 'sql-template-tag'
import type { Tx } from '../../../kernel/transaction.ts'
import type { Settlement } from './delivery.ts'

/** What attempts that ended together say about one receiver. */
export interface HealthChange {
  readonly organizationId: string
  readonly subscriptionId: string
  /** Milliseconds since the epoch; null: none of them succeeded. */
  readonly succeededAt: number | null
  /** Failures after the last success. */
  readonly failures: number
  readonly failedAt: number | null
}

export interface Health {
  readonly subscriptionId: string
  readonly consecutiveFailures: number
  /** The first since the last success. ISO 8601. */
  readonly firstFailureAt: string | null
}

/** How old the last success may look: a receiver that is well is not written down with every delivery. */
const successKnownForMs = 60_000

/** In the order of their ends. A success that changes nothing that anybody would notice is left out. */
export function healthChanges(settlements: readonly Settlement[]): HealthChange[] {
  const changes = new Map<string, HealthChange>()
  for (const { claimed, attempt, at } of settlements) {
    if (!attempt) continue
    const { organizationId, subscriptionId, consecutiveFailures, lastSuccessAt } = claimed.destination
    const change = changes.get(subscriptionId)
    if (attempt.category === 'success') {
      const isKnown = lastSuccessAt !== null && at - Date.parse(lastSuccessAt) < successKnownForMs
      if (isKnown && consecutiveFailures === 0 && !change) continue
      changes.set(subscriptionId, { organizationId, subscriptionId, succeededAt: at, failures: 0, failedAt: null })
    } else {
      const { succeededAt, failures, failedAt } = change ?? { succeededAt: null, failures: 0, failedAt: null }
      const failed = { failures: failures + 1, failedAt: failedAt ?? at }
      changes.set(subscriptionId, { organizationId, subscriptionId, succeededAt, ...failed })
    }
  }
  // Workers that write about the same receivers do so in one order, and wait instead of locking each other out.
  return [...changes.values()].sort((a, b) => (a.subscriptionId < b.subscriptionId ? -1 : 1))
}

/** Of subscriptions that still exist. Returns their health after the changes. */
export async function writeHealth(tx: Tx, changes: readonly HealthChange[]): Promise<Health[]> {
  if (changes.length === 0) return []
  const rows = changes.map(({ organizationId, subscriptionId, succeededAt, failures, failedAt }) => ({
    organization_id: organizationId,
    subscription_id: subscriptionId,
    succeeded_at: iso(succeededAt),
    failures,
    failed_at: iso(failedAt),
  }))
  return tx.rows<Health>(sql`
    INSERT INTO portico.webhook_health AS h (organization_id, subscription_id, consecutive_failures, first_failure_at,
      last_success_at)
    SELECT s.organization_id, s.subscription_id, r.failures, r.failed_at, r.succeeded_at
    FROM json_to_recordset(${JSON.stringify(rows)}::json) AS r (organization_id uuid, subscription_id uuid,
      succeeded_at timestamptz, failures integer, failed_at timestamptz)
    JOIN portico.webhook_subscription s USING (organization_id, subscription_id)
    ORDER BY s.subscription_id
    ON CONFLICT (organization_id, subscription_id) DO UPDATE SET
      consecutive_failures = excluded.consecutive_failures
        + CASE WHEN excluded.last_success_at IS NULL THEN h.consecutive_failures ELSE 0 END,
      first_failure_at = CASE WHEN excluded.last_success_at IS NULL
        THEN coalesce(h.first_failure_at, excluded.first_failure_at) ELSE excluded.first_failure_at END,
      last_success_at = greatest(h.last_success_at, excluded.last_success_at)
    RETURNING subscription_id AS "subscriptionId", consecutive_failures AS "consecutiveFailures",
      first_failure_at AS "firstFailureAt"`)
}

function iso(time: number | null): string | null {
  return time === null ? null : new Date(time).toISOString()
}
