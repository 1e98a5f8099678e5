import sql, { empty } from 'sql-template-tag'
import type { ErrorBody } from '../../kernel/errors.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { Database } from '../database/database.ts'
import { operationEnded } from './ended.ts'
import { type FileOwner, removeChunks } from './files.ts'
import type { Progress } from './kind.ts'

/** What the worker of an operation does with its row. Everything but claiming holds only under the number of the claim. */
export interface Claimed extends FileOwner {
  readonly appId: string
  readonly type: string
  readonly keyId: string
  readonly scope: string
  readonly correlationId: string
  readonly input: unknown
  readonly checkpoint: unknown
  readonly status: 'running' | 'cancelling'
  readonly fence: number
  /** This claim counted. */
  readonly attempts: number
  readonly total: number | null
  readonly processed: number
  readonly succeeded: number
  readonly failed: number
  readonly createdAt: string
}

/** Somebody else has the operation by now, or it was ended: nothing of this transaction may stay. */
export class Superseded extends Error {
  override readonly name = 'Superseded'
}

const iso = (time: number) => new Date(time).toISOString()
const claimLock = 7_032_026_1121

/**
 * Takes operations that are due, at most `perOrganization` of one organisation at a time whatever the process, and first those
 * of organisations that have the fewest at work: who began a hundred waits for who began one. One process claims at a time, so
 * that the count is right.
 */
export function claimOperations(
  database: Database,
  claim: {
    readonly types: readonly string[]
    readonly now: number
    readonly leaseMs: number
    readonly count: number
    readonly perOrganization: number
  },
): Promise<Claimed[]> {
  const { types, now, leaseMs, count, perOrganization } = claim
  return database.as('portico_system', async (tx) => {
    // Two statements in one write: the second sees what the last holder of the lock committed.
    const [, claimed] = await Promise.all([
      tx.rows(sql`SELECT pg_advisory_xact_lock(${claimLock})`),
      tx.rows<Claimed>(sql`
        WITH working AS (
          SELECT organization_id, count(*) AS working FROM portico.operation
          WHERE completed_at IS NULL AND status IN ('running', 'cancelling') AND due_at > ${iso(now)} GROUP BY 1),
        waiting AS (
          SELECT o.organization_id, o.operation_id, o.due_at, coalesce(w.working, 0)
            + row_number() OVER (PARTITION BY o.organization_id ORDER BY o.operation_id) AS turn
          FROM portico.operation o LEFT JOIN working w USING (organization_id)
          WHERE o.completed_at IS NULL AND o.status <> 'receiving' AND o.due_at <= ${iso(now)}
            AND o.type = ANY (${types as string[]})),
        picked AS MATERIALIZED (
          SELECT o.organization_id, o.operation_id FROM portico.operation o
          JOIN waiting w USING (organization_id, operation_id)
          WHERE w.turn <= ${perOrganization} AND o.completed_at IS NULL AND o.due_at <= ${iso(now)}
          -- Whoever gave up its place was due just now, and comes behind those that waited for it.
          ORDER BY w.turn, w.due_at, o.operation_id LIMIT ${count} FOR UPDATE OF o SKIP LOCKED)
        UPDATE portico.operation o SET fence = fence + 1, attempts = attempts + 1, due_at = ${iso(now + leaseMs)},
          status = CASE status WHEN 'queued' THEN 'running' ELSE status END,
          started_at = coalesce(started_at, ${iso(now)}::timestamptz(3))
        FROM picked p WHERE o.organization_id = p.organization_id AND o.operation_id = p.operation_id
        RETURNING o.organization_id AS "organizationId", o.operation_id AS "operationId", app_id AS "appId", type,
          key_id AS "keyId", scope, correlation_id AS "correlationId", input, checkpoint, status, fence, attempts,
          total, processed, succeeded, failed, created_at AS "createdAt"`),
    ])
    return claimed
  })
}

/** Does an operation wait of an organisation that has none at work? */
export async function anyKeptWaiting(database: Database, types: readonly string[], now: number): Promise<boolean> {
  const [row] = await database.as('portico_system', (tx) =>
    tx.rows<{ waits: boolean }>(sql`
      SELECT EXISTS (SELECT FROM portico.operation o
        WHERE o.completed_at IS NULL AND o.status <> 'receiving' AND o.due_at <= ${iso(now)}
          AND o.type = ANY (${types as string[]})
          AND NOT EXISTS (SELECT FROM portico.operation w
            WHERE w.organization_id = o.organization_id AND w.completed_at IS NULL
              AND w.status IN ('running', 'cancelling') AND w.due_at > ${iso(now)})) AS waits`),
  )
  return row!.waits
}

/** Keeps the operation for longer. What became of it; undefined where somebody else has it. */
export async function extendLease(
  database: Database,
  { organizationId, operationId, fence }: Claimed,
  dueAt: number,
): Promise<'running' | 'cancelling' | undefined> {
  const [row] = await database.as('portico_system', (tx) =>
    tx.rows<{ status: 'running' | 'cancelling' }>(sql`
      UPDATE portico.operation SET due_at = ${iso(dueAt)}
      WHERE organization_id = ${organizationId} AND operation_id = ${operationId} AND fence = ${fence}
        AND completed_at IS NULL
      RETURNING status`),
  )
  return row?.status
}

/** The end of a step, in its transaction. Throws `Superseded` where the claim is not the last one. */
export async function saveStep(
  tx: Tx,
  { organizationId, operationId, fence }: Claimed,
  step: {
    readonly checkpoint: unknown
    readonly progress: Progress
    readonly storedBytes: number
    readonly dueAt: number
  },
): Promise<'running' | 'cancelling'> {
  const { total, processed, succeeded, failed } = step.progress
  const [row] = await tx.rows<{ status: 'running' | 'cancelling' }>(sql`
    UPDATE portico.operation SET checkpoint = ${JSON.stringify(step.checkpoint)}, total = ${total},
      processed = ${processed}, succeeded = ${succeeded}, failed = ${failed}, attempts = 0,
      stored_bytes = stored_bytes + ${step.storedBytes}, due_at = ${iso(step.dueAt)}
    WHERE organization_id = ${organizationId} AND operation_id = ${operationId} AND fence = ${fence}
      AND completed_at IS NULL
    RETURNING status`)
  if (!row) throw new Superseded()
  return row.status
}

/**
 * Lets go of the operation: another claim may take it from `dueAt` on. `uncounted` where nothing stood against it: a process
 * that is stopped is no failed attempt.
 */
export async function release(
  database: Database,
  { organizationId, operationId, fence }: Claimed,
  dueAt: number,
  uncounted = false,
): Promise<void> {
  await database.as('portico_system', (tx) =>
    tx.rows(sql`
      UPDATE portico.operation SET due_at = ${iso(dueAt)}, attempts = greatest(attempts - ${uncounted ? 1 : 0}, 0)
      WHERE organization_id = ${organizationId} AND operation_id = ${operationId} AND fence = ${fence}
        AND completed_at IS NULL`),
  )
}

export interface End {
  readonly status: 'succeeded' | 'partially_succeeded' | 'failed' | 'cancelled'
  readonly result: unknown
  readonly error: ErrorBody | null
  readonly now: number
}

const dayMs = 24 * 60 * 60 * 1000
/** How long an operation and what it wrote are kept after its end, and how long what was uploaded for it. */
export const keptMs = 7 * dayMs
export const uploadKeptMs = dayMs

/** Ends an operation, and tells of it in the same transaction. Throws `Superseded` where somebody else has it. */
export async function endOperation(
  tx: Tx,
  { organizationId, operationId, fence }: Pick<Claimed, 'organizationId' | 'operationId'> & { readonly fence?: number },
  { status, result, error, now }: End,
): Promise<void> {
  const [row] = await tx.rows<Parameters<typeof operationEnded>[1]>(sql`
    UPDATE portico.operation SET status = ${status}, result = ${result == null ? null : JSON.stringify(result)},
      error = ${error === null ? null : JSON.stringify(error)}, completed_at = ${iso(now)},
      expires_at = ${iso(now + keptMs)}, due_at = ${iso(now)}
    WHERE organization_id = ${organizationId} AND operation_id = ${operationId} AND completed_at IS NULL
      ${fence === undefined ? empty : sql`AND fence = ${fence}`}
    RETURNING organization_id AS "organizationId", operation_id AS "operationId", app_id AS "appId", type, status,
      actor_kind AS "actorKind", actor_id AS "actorId", total, processed, succeeded, failed,
      created_at AS "createdAt", completed_at AS "completedAt"`)
  if (!row) throw new Superseded()
  await operationEnded(tx, row)
}

/** As many as leave in a second; a file of 2 GiB has 2,000. */
const removedAtOnce = 500
/** A request may take a minute to arrive. */
const receivingMs = 60 * 60 * 1000

/** Removes operations that have expired with their files, uploads a day after the end, and uploads that never arrived. */
export async function removeExpired(database: Database, now: number): Promise<number> {
  const done = await database.as('portico_system', (tx) =>
    tx.rows<FileOwner & { readonly whole: boolean }>(sql`
      SELECT organization_id AS "organizationId", operation_id AS "operationId",
        coalesce(expires_at, created_at) <= ${iso(now)} AS whole
      FROM portico.operation o
      WHERE expires_at <= ${iso(now)} OR (status = 'receiving' AND created_at <= ${iso(now - receivingMs)})
        OR (completed_at <= ${iso(now - uploadKeptMs)} AND EXISTS (SELECT FROM portico.operation_chunk c
          WHERE c.organization_id = o.organization_id AND c.operation_id = o.operation_id AND c.file = 'upload'))
      LIMIT 1000`),
  )
  for (const { organizationId, operationId, whole } of done) {
    const owner = { organizationId, operationId }
    const remove = () =>
      database.as('portico_system', (tx) => removeChunks(tx, owner, removedAtOnce, whole ? undefined : 'upload'))
    while ((await remove()) === removedAtOnce);
    if (!whole) continue
    await database.as('portico_system', (tx) =>
      tx.rows(sql`DELETE FROM portico.operation
        WHERE organization_id = ${organizationId} AND operation_id = ${operationId}`),
    )
  }
  return done.length
}
