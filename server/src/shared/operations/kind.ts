import type { Caller } from '../../kernel/caller.ts'
import type { Failure } from '../../kernel/errors.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Cursors } from '../cursors.ts'

/**
 * One kind of long-running work, declared once: the runner gives it a worker, and a new one when that dies. What it does, it
 * does in steps. A step is one transaction that holds its writes, how far it came and where the next one begins, so a worker
 * that is killed anywhere leaves whole steps, and the next one goes on behind them.
 */
export interface WorkKind<Input = unknown, Checkpoint = unknown> {
  /** `records.import`: what the status of the operation names as its type. */
  readonly type: string
  /** Throws a `Failure` of the catalogue to end as `failed`; one that is retryable or a fault is tried again later. */
  run(work: Work<Input, Checkpoint>): Promise<WorkEnd>
}

/** Makes a kind for the list of the runner, which knows nothing of inputs. */
export function workKind<Input, Checkpoint>(kind: WorkKind<Input, Checkpoint>): WorkKind {
  return kind as unknown as WorkKind
}

export interface Progress {
  /** Null until it is known. */
  readonly total: number | null
  readonly processed: number
  readonly succeeded: number
  readonly failed: number
}

export type OperationFile = 'upload' | 'result' | 'errors'

export interface Work<Input, Checkpoint> {
  readonly operationId: string
  readonly organizationId: string
  readonly correlationId: string
  /** Milliseconds since the epoch: when it was begun. */
  readonly createdAt: number
  readonly input: Input
  /** Where the last step that committed left off; null before the first. */
  readonly checkpoint: Checkpoint | null
  readonly progress: Progress
  /** Aborted when the work is to stop: it was cancelled, somebody else has it, or the process ends. Ask it in long loops. */
  readonly signal: AbortSignal
  /**
   * Runs `read` as whoever began the operation, with the rights of this moment. Throws `initiator_inactive` where there are
   * none any more.
   */
  read<T>(read: (context: WorkContext) => Promise<T>): Promise<T>
  /**
   * Does one step as whoever began the operation. `write` may run more than once, and only its last run counts. Throws when
   * the work is to stop; let that through.
   */
  step(write: (context: WorkContext) => Promise<Step<Checkpoint>>): Promise<void>
  /** The bytes of one of its files, chunk by chunk. */
  file(file: OperationFile): AsyncIterable<Buffer>
}

/** What work on records takes (`RecordContext`), and cursors. */
export interface WorkContext {
  readonly caller: Caller
  readonly tx: Tx
  readonly now: number
  readonly catalogue: Catalogue
  readonly cursors: Cursors
}

export interface Step<Checkpoint> {
  readonly checkpoint: Checkpoint
  readonly progress: Progress
  /** Put at the end of a file. */
  readonly append?: readonly { readonly file: OperationFile; readonly bytes: Buffer }[]
}

export interface WorkEnd {
  readonly status: 'succeeded' | 'partially_succeeded' | 'failed'
  /** A JSON value for whoever asks for the status. */
  readonly result: unknown
  /** Why it ended as `failed`. */
  readonly error?: Failure
}
