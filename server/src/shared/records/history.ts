import type { ObjectAccess } from '../access/permissions.ts'
import type { Context } from '../context.ts'
import { pageOf } from '../cursors.ts'
import { findHistory, type HistoryRow } from './read-store.ts'
import type { RecordScope } from './scope.ts'
import { visibleRecord } from './work.ts'

/** One page of what happened to a record, newest first. A record that the caller does not see is not found. */
export async function historyPage(
  { cursors }: Pick<Context, 'cursors'>,
  scope: RecordScope,
  recordId: string,
  query: { readonly cursor?: string; readonly pageSize?: number },
) {
  const { tx, caller, access } = scope
  const identity = ['history', caller.organizationId, recordId.toLowerCase()]
  const { rows, nextCursor } = await pageOf(
    cursors,
    identity,
    query,
    async (before, limit) => {
      await visibleRecord(scope, recordId)
      return findHistory(tx, caller, recordId, before?.[0], limit)
    },
    ({ revision }) => [String(revision)],
  )
  return { items: rows.map((row) => historyItem(row, access)), nextCursor }
}

const envelopeProperties = new Set(['ownerUserId', 'dataRoleId', 'locationId', 'externalKey', 'participants'])

/** A change as the caller may see it: changes of fields that it may not read are left out. */
export function historyItem(row: HistoryRow, access: ObjectAccess) {
  const changes = Object.entries(row.changes ?? {})
    .filter(([field]) => access.readableByKey.has(field) || envelopeProperties.has(field))
    .map(([field, [before, after]]) => ({ field, before, after }))
  return {
    revision: row.revision,
    operation: row.operation,
    changedAt: row.changed_at,
    changedBy: { kind: row.actor_kind, id: row.actor_id },
    changes,
  }
}
