import type { Actor } from '../../kernel/caller.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { emitEvents } from '../outbox/emit.ts'
import type { OperationStatus } from './schema.ts'

export interface EndedOperation {
  readonly organizationId: string
  readonly operationId: string
  readonly appId: string
  readonly type: string
  readonly status: OperationStatus
  readonly actorKind: Actor['kind']
  readonly actorId: string
  readonly total: number | null
  readonly processed: number
  readonly succeeded: number
  readonly failed: number
  readonly createdAt: string
  readonly completedAt: string
}

/** Runs in the transaction that ends an operation, whatever it ends as: what follows from the end is written here. */
export async function operationEnded(tx: Tx, ended: EndedOperation): Promise<void> {
  const { organizationId, operationId, appId, type, status, createdAt, completedAt } = ended
  const { total, processed, succeeded, failed } = ended
  const actor = { kind: ended.actorKind, id: ended.actorId }
  const progress = { total, processed, succeeded, failed }
  const operation = { operationId, type, status, progress, createdAt, completedAt }
  await emitEvents(tx, { organizationId, appId, actor, eventKey: 'operation.completed', subjectType: 'operation' }, [
    {
      event_id: uuidv7(Date.parse(completedAt)),
      occurred_at: completedAt,
      subject_id: operationId,
      data: { organizationId, operation },
    },
  ])
}
