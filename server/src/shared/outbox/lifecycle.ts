import sql from 'sql-template-tag'
import type { Actor } from '../../kernel/caller.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'

/** The nine lifecycle events of specification 6.2, and their version. */
export const lifecycleEventVersion = '2026-09-14'
export type LifecycleEventKey =
  | 'organization.created'
  | 'organization.updated'
  | 'organization.deactivated'
  | 'user.created'
  | 'user.updated'
  | 'user.deactivated'
  | 'membership.created'
  | 'membership.role_changed'
  | 'invitation.accepted'

export interface LifecycleEvent {
  readonly eventKey: LifecycleEventKey
  readonly organizationId: string
  readonly saasAppId: string
  readonly subject: { readonly type: 'organization' | 'user' | 'membership' | 'invitation'; readonly id: string }
  readonly data: object
}

/**
 * Writes the fact into the outbox, in the transaction of the change; it is delivered later. Several facts of one kind
 * about one subject in one transaction collapse to the last, which keeps the id of the first (specification 6.5).
 */
export async function emitLifecycle(
  { tx, actor, now }: { readonly tx: Tx; readonly actor: Actor; readonly now: number },
  { eventKey, organizationId, saasAppId, subject, data }: LifecycleEvent,
): Promise<void> {
  await tx.rows(sql`INSERT INTO portico.domain_event (organization_id, event_id, app_id, event_key, event_version, occurred_at,
      subject_type, subject_id, actor_kind, actor_id, data)
    VALUES (${organizationId}, ${uuidv7(now)}, ${saasAppId}, ${eventKey}, ${lifecycleEventVersion},
      ${new Date(now).toISOString()}, ${subject.type}, ${subject.id}, ${actor.kind}, ${actor.id}, ${JSON.stringify(data)})
    ON CONFLICT (organization_id, transaction_id, event_key, subject_id)
    DO UPDATE SET occurred_at = excluded.occurred_at, data = excluded.data`)
}
