import type pg from 'pg'
import { Failure } from '../../kernel/errors.ts'
import type { Statement, Tx } from '../../kernel/transaction.ts'
import { Batch, type Outcome } from './batch.ts'
import { isLostConnection } from './failures.ts'

/** What binds a transaction to whoever it runs for: settings of the transaction, and what must hold about them. */
export interface Binding {
  readonly text: BindingText
  readonly values: readonly unknown[]
  /** Sees what was selected before anything is committed or answered, whatever the work came to. */
  check?(rows: readonly unknown[]): void
}

export interface BindingText {
  readonly read: string
  readonly write: string
}

/** From the select list that makes the settings. */
export function bindingText(selected: string): BindingText {
  return { read: `SELECT set_config('transaction_read_only', 'on', true), ${selected}`, write: `SELECT ${selected}` }
}

type Work<T> = (tx: Tx) => Promise<T>
type Send = (statement: Statement) => Promise<Outcome>

/** Statements that are issued in one turn of the event loop leave together, behind what `open` puts first. */
function sender(client: pg.ClientBase, open: (batch: Batch) => void = () => {}): Send {
  let batch: Batch | undefined
  return (statement) => {
    if (!batch) {
      const opened = new Batch()
      batch = opened
      open(opened)
      process.nextTick(() => {
        batch = undefined
        client.query(opened as unknown as pg.Submittable)
      })
    }
    return batch.add(statement)
  }
}

/**
 * A transaction ends with its work. A branch of it that comes late must not run in the transaction of whoever has the
 * connection next.
 */
function lifetime(send: Send): { readonly during: Send; end(): void } {
  let over = false
  return {
    during: (statement) => (over ? Promise.reject(new Error('The transaction is over.')) : send(statement)),
    end: () => {
      over = true
    },
  }
}

/**
 * Reads. What is issued in one turn is one transaction, with its own binding: it goes out and ends in one write, and the
 * database holds nothing open while this process thinks. READ COMMITTED gives each statement its own snapshot anyway.
 */
export async function runRead<T>(client: pg.ClientBase, binding: Binding, work: Work<T>): Promise<T> {
  const bind: Statement = { text: binding.text.read, values: binding.values }
  const bound: Promise<Outcome>[] = []
  const send = sender(client, (batch) => {
    const outcome = batch.add(bind)
    outcome.catch(() => {}) // looked at below, when the work is done
    bound.push(outcome)
  })
  const { during, end } = lifetime(send)
  const [result] = await Promise.allSettled([work({ rows: rowsBy(during), savepoint: (fn) => fn() })])
  end()
  // Work that asked the database nothing must not be answered on rights that are gone either.
  if (bound.length === 0) bound.push(sender(client)(bind))
  for (const outcome of bound) binding.check?.((await outcome).rows)
  return valueFrom(result)
}

/** Writes. BEGIN, the binding and the statements of the first turn are one write; COMMIT is waited for. */
export async function runWrite<T>(
  client: pg.ClientBase,
  binding: Binding,
  work: Work<T>,
  onCommit: (tx: Tx) => void,
): Promise<T> {
  const send = sender(client)
  const { during, end } = lifetime(send)
  const tx: Tx = { rows: rowsBy(during), savepoint: savepointBy(during) }
  try {
    const [begun, bound, result] = await Promise.allSettled([
      send({ text: 'BEGIN', values: [] }),
      send({ text: binding.text.write, values: binding.values }),
      work(tx),
    ])
    end()
    valueFrom(begun)
    binding.check?.(valueFrom(bound).rows)
    const value = valueFrom(result)
    await commit(send)
    onCommit(tx)
    return value
  } catch (error) {
    if (!isLostConnection(error)) await rolledBack(send)
    throw error
  }
}

/** A connection that was lost unnoticed never says that it rolled back. */
const rollbackWithinMs = 250

/**
 * Waits until the transaction is undone: whoever is told of the failure may come again at once, and must not meet the locks of
 * its own last try.
 */
async function rolledBack(send: Send): Promise<void> {
  const rollback = send({ text: 'ROLLBACK', values: [] }).catch(() => {})
  let late: NodeJS.Timeout | undefined
  const deadline = new Promise((resolve) => {
    late = setTimeout(resolve, rollbackWithinMs)
  })
  await Promise.race([rollback, deadline])
  clearTimeout(late)
}

function valueFrom<T>(settled: PromiseSettledResult<T>): T {
  if (settled.status === 'rejected') throw settled.reason
  return settled.value
}

function rowsBy(send: Send): Tx['rows'] {
  return async function rows<Row>(statement: Statement) {
    try {
      return (await send(statement)).rows as Row[]
    } catch (error) {
      // Its own trace leads to the socket and says nothing of who asked.
      if (error instanceof Error) Error.captureStackTrace(error)
      throw error
    }
  }
}

function savepointBy(send: Send): Tx['savepoint'] {
  let depth = 0
  const mark = (verb: string, name: string) => send({ text: `${verb} ${name}`, values: [] })
  return async function savepoint(fn) {
    const name = `s${++depth}`
    mark('SAVEPOINT', name).catch(() => {}) // whatever follows it fails as well
    try {
      const value = await fn()
      await mark('RELEASE SAVEPOINT', name)
      return value
    } catch (error) {
      // Catalogued failures and broken constraints leave the connection usable; a lost connection does not.
      if (!(error instanceof Failure) && isLostConnection(error)) throw error
      await mark('ROLLBACK TO SAVEPOINT', name)
      throw error
    } finally {
      depth--
    }
  }
}

/** Connections lost while COMMIT was under way: nobody knows whether it took, so the work must not run again. */
const uncertain = new WeakSet<object>()
export const isUncertain = (error: unknown) => uncertain.has(error as object)

async function commit(send: Send): Promise<void> {
  let command: string
  try {
    command = (await send({ text: 'COMMIT', values: [] })).command
  } catch (error) {
    uncertain.add(error as object)
    throw error
  }
  // COMMIT of a transaction in which a statement failed is a ROLLBACK, and says so only here.
  if (command !== 'COMMIT') throw new Error('The transaction was rolled back by an error that was swallowed.')
}
