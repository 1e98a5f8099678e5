import sql from 'sql-template-tag'
import type { AnyCaller, Caller } from '../kernel/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { errorTable, Failure } from '../kernel/errors.ts'
import type { Outcome, Stage } from '../kernel/exchange.ts'
import type { Database } from './database/database.ts'
import { createOutcomeQueue } from './diagnostics-queue.ts'
import { type Log, logOutcome } from './log.ts'
import type { Metrics } from './metrics.ts'
import { redactText } from './redaction.ts'

/** What `logs/correlations/{correlationId}` tells of a request (contract 3). */
export interface RequestDiagnostics {
  readonly correlationId: string
  readonly occurredAt: string
  readonly operationId: string
  readonly method: string
  readonly route: string
  readonly status: number
  readonly code: string | null
  readonly durationMs: number
  readonly credentialKind: string
  readonly stages: readonly Stage[]
  readonly entries: readonly DiagnosticEntry[]
}

/** Names of what was wrong, never values, and nothing of an internal cause: that is in the log only. */
export interface DiagnosticEntry {
  readonly level: 'warning' | 'error'
  readonly code: string
  readonly field: string | null
  readonly message: string | null
}

export interface Diagnostics {
  /** Logs, measures and queues the outcome of a request. Never waits and never throws. */
  record(outcome: Outcome): void
  /** A request of the caller's organisation that is not yet in the database. Ask this first, then the database. */
  find(caller: Caller, correlationId: string): RequestDiagnostics | undefined
  /** Tries to write what is waiting. */
  flush(): Promise<void>
  /** Writes what is waiting, as far as the database takes it within three seconds. */
  close(): Promise<void>
}

interface QueuedRequest extends RequestDiagnostics {
  readonly organizationId: string
}

const flushEveryMs = 250
const retryAfterMsMax = 5000
const batchMax = 500
const closeWithinMs = 3000

/**
 * What is kept of requests, written in batches beside the requests themselves: a row for each in its own transaction
 * would make every read a write. A batch waits for a connection like anybody else and holds at most one.
 *
 * A database that fails costs rows, never memory: the queue is bounded and drops the oldest successes first. A batch
 * that the database refuses is dropped, since it would be refused again.
 */
export function createDiagnostics(parts: {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly metrics?: Metrics
}): Diagnostics {
  const { database, clock, log, metrics } = parts
  const queue = createOutcomeQueue<QueuedRequest>((count) => metrics?.diagnosticsDropped(count))
  const readSampler = createSampler(clock)
  const failureSampler = createSampler(clock)
  let timer: NodeJS.Timeout | undefined
  let writing: Promise<void> | undefined
  let failuresInARow = 0
  let closed = false

  function schedule(): void {
    if (closed || writing) return
    if (queue.size >= batchMax && failuresInARow === 0) void flush()
    else timer ??= setTimeout(flush, Math.min(flushEveryMs * 2 ** failuresInARow, retryAfterMsMax)).unref()
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    writing ??= writeWaiting().finally(() => {
      writing = undefined
      if (queue.size > 0) schedule()
    })
    return writing
  }

  async function writeWaiting(): Promise<void> {
    while (queue.size > 0) {
      const batch = queue.peek(batchMax)
      try {
        await insert(database, batch)
        if (failuresInARow > 0) log.info({ waiting: queue.size }, 'Diagnostics are being written again.')
        failuresInARow = 0
      } catch (error) {
        if (error instanceof Failure) {
          // The database is away. The rows stay where they are; said once, not at every attempt.
          if (failuresInARow++ === 0) log.warn({ err: error.cause ?? error }, 'Diagnostics cannot be written for now.')
          return
        }
        metrics?.diagnosticsDropped(batch.length)
        log.error({ err: error, rows: batch.length }, 'The database refused a batch of diagnostics; it is dropped.')
      }
      // Only now: whoever looks in the queue first and then in the database finds a row in one of them.
      queue.remove(batch)
    }
  }

  /**
   * Every change is kept. Reads and failures are sampled, each with a budget of their own: reads must not displace
   * failures. A refusal for a used-up budget counts as a read: it exists to make a flood cheap.
   */
  function isKept({ operation, failure }: Outcome): boolean {
    if (failure && failure.code !== 'rate_limited') return failureSampler.takes()
    return (!failure && operation.transaction === 'write') || readSampler.takes()
  }

  return {
    record(outcome) {
      metrics?.observe(outcome)
      logOutcome(log, outcome)
      // What builders do is in the audit log; what this keeps is looked up by organisations.
      if (closed || !outcome.caller?.appId || !isKept(outcome)) return
      queue.add(rowOf(outcome, outcome.caller), outcome.failure !== undefined)
      schedule()
    },
    find(caller, correlationId) {
      const row = queue.get(correlationId)
      if (!row || row.organizationId !== caller.organizationId) return undefined
      const { organizationId: _, ...diagnostics } = row
      return diagnostics
    },
    flush,
    async close() {
      closed = true
      const { promise: timeIsUp, resolve } = Promise.withResolvers<void>()
      const deadline = setTimeout(resolve, closeWithinMs)
      await Promise.race([flush().then(() => (queue.size > 0 ? flush() : undefined)), timeIsUp])
      clearTimeout(deadline)
      clearTimeout(timer)
      if (queue.size > 0) log.warn({ rows: queue.size }, 'Diagnostics were lost: the database did not take them.')
    },
  }
}

const keptEachSecond = 200
const sampledBeyond = 100

/**
 * Takes 200 a second for each process, beyond that one in a hundred: 5,000 reads a second must not become 5,000 writes a
 * second, which would cost the database more than the reads do. Nor must 5,000 failures, which cost a client even less.
 */
function createSampler(clock: Clock) {
  let second = 0
  let seen = 0
  return {
    takes(): boolean {
      const now = Math.floor(clock.now() / 1000)
      if (now !== second) {
        second = now
        seen = 0
      }
      return ++seen <= keptEachSecond || seen % sampledBeyond === 0
    },
  }
}

function rowOf(outcome: Outcome, caller: AnyCaller): QueuedRequest {
  const { correlationId, operation, status, startedAtMs, durationMs, stages, failure } = outcome
  return {
    organizationId: caller.tenantId,
    correlationId,
    occurredAt: new Date(startedAtMs).toISOString(),
    operationId: operation.id,
    method: operation.method,
    route: operation.path,
    status,
    code: failure?.code ?? null,
    durationMs: rounded(durationMs),
    credentialKind: caller.credentialKind,
    stages: stages.map((stage) => ({ name: stage.name, durationMs: rounded(stage.durationMs) })),
    entries: failure ? entriesOf(failure) : [],
  }
}

/** Six digits: what a column of type real gives back unchanged. */
function rounded(durationMs: number): number {
  return Number(durationMs.toPrecision(6))
}

const entriesMax = 50

function entriesOf(failure: Failure): DiagnosticEntry[] {
  const level = failure.status >= 500 ? 'error' : 'warning'
  const first: DiagnosticEntry = { level, code: failure.code, field: null, message: errorTable[failure.code].message }
  const details = (failure.details ?? []).slice(0, entriesMax - 1)
  return [
    first,
    ...details.map(
      ({ code, field }) => ({ level, code: safeName(code), field: safeName(field), message: null }) as const,
    ),
  ]
}

/** Field names come from the client: no tokens, no endless ones, nothing that a column of text cannot hold. */
function safeName(name: string): string {
  return redactText(name.slice(0, 200).toWellFormed().replaceAll('\0', '\uFFFD'))
}

/** A row that was written before, by a COMMIT whose answer was lost, is there already. */
async function insert(database: Database, batch: readonly QueuedRequest[]): Promise<void> {
  await database.as('portico_system', (tx) =>
    tx.rows(sql`INSERT INTO portico.request_log (organization_id, correlation_id, occurred_at, operation_id, method, route,
        status, code, duration_ms, credential_kind, stages, entries)
      SELECT "organizationId", "correlationId", "occurredAt", "operationId", method, route,
        status, code, "durationMs", "credentialKind", stages, entries
      FROM json_to_recordset(${JSON.stringify(batch)}::json) AS request ("organizationId" uuid, "correlationId" uuid,
        "occurredAt" timestamptz, "operationId" text, method text, route text, status smallint, code text,
        "durationMs" real, "credentialKind" text, stages jsonb, entries jsonb)
      ON CONFLICT DO NOTHING`),
  )
}
