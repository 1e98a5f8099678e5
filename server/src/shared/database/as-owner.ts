import type { Tx } from '../../kernel/transaction.ts'

/**
 * Runs `work` as the owner of the schema, inside a transaction that is bound to a builder: for DDL and for the rows that
 * define a model, of an application that was verified to be the account's. The binding stays as it is, and so does
 * row-level security: the owner sees definitions, and of organisations what it is bound to. When `work` throws, the
 * transaction is rolled back, and the role with it.
 */
export async function asOwner<T>(tx: Tx, work: () => Promise<T>): Promise<T> {
  await tx.rows({ text: 'SET LOCAL ROLE portico_owner', values: [] })
  const value = await work()
  await tx.rows({ text: 'SET LOCAL ROLE portico_app', values: [] })
  return value
}
