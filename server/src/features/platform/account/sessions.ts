import type { BuilderCaller } from '../../../kernel/caller.ts'
import { fail } from '../../../kernel/errors.ts'
import { pageSizeDefault } from '../../../kernel/schemas.ts'
import { recordAudit } from '../../../shared/audit.ts'
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
    const [createdAt, sessionId] = query.cursor === undefined ? [] : cursors.open(identity, query.cursor)
    const pageSize = query.pageSize ?? pageSizeDefault
    const rows = await store.findSessions(tx, caller, {
      builderId: ofAccount ? undefined : caller.builderId,
      now: new Date(now).toISOString(),
      after: createdAt && sessionId ? { createdAt, sessionId } : undefined,
      limit: pageSize + 1,
    })
    const shown = rows.slice(0, pageSize)
    const last = rows.length > pageSize ? shown.at(-1) : undefined
    return {
      status: 200,
      body: {
        items: shown.map((row) => viewOf(row, caller)),
        nextCursor: last ? cursors.seal(identity, [last.createdAt, last.sessionId]) : null,
      },
    }
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
  responses: { 200: schema.Session },
  errors: ['session_not_found'],

  async handler(context, { params }) {
    const { tx, caller } = context
    const sessionId = params.sessionId === 'current' ? caller.keyId : params.sessionId
    const at = new Date(context.now).toISOString()
    const builderId = mayManage(caller) ? undefined : caller.builderId
    const row = await store.revokeSession(tx, caller, { sessionId, builderId, at })
    if (!row) throw fail('session_not_found')
    const session = viewOf(row, caller)
    await store.bumpAccount(tx, caller)
    await recordAudit(context, {
      action: 'session.revoked',
      target: { type: 'session', id: sessionId },
      before: session,
    })
    return { status: 200, body: session }
  },
})
