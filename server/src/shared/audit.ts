import { createHash } from 'node:crypto'
import sql from 'sql-template-tag'
import type { Actor, BuilderCaller } from '../kernel/caller.ts'
import { uuidv7 } from '../kernel/ids.ts'
import type { Tx } from '../kernel/transaction.ts'
import { redactTokens, redactValue } from './redaction.ts'

/** One change of the builders' side or of tenancy, told by what it did to its target. */
export interface AuditEntry {
  /** `<target type>.<past participle>`, for instance `organization.updated`. */
  readonly action: string
  readonly target: { readonly type: string; readonly id: string }
  readonly saasAppId?: string | null
  readonly organizationId?: string | null
  /** The target as the API shows it; of one that is too large its size and its hash. What is named like a secret is blacked out, and so is a token wherever it stands. */
  readonly before?: object | null
  readonly after?: object | null
}

interface Occasion {
  readonly tx: Tx
  readonly correlationId: string
  readonly now: number
}

/** Writes an entry of the audit log, in the transaction of the change: both are there, or neither. */
export async function recordAudit(
  { tx, caller, correlationId, now }: Occasion & { readonly caller: Pick<BuilderCaller, 'accountId' | 'actor'> },
  { action, target, saasAppId = null, organizationId = null, before, after }: AuditEntry,
): Promise<void> {
  await tx.rows(sql`INSERT INTO portico.audit_entry (account_id, entry_id, occurred_at, actor_kind, actor_id, action,
      target_type, target_id, app_id, target_organization_id, before, after, correlation_id)
    VALUES (${caller.accountId}, ${uuidv7(now)}, ${new Date(now).toISOString()}, ${caller.actor.kind}, ${caller.actor.id},
      ${action}, ${target.type}, ${target.id}, ${saasAppId}, ${organizationId}, ${safe(before)}, ${safe(after)},
      ${correlationId})`)
}

/**
 * The same from inside an organisation, where the account is not known: what its users do, and visitors of its host. The
 * transaction must be bound to the organisation.
 */
export async function recordTenantAudit(
  { tx, actor, correlationId, now }: Occasion & { readonly actor: Actor },
  { action, target, before, after }: Omit<AuditEntry, 'saasAppId' | 'organizationId'>,
): Promise<void> {
  const entry = {
    entry_id: uuidv7(now),
    occurred_at: new Date(now).toISOString(),
    actor_kind: actor.kind,
    actor_id: actor.id,
    action,
    target_type: target.type,
    target_id: target.id,
    before: before && redactValue(before),
    after: after && redactValue(after),
    correlation_id: correlationId,
  }
  await tx.rows(sql`SELECT portico.audit_in_organization(${redactTokens(JSON.stringify(entry))}::jsonb)`)
}

/**
 * A page has 200 entries and an answer 32 MB. Nobody can remove an entry, so without a limit a few saves of a large model
 * would leave a log that cannot be read any more.
 */
const stateBytesMax = 64 * 1024

function safe(state: object | null | undefined): string | null {
  if (!state) return null
  const text = redactTokens(JSON.stringify(redactValue(state)))
  const bytes = Buffer.byteLength(text)
  if (bytes <= stateBytesMax) return text
  return JSON.stringify({ tooLarge: true, bytes, sha256: createHash('sha256').update(text).digest('hex') })
}
