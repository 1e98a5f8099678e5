import type { BuilderCaller } from '../../../kernel/caller.ts'
import { fail } from '../../../kernel/errors.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { pageOf } from '../../../shared/cursors.ts'
import { SignedOut } from '../../../shared/identity/answers.ts'
import { platformOperation } from '../../../shared/platform-context.ts'
import * as schema from './schema.ts'
import * as store from './session-store.ts'

const sessions = { area: 'Sessions', credentials: ['bld'], scope: null, mcp: false } as const

const mayManage = (caller: BuilderCaller) => caller.scopes.has('account.manage')

const viewOf = (row: store.SessionRow, { keyId }: BuilderCaller): schema.Session => ({
  ...row,
  current: row.sessionId === keyId,
})

export const listSessions = platformOperation({
  ...sessions,
  id: 'developerPlatformSessionsList',
  method: 'GET',
  path: '/v1/platform/sessions',
  summary: 'List the sessions that hold, newest first.',
  description: "Your own in this account. Owners and admins may ask for the whole team's with `scope=account`.",
  rateClass: 'read',
  transaction: 'read',
  params: schema.NoParams,
  query: schema.SessionQuery,
  responses: { 200: schema.SessionPage },
  errors: ['permission_denied', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler({ tx, caller, cursors, now }, { query }) {
    const ofAccount = query.scope === 'account'
    if (ofAccount && !mayManage(caller)) {
      throw fail('permission_denied', { message: 'Only owners and admins see the sessions of others.' })
    }
    const identity = ['sessions', caller.accountId, ofAccount ? null : caller.builderId]
    const wanted = { builderId: ofAccount ? undefined : caller.builderId, now: new Date(now).toISOString() }
    const { rows, nextCursor } = await pageOf(
      cursors,
      identity,
      query,
      (after, limit) => store.findSessions(tx, caller, { ...wanted, after, limit }),
      ({ createdAt, sessionId }) => [createdAt, sessionId],
    )
    return { status: 200, body: { items: rows.map((row) => viewOf(row, caller)), nextCursor } }
  },
})

export const revokeSession = platformOperation({
  ...sessions,
  id: 'developerPlatformSessionsRevoke',
  method: 'DELETE',
  path: '/v1/platform/sessions/{sessionId}',
  summary: 'End a session: sign out.',
  description: `\`current\` is the session of the request. Owners and admins may end any session in the
account. Its token is refused from the next request on, by every process.`,
  rateClass: 'write',
  transaction: 'write',
  params: schema.SessionParams,
  responses: { 200: SignedOut },
  errors: ['session_not_found'],

  async handler(context, { params }) {
    const { tx, caller } = context
    const sessionId = params.sessionId === 'current' ? caller.keyId : params.sessionId
    const at = new Date(context.now).toISOString()
    const builderId = mayManage(caller) ? undefined : caller.builderId
    const row = await store.revokeSession(tx, caller, { sessionId, builderId, at })
    if (!row) throw fail('session_not_found')
    await store.bumpAccount(tx, caller)
    await recordAudit(context, {
      action: 'session.revoked',
      target: { type: 'session', id: sessionId },
      before: viewOf(row, caller),
    })
    return { status: 200, body: { signedOut: true } }
  },
})
