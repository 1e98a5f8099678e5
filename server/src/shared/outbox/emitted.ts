import type { Tx } from '../../kernel/transaction.ts'

/**
 * Transactions that wrote into the outbox: when one of them has committed, the dispatcher is woken, of this process or of
 * another one (knock.ts).
 */
const transactions = new WeakSet<Tx>()

export function noteEmitted(tx: Tx): void {
  transactions.add(tx)
}

export function hasEmitted(tx: Tx): boolean {
  return transactions.has(tx)
}

/** Transactions that queued deliveries themselves: a retry by hand, a recovery. The worker is woken then. */
const queued = new WeakSet<Tx>()

export function noteQueued(tx: Tx): void {
  queued.add(tx)
}

export function hasQueued(tx: Tx): boolean {
  return queued.has(tx)
}
