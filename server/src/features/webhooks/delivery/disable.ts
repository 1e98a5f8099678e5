import sql from 'sql-template-tag'
import type { Tx } from '../../../kernel/transaction.ts'
import type { Destination } from './delivery.ts'

/** Why the service disabled a subscription by itself. */
export type DisabledReason = 'failing' | 'gone' | 'credential_revoked'

/**
 * Disables a subscription, unless it was disabled or saved anew meanwhile: what is held against it is about the address and the
 * credential that it had. Returns whether it was disabled. Its deliveries are ended later.
 */
export async function disableSubscription(
  tx: Tx,
  { organizationId, subscriptionId, destinationUrl, keyId }: Destination,
  reason: DisabledReason,
  at: number,
): Promise<boolean> {
  const time = new Date(at).toISOString()
  const rows = await tx.rows(sql`
    UPDATE portico.webhook_subscription SET enabled = false, disabled_reason = ${reason}, disabled_at = ${time},
      updated_at = ${time}, revision = revision + 1
    WHERE organization_id = ${organizationId} AND subscription_id = ${subscriptionId} AND enabled
      AND destination_url = ${destinationUrl} AND key_id = ${keyId}
    RETURNING 1`)
  return rows.length > 0
}
