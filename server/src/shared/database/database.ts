import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { BuilderCaller, Caller, TenantVisitor } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import { StaleIdentity } from '../../kernel/exchange.ts'
import type { TransactionMode, Tx } from '../../kernel/transaction.ts'
import type { ConnectionSettings } from '../../ports/database/port.ts'
import { databaseFailure, isContention, isLostConnection, isOutOfTime, isStalePlan } from './failures.ts'
import { type Binding, bindingText, isUncertain, runRead, runWrite } from './transaction.ts'

/**
 * Transactions, bound to an organisation and pipelined: what is issued in one turn of the event loop leaves in one write,
 * the binding in front, and a read takes its end with it. A round trip for each statement gives half as many point reads
 * (architecture.md, decision 3).
 */
export interface Database {
  /** Runs `work` for a caller. Throws `StaleIdentity` when the caller's rights changed since it was read. */
  transact<T>(mode: TransactionMode, caller: Caller, work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Runs `work` for a member of a builder account, bound to account and person and, where they are named, to an application
   * and an organisation of it. Throws `application_not_found` or `organization_not_found` where they are not the account's.
   */
  transactForBuilder<T>(
    mode: TransactionMode,
    caller: BuilderCaller,
    work: (tx: Tx) => Promise<T>,
    named?: { readonly saasAppId?: string; readonly organizationId?: string },
  ): Promise<T>
  /** Runs `work` for somebody who has not signed in, bound to the organisation whose host was asked, or to nothing. */
  transactForVisitor<T>(
    mode: TransactionMode,
    organizationId: TenantVisitor['organizationId'] | null,
    work: (tx: Tx) => Promise<T>,
  ): Promise<T>
  /** Work of the service itself inside one organisation, under the same row-level security as its callers. */
  inOrganization<T>(organizationId: string, work: (tx: Tx) => Promise<T>): Promise<T>
  /** Work of the service itself on what belongs to no organisation: definitions, the log of requests, claiming work. */
  as<T>(role: 'portico_app' | 'portico_owner' | 'portico_system', work: (tx: Tx) => Promise<T>): Promise<T>
  /** One statement of the owner's that cannot run inside a transaction, on a connection of its own, without a time limit. */
  alone(statement: string): Promise<void>
  /** Connections now, for metrics. */
  pool(): { readonly total: number; readonly idle: number; readonly waiting: number }
  /** Begins nothing more, and ends what is still under way after a second. */
  close(): Promise<void>
}

export interface DatabaseOptions {
  readonly connection: ConnectionSettings
  readonly poolSize: number
  /** Longest that one statement may run. */
  readonly statementTimeoutMs?: number
  /** Idle connections fail too; the pool replaces them, the log should know. */
  readonly onIdleError?: (error: Error) => void
  /** Told of each write that has committed. It must not throw. */
  readonly onCommit?: (tx: Tx) => void
}

const attemptsMax = 4

/** What is under way when the database is closed may end by itself for so long; an index can take minutes. */
const closingMs = 1000

/** How values are spelt and what a transaction sees must not depend on how somebody has set up their server. */
const ownSettings = [
  'timezone=UTC',
  'datestyle=ISO',
  'extra_float_digits=1',
  'bytea_output=hex',
  'array_nulls=on',
  'transform_null_equals=off',
  'default_transaction_isolation=read\\ committed',
]

export function openDatabase(options: DatabaseOptions): Database {
  const { connection, poolSize, statementTimeoutMs = 15_000, onCommit = () => {} } = options
  const config = {
    ...connection,
    application_name: 'portico',
    pipeline: true,
    options: [
      ...ownSettings,
      `statement_timeout=${statementTimeoutMs}`,
      'lock_timeout=5000',
      'idle_in_transaction_session_timeout=60000',
      'role=portico_app',
    ]
      .map((setting) => `-c ${setting}`)
      .join(' '),
    connectionTimeoutMillis: 2000,
    keepAlive: true,
  }
  const pool = new pg.Pool({ ...config, max: poolSize })
  pool.on('error', options.onIdleError ?? (() => {}))
  // The pool listens to idle connections only. One that is cut while a transaction holds it, with no statement under
  // way, would otherwise end the process; whoever holds it learns of it from its next statement.
  pool.on('connect', (client) => void client.on('error', () => {}))
  const runs = {
    read: runRead,
    write: <T>(client: pg.ClientBase, binding: Binding, work: (tx: Tx) => Promise<T>) =>
      runWrite(client, binding, work, onCommit),
  }
  const atWork = new Set<pg.ClientBase>()
  pool.on('acquire', (client) => void atWork.add(client))
  pool.on('release', (_, client) => void atWork.delete(client))
  let closed = false

  async function attempt<T>(run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    for (let count = 1; ; count++) {
      try {
        return await withConnection(pool, run)
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
    transact: (mode, caller, work) => attempt((client) => runs[mode](client, bindCaller(caller), work)),

    transactForBuilder: (mode, caller, work, named = {}) =>
      attempt((client) => runs[mode](client, bindBuilder(caller, named), work)),

    transactForVisitor: (mode, organizationId, work) =>
      attempt((client) => runs[mode](client, { text: organizationText, values: [organizationId ?? ''] }, work)),

    inOrganization: (organizationId, work) =>
      attempt((client) => runs.write(client, { text: organizationText, values: [organizationId] }, work)),

    as: (role, work) => attempt((client) => runs.write(client, { text: roleText, values: [role] }, work)),

    async alone(statement) {
      if (closed) throw new Error('The database is closed.')
      const client = new pg.Client({ ...connection, application_name: 'portico', options: '-c role=portico_owner' })
      client.on('error', () => {}) // whoever waits for the statement learns of it
      atWork.add(client)
      try {
        await client.connect()
        await client.query(statement)
      } finally {
        atWork.delete(client)
        await client.end()
      }
    },

    pool: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),

    async close() {
      closed = true
      const ended = pool.end()
      const quiet = () => atWork.size === 0
      for (const until = Date.now() + closingMs; !quiet() && Date.now() < until; ) await pause(20)
      if (!quiet()) await endSessions(connection, [...atWork])
      await ended
    },
  }
}

/** The server would go on with a statement whose client has left, and hold its locks. */
async function endSessions(connection: ConnectionSettings, clients: readonly pg.ClientBase[]): Promise<void> {
  const sessions = clients as readonly (pg.ClientBase & {
    readonly processID: number | null
    readonly connection: { readonly stream: { destroy(): void } }
  })[]
  const client = new pg.Client({ ...connection, application_name: 'portico', connectionTimeoutMillis: 2000 })
  client.on('error', () => {})
  try {
    await client.connect()
    const ids = sessions.flatMap(({ processID }) => processID ?? [])
    await client.query('SELECT pg_terminate_backend(id) FROM unnest($1::integer[]) AS id', [ids])
  } catch {
    // A server that is away has ended them itself.
  } finally {
    for (const session of sessions) session.connection.stream.destroy()
    await client.end()
  }
}

async function withConnection<T>(pool: pg.Pool, run: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    return await run(client)
  } catch (error) {
    if (isLostConnection(error)) broken = error as Error
    throw error
  } finally {
    client.release(broken)
  }
}

/** The organisation that row-level security goes by, and the epochs that the caller must have been read at. */
const callerText = bindingText(`set_config('portico.organization_id', $1, true),
  (SELECT value FROM portico.epoch WHERE scope_id = $1::uuid) AS organization,
  (SELECT value FROM portico.epoch WHERE scope_id = $2) AS application`)

function bindCaller({ organizationId, appId, epochs }: Caller): Binding {
  return {
    text: callerText,
    values: [organizationId, appId],
    check(rows) {
      const [{ organization, application }] = rows as [{ organization: unknown; application: unknown }]
      if (String(organization) !== epochs.organization || String(application) !== epochs.application) {
        throw new StaleIdentity()
      }
    },
  }
}

const builderText = bindingText('portico.bind_builder($1, $2, $3, $4) AS bound')

function bindBuilder(
  { accountId, builderId, accountEpoch }: BuilderCaller,
  { saasAppId, organizationId }: { readonly saasAppId?: string; readonly organizationId?: string },
): Binding {
  return {
    text: builderText,
    values: [accountId, builderId, saasAppId ?? null, organizationId ?? null],
    check(rows) {
      const [{ bound }] = rows as [{ bound: { epoch: string | null; missing: string | null } }]
      const { epoch, missing } = bound
      if (epoch !== accountEpoch) throw new StaleIdentity()
      if (missing !== null) throw fail(missing === 'application' ? 'application_not_found' : 'organization_not_found')
    },
  }
}

const organizationText = bindingText(`set_config('portico.organization_id', $1, true)`)
const roleText = bindingText(`set_config('role', $1, true)`)
