import type { Actor } from '../../kernel/caller.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { emitEvents } from './emit.ts'
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
  const heading = { organizationId: data.organizationId, appId: saasAppId, actor, eventKey, subjectType: type }
  const event = { event_id: uuidv7(now), occurred_at: new Date(now).toISOString(), subject_id: String(subjectId), data }
  await emitEvents(tx, { ...heading, eventVersion: lifecycleEventVersion }, [event])
}
