import pg from 'pg'
import type { Caller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { StaleIdentity } from '../../kernel/pipeline.ts'
import type { Statement, TransactionMode, Tx } from '../../kernel/transaction.ts'
import type { ConnectionSettings } from '../../ports/database/port.ts'
import { databaseFailure, isContention, isLostConnection, isOutOfTime, isStalePlan } from './failures.ts'
import { valueTypes } from './types.ts'

/**
 * Transactions, bound to an organisation and pipelined: BEGIN, the binding and the first statement leave in one write,
 * and a read does not wait for its COMMIT. On 2 cores this gave 14,000 row-level-secured point reads/s; a round trip for
 * each statement halves that (architecture.md, decision 3).
 */
export interface Database {
  /** Runs `work` for a caller. Throws `StaleIdentity` when the caller's rights changed since it was read. */
  transact<T>(mode: TransactionMode, caller: Caller, work: (tx: Tx) => Promise<T>): Promise<T>
  /** Work of the service itself inside one organisation, under the same row-level security as its callers. */
  inOrganization<T>(organizationId: string, work: (tx: Tx) => Promise<T>): Promise<T>
  /** Work of the service itself on what belongs to no organisation: definitions, the log of requests, claiming work. */
  as<T>(role: 'portico_app' | 'portico_owner' | 'portico_system', work: (tx: Tx) => Promise<T>): Promise<T>
  /** One statement of the owner's that cannot run inside a transaction, on a connection of its own, without a time limit. */
  alone(statement: string): Promise<void>
  /** Connections now, for metrics. */
  pool(): { readonly total: number; readonly idle: number; readonly waiting: number }
  close(): Promise<void>
}

export interface DatabaseOptions {
  readonly connection: ConnectionSettings
  readonly poolSize: number
  /** Longest that one statement may run. */
  readonly statementTimeoutMs?: number
  /** Idle connections fail too; the pool replaces them, the log should know. */
  readonly onIdleError?: (error: Error) => void
}

const attemptsMax = 4

export function openDatabase(options: DatabaseOptions): Database {
  const { connection, poolSize, statementTimeoutMs = 15_000 } = options
  const config = {
    ...connection,
    types: valueTypes,
    application_name: 'portico',
    pipeline: true,
    options: `-c timezone=UTC -c statement_timeout=${statementTimeoutMs} -c lock_timeout=5000 -c idle_in_transaction_session_timeout=60000`,
    connectionTimeoutMillis: 2000,
    keepAlive: true,
  }
  const pool = new pg.Pool({ ...config, options: `${config.options} -c role=portico_app`, max: poolSize })
  pool.on('error', options.onIdleError ?? (() => {}))
  // The pool listens to idle connections only. One that is cut while a transaction holds it, with no statement under
  // way, would otherwise end the process; whoever holds it learns of it from its next statement.
  pool.on('connect', (client) => void client.on('error', () => {}))

  async function attempt<T>(run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    for (let count = 1; ; count++) {
      try {
        return await run(await pool.connect())
      } catch (error) {
        const again =
          isContention(error) ||
          isStalePlan(error) ||
          (isLostConnection(error) && !isUncertain(error) && !isOutOfTime(error))
        if (!again || count === attemptsMax) throw databaseFailure(error) ?? error
        // Contenders that lost together must not meet again together.
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 20 * count))
      }
    }
  }

  return {
    transact: (mode, caller, work) => attempt((client) => runForCaller(client, mode, caller, work)),

    inOrganization: (organizationId, work) =>
      attempt((client) => bracket(client, 'BEGIN', bindOrganization(organizationId), work, () => {})),

    as: (role, work) =>
      attempt((client) => bracket(client, 'BEGIN', { text: `SET LOCAL ROLE ${role}`, values: [] }, work, () => {})),

    async alone(statement) {
      const client = new pg.Client({ ...connection, application_name: 'portico', options: '-c role=portico_owner' })
      await client.connect()
      try {
        await client.query(statement)
      } finally {
        await client.end()
      }
    },

    pool: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),

    close: () => pool.end(),
  }
}

function runForCaller<T>(client: pg.PoolClient, mode: TransactionMode, caller: Caller, work: (tx: Tx) => Promise<T>) {
  const bind: Statement = {
    text: `SELECT set_config('portico.organization_id', $1, true),
      (SELECT value FROM portico.epoch WHERE scope_id = $1::uuid) AS organization,
      (SELECT value FROM portico.epoch WHERE scope_id = $2) AS application`,
    values: [caller.organizationId, caller.appId],
  }
  return bracket(client, mode === 'read' ? 'BEGIN READ ONLY' : 'BEGIN', bind, work, (rows) => {
    const [{ organization, application }] = rows as [{ organization: unknown; application: unknown }]
    if (String(organization) !== caller.epochs.organization || String(application) !== caller.epochs.application) {
      throw new StaleIdentity()
    }
  })
}

function bindOrganization(organizationId: string): Statement {
  return { text: `SELECT set_config('portico.organization_id', $1, true)`, values: [organizationId] }
}

/**
 * One transaction on one connection. `check` sees what the binding statement returned before anything is committed or
 * answered, whatever `work` came to.
 */
async function bracket<T>(
  client: pg.PoolClient,
  begin: 'BEGIN' | 'BEGIN READ ONLY',
  bind: Statement,
  work: (tx: Tx) => Promise<T>,
  check: (rows: unknown[]) => void,
): Promise<T> {
  corkUntilNextTick(client)
  let broken: Error | undefined
  try {
    const begun = send(client, begin)
    const bound = run(client, bind)
    const [result] = await Promise.all([settle(work(transactionOn(client))), settle(begun), settle(bound)])
    check(await bound)
    if (result.error !== undefined) throw result.error
    if (begin === 'BEGIN READ ONLY') {
      // Nothing to lose: the answer need not wait. Whoever gets the connection next queues behind this COMMIT, and under
      // load in the same write.
      corkUntilNextTick(client)
      client.query('COMMIT', ignore)
      return result.value as T
    }
    await commit(client)
    return result.value as T
  } catch (error) {
    if (isLostConnection(error)) broken = error as Error
    else client.query('ROLLBACK', ignore)
    throw error
  } finally {
    client.release(broken)
  }
}

interface Settled<T> {
  readonly value?: T
  readonly error?: unknown
}

function settle<T>(promise: Promise<T>): Promise<Settled<T>> {
  return promise.then(
    (value) => ({ value }),
    (error: unknown) => ({ error: error ?? new Error('Nothing was thrown.') }),
  )
}

/** A connection lost while COMMIT was under way: nobody knows whether it took, so the work must not run again. */
const uncertain = new WeakSet<object>()
const isUncertain = (error: unknown) => uncertain.has(error as object)

async function commit(client: pg.PoolClient): Promise<void> {
  let command: string
  try {
    command = (await send(client, 'COMMIT')).command
  } catch (error) {
    uncertain.add(error as object)
    throw error
  }
  // COMMIT of a transaction in which a statement failed is a ROLLBACK, and says so only here.
  if (command !== 'COMMIT') throw new Error('The transaction was rolled back by an error that was swallowed.')
}

function transactionOn(client: pg.PoolClient): Tx {
  let depth = 0
  return {
    rows: (statement) => run(client, statement),
    async savepoint(fn) {
      const name = `s${++depth}`
      client.query(`SAVEPOINT ${name}`, ignore)
      try {
        const value = await fn()
        await send(client, `RELEASE SAVEPOINT ${name}`)
        return value
      } catch (error) {
        // Catalogued failures and broken constraints leave the connection usable; a lost connection does not.
        if (!(error instanceof Failure) && isLostConnection(error)) throw error
        await send(client, `ROLLBACK TO SAVEPOINT ${name}`)
        throw error
      } finally {
        depth--
      }
    },
  }
}

/**
 * Sends a query, by the callback of `pg` and not by its promise: the handler that this one carries keeps the rows of a
 * request alive for the requests after it, until the garbage collector has moved them to the old generation. On pages of
 * 50 rows that was 7 of every 45 MB, 15 ms for each collection instead of 0.3, and a third of the processor.
 */
function send(client: pg.PoolClient, query: string | pg.QueryConfig): Promise<pg.QueryResult> {
  return new Promise((resolve, reject) => {
    client.query(query as pg.QueryConfig, (error, result) => (error ? reject(error) : resolve(result)))
  })
}

/** For what nobody waits for: when it fails, so does the connection's next statement. */
const ignore = () => {}

async function run<Row>(client: pg.PoolClient, statement: Statement): Promise<Row[]> {
  const { text, values } = statement
  try {
    const result = await send(client, { name: nameOf(text), text, values: values as unknown[] })
    return result.rows as Row[]
  } catch (error) {
    // Other connections hold the same stale plan under this name: the next attempts go without, then under a new one.
    if (isStalePlan(error)) names.delete(text)
    throw error
  }
}

/**
 * Prepared statements by text: planning a secured page of records costs more than running it. A text earns a name by
 * coming back, and the number of names is bounded, because filters come in endless shapes and every connection keeps
 * every plan it has made.
 */
const names = new Map<string, string>()
const namesMax = 500
/** Names are never used again, since a connection may still hold a stale plan under an old one. */
let namesMade = 0
const seen = new Map<string, number>()
const seenMax = 2000

function nameOf(text: string): string | undefined {
  const known = names.get(text)
  if (known !== undefined || names.size >= namesMax) return known
  const uses = (seen.get(text) ?? 0) + 1
  if (uses < 3) {
    if (seen.size >= seenMax) seen.clear()
    seen.set(text, uses)
    return undefined
  }
  seen.delete(text)
  const name = `p${++namesMade}`
  names.set(text, name)
  return name
}

interface Corkable {
  readonly connection?: { readonly stream?: { cork?(): void; uncork?(): void } }
}

/** Holds back what is sent in this turn of the event loop, so that it leaves in one write. */
function corkUntilNextTick(client: pg.PoolClient): void {
  const stream = (client as unknown as Corkable).connection?.stream
  if (!stream?.cork || !stream.uncork) return
  stream.cork()
  process.nextTick(() => stream.uncork?.())
}
