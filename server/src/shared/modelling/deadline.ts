import type { Tx } from '../../kernel/transaction.ts'

/** What was to be done took too long, and was given up between two statements. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong'
}

/** The same transaction, for `limitMs` milliseconds from now. Later no statement begins: it throws `TookTooLong`. */
export function limited(tx: Tx, limitMs: number): Tx {
  const until = performance.now() + limitMs
  return {
    async rows(statement) {
      if (performance.now() > until) throw new TookTooLong(`Longer than ${limitMs} ms.`)
      return tx.rows(statement)
    },
    savepoint: (work) => tx.savepoint(work),
  }
}
