import pg from 'pg'
import { fail } from '../../kernel/errors.ts'
import type { Statement } from '../../kernel/transaction.ts'
import { isStalePlan } from './failures.ts'
import { forgetName, nameOf } from './statement-names.ts'
import { valueTypes } from './types.ts'

/**
 * Statements that reach PostgreSQL in one write and end in one Sync, behind the query interface of `pg`.
 *
 * `pg` ends each statement with a Sync of its own, at which the server sends what it has and looks for more, and has the
 * result described each time. One Sync for all, and one description for each prepared statement and connection, took a
 * read of one record from 208 to 132 µs of processor time here, and from 128 to 91 µs in PostgreSQL.
 *
 * After an error PostgreSQL skips what comes before the Sync; without a BEGIN, what comes before it is one transaction
 * (PostgreSQL documentation, "Message Flow", Pipelining).
 */
export interface Outcome {
  readonly rows: unknown[]
  /** The first word of the command tag, for instance `COMMIT` or `ROLLBACK`. */
  readonly command: string
}

/** The part of the connection of `pg` that is used here. */
interface Connection {
  readonly stream: { cork(): void; uncork(): void }
  /** Texts by name: what the server has prepared, and what it has been sent. */
  readonly parsedStatements: Record<string, string>
  readonly submittedNamedStatements: Record<string, string>
  parse(statement: { name: string; text: string }): void
  bind(portal: { statement: string; values: readonly unknown[] }): void
  describe(portal: { type: 'P'; name: '' }): void
  execute(portal: { portal: ''; rows: 0 }): void
  sync(): void
}

/** How rows of one statement become objects. */
interface Shape {
  readonly names: readonly string[]
  readonly parsers: readonly ((text: string) => unknown)[]
  /** Copied for each row: objects of one shape are cheap to make and to read. */
  readonly template: Readonly<Record<string, unknown>>
}

const noRows: Shape = { names: [], parsers: [], template: {} }

/** By the name of the prepared statement, which fixes its result (a plan that would change it is refused as stale). */
const shapesOf = new WeakMap<Connection, Map<string, Shape>>()

/**
 * The most that one statement may bring, in characters: 200 records can hold 100 kB each in several fields, and what is
 * read here is in memory three times before it leaves.
 */
const charactersMax = 32 * 1024 * 1024

interface Pending {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
  shape: Shape | undefined
  rows: unknown[]
  characters: number
  resolve(outcome: Outcome): void
  reject(error: unknown): void
}

const { prepareValue } = (pg as unknown as { utils: { prepareValue(value: unknown): string | Buffer | null } }).utils
const Query = pg.Query as unknown as new (text: string) => object

export class Batch extends Query {
  /** `pg` keeps its books of prepared statements by these two: they are those of the statement that is being answered. */
  name = ''
  text = ''
  readonly #pending: Pending[] = []
  #at = 0
  #connection: Connection | undefined

  constructor() {
    super('')
  }

  add({ text, values }: Statement): Promise<Outcome> {
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>()
    const name = nameOf(text) ?? ''
    this.#pending.push({
      name,
      text,
      values: values.map(prepareValue),
      shape: undefined,
      rows: [],
      characters: 0,
      resolve,
      reject,
    })
    return promise
  }

  submit(connection: Connection): null {
    this.#connection = connection
    const shapes = shapesOf.get(connection) ?? new Map<string, Shape>()
    shapesOf.set(connection, shapes)
    connection.stream.cork()
    for (const statement of this.#pending) {
      const { name, text, values } = statement
      if (name === '' || (connection.parsedStatements[name] ?? connection.submittedNamedStatements[name]) !== text) {
        connection.parse({ name, text })
        if (name !== '') connection.submittedNamedStatements[name] = text
      }
      connection.bind({ statement: name, values })
      statement.shape = shapes.get(name)
      if (!statement.shape) connection.describe({ type: 'P', name: '' })
      connection.execute({ portal: '', rows: 0 })
    }
    connection.sync()
    connection.stream.uncork()
    this.#await(0)
    return null
  }

  #await(at: number): void {
    this.#at = at
    this.name = this.#pending[at]?.name ?? ''
    this.text = this.#pending[at]?.text ?? ''
  }

  handleRowDescription({ fields }: { fields: readonly { name: string; dataTypeID: number }[] }): void {
    this.#pending[this.#at]!.shape = {
      names: fields.map((field) => field.name),
      parsers: fields.map((field) => valueTypes.getTypeParser(field.dataTypeID)),
      template: { ...Object.fromEntries(fields.map((field) => [field.name, null])) },
    }
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    const statement = this.#pending[this.#at]!
    for (const text of fields) if (text !== null) statement.characters += text.length
    if (statement.characters <= charactersMax) statement.rows.push(rowOf(statement.shape!, fields))
    else statement.rows = []
  }

  handleCommandComplete({ text }: { text: string }): void {
    const { name, shape = noRows, rows, characters, resolve, reject } = this.#pending[this.#at]!
    if (name !== '') shapesOf.get(this.#connection!)!.set(name, shape)
    this.#await(this.#at + 1)
    if (characters > charactersMax) {
      reject(fail('result_too_large'))
      return
    }
    const end = text.indexOf(' ')
    resolve({ rows, command: end < 0 ? text : text.slice(0, end) })
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete({ text: '' })
  }

  /** Of one of the statements, or of the connection: those behind it share its fate. */
  handleError(error: unknown): void {
    const failed = this.#pending.slice(this.#at)
    if (isStalePlan(error)) forgetName(this.text)
    this.#await(this.#pending.length)
    for (const { name, reject } of failed) {
      // The server has skipped what prepares them, if it was sent.
      if (this.#connection) delete this.#connection.submittedNamedStatements[name]
      reject(error)
    }
  }

  handleReadyForQuery(): void {}
}

function rowOf({ names, parsers, template }: Shape, fields: readonly (string | null)[]): Record<string, unknown> {
  const row = { ...template }
  for (let column = 0; column < fields.length; column++) {
    const text = fields[column]!
    if (text !== null) row[names[column]!] = parsers[column]!(text)
  }
  return row
}
