import type { Tx } from '../../kernel/transaction.ts'

/**
 * Transactions that wrote into the outbox: when one of them has committed, the dispatcher is woken. In this process; a NOTIFY
 * in the transaction would reach others too, and would make all commits of the database wait for each other.
 */
const transactions = new WeakSet<Tx>()

export function noteEmitted(tx: Tx): void {
  transactions.add(tx)
}

export function hasEmitted(tx: Tx): boolean {
  return transactions.has(tx)
}
