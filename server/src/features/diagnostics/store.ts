import sql from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { RequestDiagnostics } from '../../shared/diagnostics.ts'

/** Partitions go a day later (migration 0003); the answer is the same on all of them. */
const keptMs = 7 * 24 * 60 * 60 * 1000

export async function findRequest(
  tx: Tx,
  caller: Caller,
  correlationId: string,
  now: number,
): Promise<RequestDiagnostics | undefined> {
  const [request] = await tx.rows<RequestDiagnostics>(sql`
    SELECT correlation_id AS "correlationId", occurred_at AS "occurredAt", operation_id AS "operationId", method, route,
      status, code, duration_ms AS "durationMs", credential_kind AS "credentialKind", stages, entries
    FROM portico.request_log
    WHERE organization_id = ${caller.organizationId} AND correlation_id = ${correlationId}
      AND occurred_at > ${new Date(now - keptMs).toISOString()}
    ORDER BY occurred_at LIMIT 1`)
  return request
}
