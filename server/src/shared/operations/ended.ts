import type { Tx } from '../../kernel/transaction.ts'
import type { OperationStatus } from './schema.ts'

export interface EndedOperation {
  readonly organizationId: string
  readonly operationId: string
  readonly appId: string
  readonly type: string
  readonly status: OperationStatus
  readonly actorKind: string
  readonly actorId: string
  readonly total: number | null
  readonly processed: number
  readonly succeeded: number
  readonly failed: number
  readonly createdAt: string
  readonly completedAt: string
}

/** Runs in the transaction that ends an operation, whatever it ends as: what follows from the end is written here. */
export async function operationEnded(_tx: Tx, _operation: EndedOperation): Promise<void> {}
