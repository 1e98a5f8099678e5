import sql, { empty } from 'sql-template-tag'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'

/** Why the service disabled a subscription by itself. */
export type DisabledReason = 'failing' | 'gone' | 'credential_revoked'

/**
 * Disables a subscription, unless it was disabled or saved anew meanwhile: what is held against it is about the credential that
 * it had, and about the address, where one is given. Returns whether it was disabled. Its deliveries are ended later.
 */
export async function disableSubscription(
  tx: Tx,
  subscription: {
    readonly organizationId: string
    readonly subscriptionId: string
    readonly keyId: string
    readonly destinationUrl?: string
  },
  reason: DisabledReason,
  at: number,
): Promise<boolean> {
  const { organizationId, subscriptionId, keyId, destinationUrl } = subscription
  const time = new Date(at).toISOString()
  const entry = {
    entry_id: uuidv7(at),
    correlation_id: uuidv7(at),
    occurred_at: time,
    actor_id: 'webhooks',
    action: 'webhook_subscription.disabled',
    target_type: 'webhook_subscription',
    target_id: subscriptionId,
    before: { enabled: true, disabledReason: null },
    after: { enabled: false, disabledReason: reason },
  }
  const rows = await tx.rows(sql`
    WITH disabled AS (
      UPDATE portico.webhook_subscription SET enabled = false, disabled_reason = ${reason}, disabled_at = ${time},
        updated_at = ${time}, revision = revision + 1
      WHERE organization_id = ${organizationId} AND subscription_id = ${subscriptionId} AND enabled AND key_id = ${keyId}
        ${destinationUrl === undefined ? empty : sql`AND destination_url = ${destinationUrl}`}
      RETURNING organization_id)
    SELECT portico.audit_by_service(organization_id, ${JSON.stringify(entry)}::jsonb) FROM disabled`)
  return rows.length > 0
}
