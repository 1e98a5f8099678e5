import type { Caller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { errorBody, errorTable, Failure, fail } from '../../kernel/errors.ts'
import { StaleIdentity } from '../../kernel/exchange.ts'
import type { TransactionMode, Tx } from '../../kernel/transaction.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Cursors } from '../cursors.ts'
import type { Database } from '../database/database.ts'
import { standingCaller } from '../identity/credential-identity.ts'
import type { Log } from '../log.ts'
import { type Claimed, type End, endOperation, release, Superseded, saveStep } from './claims.ts'
import { appendToFile, readFile } from './files.ts'
import type { Progress, Work, WorkContext, WorkKind } from './kind.ts'

/** What a worker needs to carry an operation on. */
export interface AttemptParts {
  readonly database: Database
  /** As requests get theirs: no organisation takes all connections. */
  readonly transact: <T>(mode: TransactionMode, caller: Caller, work: (tx: Tx) => Promise<T>) => Promise<T>
  readonly catalogue: Catalogue
  readonly cursors: Cursors
  readonly clock: Clock
  readonly log: Log
}

/** For how long a worker that says nothing is believed to be alive. */
export const leaseMs = 30_000
/** Claims without a step between them: an operation that ends its worker each time is given up. */
export const attemptsMax = 5
const backoffMs = 2_000
const backoffMaxMs = 60_000
const staleMax = 5

/** What whoever started the work may want of it meanwhile. */
export interface Hold {
  /** Aborted: to be left at once; what its step has written is undone. */
  readonly signal: AbortSignal
  /** Asked at the end of each step: shall it go on later, so that another has its turn? */
  isToYield(): boolean
}

class Yielded extends Error {
  override readonly name = 'Yielded'
}

class Cancelled extends Error {
  override readonly name = 'Cancelled'
}

/** Works on a claimed operation until it ends, or until this worker is to leave it. Never rejects. */
export async function attempt(parts: AttemptParts, kind: WorkKind, claimed: Claimed, hold: Hold): Promise<void> {
  const { database, clock, log } = parts
  const { operationId, organizationId, type, attempts } = claimed
  const about = { operationId, organizationId, type, attempts }
  let last: { readonly progress: Progress } = { progress: progressOf(claimed) }
  const end = (outcome: Omit<End, 'now'>) =>
    database.inOrganization(organizationId, (tx) => endOperation(tx, claimed, { ...outcome, now: clock.now() }))
  const failed = (failure: Failure) =>
    end({ status: 'failed', result: null, error: errorBody(failure, claimed.correlationId) })
  try {
    if (claimed.status === 'cancelling') throw new Cancelled()
    if (attempts > attemptsMax) throw fail('operation_given_up')
    const { status, result, error } = await kind.run(
      workOf(parts, claimed, hold, (step) => {
        last = step
      }),
    )
    await end({ status, result, error: error ? errorBody(error, claimed.correlationId) : null })
    log.info({ ...about, status, ...last.progress }, 'An operation ended.')
  } catch (error) {
    try {
      await conclude(error)
    } catch (problem) {
      // The lease ends by itself.
      if (!(problem instanceof Superseded)) log.warn({ ...about, err: problem }, 'An operation could not be let go of.')
    }
  }

  async function conclude(error: unknown): Promise<void> {
    if (error instanceof Superseded) {
      log.warn(about, 'An operation went to another worker; what this one was about to write was undone.')
    } else if (error instanceof Cancelled) {
      await end({ status: 'cancelled', result: null, error: null })
      log.info({ ...about, ...last.progress }, 'An operation was cancelled.')
    } else if (hold.signal.aborted || error instanceof Yielded) {
      await release(database, claimed, clock.now(), true)
    } else if (error instanceof Failure && !isPassing(error)) {
      await failed(error)
      log.info({ ...about, code: error.code, ...last.progress }, 'An operation failed.')
    } else if (attempts >= attemptsMax && last.progress.processed === claimed.processed) {
      await failed(error instanceof Failure ? error : fail('internal_error'))
      log.error({ ...about, err: error }, 'An operation was given up.')
    } else {
      const waitMs = Math.min(backoffMs * 2 ** (attempts - 1), backoffMaxMs)
      await release(database, claimed, clock.now() + waitMs)
      log.warn({ ...about, err: error, waitMs }, 'An operation could not go on; trying again later.')
    }
  }
}

/** May the same succeed a little later? */
function isPassing({ code, status }: Failure): boolean {
  return status >= 500 || errorTable[code].retryable === true
}

function progressOf({ total, processed, succeeded, failed }: Claimed): Progress {
  return { total, processed, succeeded, failed }
}

function workOf(
  parts: AttemptParts,
  claimed: Claimed,
  { signal, isToYield }: Hold,
  onStep: (step: { readonly progress: Progress }) => void,
): Work<unknown, unknown> {
  const { database, clock } = parts
  const { operationId, organizationId, correlationId, input, checkpoint, createdAt } = claimed
  const asInitiator = initiator(parts, claimed)
  return {
    ...{ operationId, organizationId, correlationId, input, checkpoint, signal },
    createdAt: Date.parse(createdAt),
    progress: progressOf(claimed),
    file: (file) => readFile(database, claimed, file),
    read(read) {
      signal.throwIfAborted()
      return asInitiator('read', read)
    },
    async step(write) {
      signal.throwIfAborted()
      const { status, step } = await asInitiator('write', async (context) => {
        const step = await write(context)
        const { append = [], ...rest } = step
        for (const { file, bytes } of append) await appendToFile(context.tx, claimed, file, bytes)
        const storedBytes = append.reduce((sum, { bytes }) => sum + bytes.length, 0)
        // In the transaction of what was written: who was superseded writes nothing.
        const status = await saveStep(context.tx, claimed, { ...rest, storedBytes, dueAt: clock.now() + leaseMs })
        return { status, step }
      })
      onStep(step)
      if (status === 'cancelling') throw new Cancelled()
      if (isToYield()) throw new Yielded()
    },
  }
}

/** Runs transactions as whoever began the operation, read anew whenever rights have changed. */
function initiator(
  { database, transact, catalogue, cursors, clock }: AttemptParts,
  { keyId, scope, organizationId }: Claimed,
) {
  let known: Caller | undefined

  async function standing(): Promise<Caller> {
    const isOver =
      known?.credentialKind === 'live' && known.expiresAt !== null && Date.parse(known.expiresAt) <= clock.now()
    if (known && !isOver) return known
    const caller = await database.inOrganization(organizationId, (tx) =>
      standingCaller(tx, { keyId, clock, delegatedMayHaveRunOut: true }),
    )
    if (!caller) throw fail('initiator_inactive')
    if (!caller.scopes.has(scope)) throw fail('scope_missing', { message: `The credential lacks the scope ${scope}.` })
    known = caller
    return caller
  }

  return async function asInitiator<T>(mode: TransactionMode, work: (context: WorkContext) => Promise<T>): Promise<T> {
    for (let count = 1; ; count++) {
      const caller = await standing()
      try {
        return await transact(mode, caller, (tx) => work({ caller, tx, now: clock.now(), catalogue, cursors }))
      } catch (error) {
        if (!(error instanceof StaleIdentity) || count === staleMax) throw error
        known = undefined
      }
    }
  }
}
