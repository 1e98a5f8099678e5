import type { OperationRow } from '../../shared/operations/store.ts'

/** An operation on the wire (contract 9). */
export function viewOf(row: OperationRow, appId: string) {
  const { operationId, type, status, total, processed, succeeded, failed } = row
  const address = `/v1/apps/${appId}/operations/${operationId}`
  return {
    operationId,
    type,
    status,
    progress: { total, processed, succeeded, failed },
    createdAt: row.createdAt,
    startedAt: row.startedAt,
    completedAt: row.completedAt,
    expiresAt: row.expiresAt,
    result: downloadOf(row) ? { ...(row.result as object), fileUrl: `${address}/file` } : row.result,
    errorsUrl: row.hasErrors ? `${address}/errors` : null,
    error: row.error,
  }
}

export function isOver({ completedAt }: Pick<OperationRow, 'completedAt'>): boolean {
  return completedAt !== null
}

const contentTypes = { csv: 'text/csv; charset=utf-8; header=present', ndjson: 'application/x-ndjson' } as const

/** How the file of an operation is handed out; undefined where it has none. Keys of objects are ASCII. */
export function downloadOf({ type, status, result }: Pick<OperationRow, 'type' | 'status' | 'result'>) {
  if (type !== 'records.export' || status !== 'succeeded') return undefined
  const { objectKey, format } = result as { readonly objectKey: string; readonly format: 'csv' | 'ndjson' }
  return { contentType: contentTypes[format], fileName: `${objectKey}.${format}` }
}
