import { momentOf } from '../../kernel/moment.ts'
import type { Operation } from '../../kernel/operation.ts'
import { Strict } from '../../kernel/schemas.ts'
import { pageOf } from '../../shared/cursors.ts'
import { type PlatformContext, platformOperation } from '../../shared/platform-context.ts'
import { leastIdOf } from './rules.ts'
import { AuditLog, AuditQuery } from './schema.ts'
import { findEntries } from './store.ts'

const list = platformOperation({
  id: 'developerPlatformAuditList',
  method: 'GET',
  path: '/v1/platform/audit',
  area: 'Audit',
  summary: 'Read what was changed, by whom, newest first.',
  description: `Every change of the account, its applications and their organizations, with the target before and after.
Secrets are blacked out. Entries are written in the transaction of the change, and nobody can change or remove them
through the service. All conditions must hold.`,
  credentials: ['bld'],
  scope: 'audit.read',
  rateClass: 'read',
  transaction: 'read',
  mcp: false, // tells who works in an account and when
  params: Strict({}),
  query: AuditQuery,
  responses: { 200: AuditLog },
  errors: ['cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler({ tx, caller, cursors }, { query }) {
    const { from, to, ...conditions } = query
    const { actorId, action, targetType, targetId, saasAppId, organizationId } = conditions
    const identity = ['audit', caller.accountId, from, to, actorId, action, targetType, targetId].concat([
      saasAppId?.toLowerCase(),
      organizationId?.toLowerCase(),
    ])
    const wanted = {
      accountId: caller.accountId,
      fromId: from === undefined ? undefined : leastIdOf(momentOf(from, 'from')),
      toId: to === undefined ? undefined : leastIdOf(momentOf(to, 'to')),
      actorId,
      action,
      targetType,
      targetId,
      saasAppId,
      organizationId,
    }
    const { rows, nextCursor } = await pageOf(
      cursors,
      identity,
      query,
      (after, limit) => findEntries(tx, { ...wanted, afterId: after?.[0], limit }),
      ({ entryId }) => [entryId],
    )
    return { status: 200, body: { items: rows, nextCursor } }
  },
})

export const auditOperations: readonly Operation<PlatformContext>[] = [list]
