import sql, { empty, join } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'

/** Every SQL statement that reads the audit log; what writes it is shared/audit. They run bound to the account. */
export interface AuditRow {
  readonly entryId: string
  readonly occurredAt: string
  readonly actor: { readonly kind: 'user' | 'credential' | 'builder' | 'visitor' | 'system'; readonly id: string }
  readonly action: string
  readonly target: { readonly type: string; readonly id: string }
  readonly saasAppId: string | null
  readonly organizationId: string | null
  readonly before: Record<string, unknown> | null
  readonly after: Record<string, unknown> | null
  readonly correlationId: string
}

export interface AuditSelection {
  readonly accountId: string
  /** Entry ids from this one on, up to but not this one. */
  readonly fromId: string | undefined
  readonly toId: string | undefined
  readonly actorId: string | undefined
  readonly action: string | undefined
  readonly targetType: string | undefined
  readonly targetId: string | undefined
  readonly saasAppId: string | undefined
  readonly organizationId: string | undefined
  /** The last entry of the page before. */
  readonly afterId: string | undefined
  readonly limit: number
}

/** Newest first: entry ids are UUIDv7 of the moment that the entry tells. */
export async function findEntries(tx: Tx, selection: AuditSelection): Promise<AuditRow[]> {
  const { accountId, fromId, toId, actorId, action, targetType, targetId, saasAppId, organizationId } = selection
  const conditions = [
    fromId === undefined ? empty : sql`AND entry_id >= ${fromId}`,
    toId === undefined ? empty : sql`AND entry_id < ${toId}`,
    selection.afterId === undefined ? empty : sql`AND entry_id < ${selection.afterId}`,
    actorId === undefined ? empty : sql`AND actor_id = ${actorId}`,
    action === undefined ? empty : sql`AND action = ${action}`,
    targetType === undefined ? empty : sql`AND target_type = ${targetType}`,
    targetId === undefined ? empty : sql`AND target_id = ${targetId}`,
    saasAppId === undefined ? empty : sql`AND app_id = ${saasAppId}`,
    organizationId === undefined ? empty : sql`AND target_organization_id = ${organizationId}`,
  ]
  return tx.rows(sql`SELECT entry_id AS "entryId", occurred_at AS "occurredAt",
      json_build_object('kind', actor_kind, 'id', actor_id) AS actor, action,
      json_build_object('type', target_type, 'id', target_id) AS target, app_id AS "saasAppId",
      target_organization_id AS "organizationId", before, after, correlation_id AS "correlationId"
    FROM portico.audit_entry WHERE account_id = ${accountId} ${join(conditions, ' ')}
    ORDER BY entry_id DESC LIMIT ${selection.limit}`)
}
