import sql from 'sql-template-tag'
import type { Actor } from '../../kernel/caller.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { noteEmitted } from './emitted.ts'
import {
  type LifecycleData,
  type LifecycleEventKey,
  lifecycleEvents,
  lifecycleEventVersion,
} from './lifecycle-events.ts'

/** A fact of one kind with the data of that kind. */
export type LifecycleEvent = {
  [K in LifecycleEventKey]: {
    readonly eventKey: K
    readonly saasAppId: string
    readonly data: LifecycleData<K>
  }
}[LifecycleEventKey]

/**
 * Writes the fact into the outbox, in the transaction of the change; it is delivered later. Organisation and subject are
 * those that the data names. Several facts of one kind about one subject in one transaction collapse to the last, which
 * keeps the id of the first (specification 6.5). The transaction must be bound to the organisation.
 */
export async function emitLifecycle(
  { tx, actor, now }: { readonly tx: Tx; readonly actor: Actor; readonly now: number },
  { eventKey, saasAppId, data }: LifecycleEvent,
): Promise<void> {
  const { type, idProperty } = lifecycleEvents[eventKey].subject
  const subjectId = (data as Readonly<Record<string, unknown>>)[idProperty]
  noteEmitted(tx)
  await tx.rows(sql`INSERT INTO portico.outbox (organization_id, event_id, app_id, event_key, event_version, occurred_at,
      subject_type, subject_id, actor_kind, actor_id, data)
    VALUES (${data.organizationId}, ${uuidv7(now)}, ${saasAppId}, ${eventKey}, ${lifecycleEventVersion},
      ${new Date(now).toISOString()}, ${type}, ${subjectId}, ${actor.kind}, ${actor.id}, ${JSON.stringify(data)})
    ON CONFLICT (organization_id, transaction_id, event_key, subject_id)
    DO UPDATE SET occurred_at = excluded.occurred_at, data = excluded.data`)
}
