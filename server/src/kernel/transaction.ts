/**
 * What a handler may do with the database: run statements inside the transaction that the pipeline opened and bound to
 * the caller's organisation. The root database is out of its reach (architecture.md, Transactions).
 */
export interface Statement {
  readonly text: string
  readonly values: readonly unknown[]
}

export interface Tx {
  /** Runs one statement and returns its rows. Statements issued without waiting leave in one write and run in order. */
  rows<Row>(statement: Statement): Promise<Row[]>
  /** Runs `fn` under a savepoint: when it throws, what it wrote is undone and the transaction goes on. */
  savepoint<T>(fn: () => Promise<T>): Promise<T>
}

export type TransactionMode = 'read' | 'write'

/** `own`: the handler opens its transactions itself, because it waits for something else in between. */
export type OperationTransaction = TransactionMode | 'own'
