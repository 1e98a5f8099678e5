import sql, { empty, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { ErrorBody } from '../../kernel/errors.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { OperationStatus } from './schema.ts'

/** An operation as those who may see it see it. */
export interface OperationRow {
  readonly operationId: string
  readonly type: string
  readonly status: OperationStatus
  readonly scope: string
  readonly total: number | null
  readonly processed: number
  readonly succeeded: number
  readonly failed: number
  readonly createdAt: string
  readonly startedAt: string | null
  readonly completedAt: string | null
  readonly expiresAt: string | null
  readonly result: unknown
  readonly error: ErrorBody | null
  readonly hasErrors: boolean
}

export interface NewOperation {
  readonly operationId: string
  readonly type: string
  /** What the credential needs to begin it: to do it, and to see what came of it. */
  readonly scope: string
  readonly input: unknown
  readonly correlationId: string
  readonly now: number
}

const iso = (time: number) => new Date(time).toISOString()

export async function insertOperation(
  tx: Tx,
  { organizationId, appId, keyId, actor }: Caller,
  { operationId, type, scope, input, correlationId, now }: NewOperation,
  status: 'receiving' | 'queued',
): Promise<void> {
  await tx.rows(sql`
    INSERT INTO portico.operation (organization_id, operation_id, app_id, type, key_id, actor_kind, actor_id, scope,
      correlation_id, input, status, due_at, created_at)
    VALUES (${organizationId}, ${operationId}, ${appId}, ${type}, ${keyId}, ${actor.kind}, ${actor.id}, ${scope},
      ${correlationId}, ${JSON.stringify(input)}, ${status}, ${iso(now)}, ${iso(now)})`)
}

/** What the operations of an organisation come to that are still to be done, and that are kept. */
export async function loadOf(
  tx: Tx,
  organizationId: string,
): Promise<{ readonly active: number; readonly storedBytes: number }> {
  const [row] = await tx.rows<{ active: number; storedBytes: number }>(sql`
    SELECT count(*) FILTER (WHERE completed_at IS NULL) AS active,
      coalesce(sum(stored_bytes), 0)::bigint AS "storedBytes"
    FROM portico.operation WHERE organization_id = ${organizationId}`)
  return row!
}

/** The upload is complete. False where it was removed meanwhile. */
export async function queueReceived(
  tx: Tx,
  { organizationId }: Caller,
  operationId: string,
  { input, storedBytes, now }: { readonly input: unknown; readonly storedBytes: number; readonly now: number },
): Promise<boolean> {
  const rows = await tx.rows(sql`
    UPDATE portico.operation SET status = 'queued', input = ${JSON.stringify(input)}, stored_bytes = ${storedBytes},
      due_at = ${iso(now)}
    WHERE organization_id = ${organizationId} AND operation_id = ${operationId} AND status = 'receiving'
    RETURNING 1`)
  return rows.length > 0
}

/** Of an upload that nobody needs. */
export async function removeReceived(tx: Tx, organizationId: string, operationId: string): Promise<void> {
  await tx.rows(sql`DELETE FROM portico.operation
    WHERE organization_id = ${organizationId} AND operation_id = ${operationId} AND status = 'receiving'`)
}

/** Whoever began it sees it, by the user or else the credential; and who sees everything in the organisation. */
function seenBy({ organizationId, appId, unrestricted, actor }: Caller, now: number): Sql {
  const own = unrestricted ? empty : sql` AND actor_kind = ${actor.kind} AND actor_id = ${actor.id}`
  return sql`organization_id = ${organizationId} AND app_id = ${appId} AND status <> 'receiving'
    AND (expires_at IS NULL OR expires_at > ${iso(now)})${own}`
}

const columns = sql`operation_id AS "operationId", type, status, scope, total, processed, succeeded, failed,
  created_at AS "createdAt", started_at AS "startedAt", completed_at AS "completedAt", expires_at AS "expiresAt",
  result, error, EXISTS (SELECT FROM portico.operation_chunk c WHERE c.organization_id = o.organization_id
    AND c.operation_id = o.operation_id AND c.file = 'errors') AS "hasErrors"`

export async function findOperation(
  tx: Tx,
  caller: Caller,
  operationId: string,
  now: number,
): Promise<OperationRow | undefined> {
  const [row] = await tx.rows<OperationRow>(sql`
    SELECT ${columns} FROM portico.operation o WHERE ${seenBy(caller, now)} AND operation_id = ${operationId}`)
  return row
}

export interface OperationFilter {
  readonly types: readonly string[] | undefined
  readonly statuses: readonly string[] | undefined
  /** The id before which to begin: ids grow with time. */
  readonly before: string | undefined
  readonly limit: number
}

/** Newest first. */
export function findOperations(
  tx: Tx,
  caller: Caller,
  { types, statuses, before, limit }: OperationFilter,
  now: number,
): Promise<OperationRow[]> {
  return tx.rows<OperationRow>(sql`
    SELECT ${columns} FROM portico.operation o WHERE ${seenBy(caller, now)}
      ${types === undefined ? empty : sql`AND type = ANY (${types as string[]})`}
      ${statuses === undefined ? empty : sql`AND status = ANY (${statuses as string[]})`}
      ${before === undefined ? empty : sql`AND operation_id < ${before}`}
    ORDER BY operation_id DESC LIMIT ${limit}`)
}

/** Asks the worker of an operation to stop after the step that it is at. One that nobody has begun can end here. */
export async function requestCancellation(
  tx: Tx,
  caller: Caller,
  operationId: string,
  now: number,
): Promise<{ readonly wasQueued: boolean } | undefined> {
  const [row] = await tx.rows<{ wasQueued: boolean }>(sql`
    UPDATE portico.operation SET status = 'cancelling'
    WHERE ${seenBy(caller, now)} AND operation_id = ${operationId} AND status IN ('queued', 'running')
    RETURNING started_at IS NULL AS "wasQueued"`)
  return row
}
