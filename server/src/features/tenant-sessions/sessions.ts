import { fail } from '../../kernel/errors.ts'
import { Strict } from '../../kernel/schemas.ts'
import { allScopes } from '../../kernel/scopes.ts'
import { recordTenantAudit } from '../../shared/audit.ts'
import { SignedOut } from '../../shared/identity/answers.ts'
import type { Passwords } from '../../shared/identity/passwords.ts'
import { type TenantVisitorContext, tenantOperation, tenantVisitorOperation } from '../../shared/tenant-context.ts'
import { accountName, sessionExpiry, sessionSeconds, sessionsMax, userAgentLine } from './rules.ts'
import { Session, SignIn } from './schema.ts'
import * as store from './store.ts'

const onSession = {
  path: '/api/session',
  area: 'Tenant sessions',
  scope: null,
  mcp: false, // what a person does in a browser; a model has credentials of its own
  params: Strict({}),
} as const

export const signIn = tenantVisitorOperation({
  ...onSession,
  id: 'developerTenantSessionCreate',
  method: 'POST',
  credentials: ['none'],
  rateClass: 'visit',
  transaction: 'own',
  summary: 'Sign a user in.',
  description:
    'Opens a session of 14 days and sets its cookie. Whatever is wrong, the address, the password or an inactive user, the answer is the same; after some failures it takes longer and longer until the next attempt is looked at.',
  body: SignIn,
  responses: { 201: Session },
  responseHeaders: {
    'Set-Cookie': {
      description: 'The cookie of the session: for this host alone, and out of reach of scripts.',
      example: '__Host-portico_session=…; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=1209600',
    },
  },
  errors: ['sign_in_failed', 'sign_in_throttled', 'organization_not_found', 'cross_site_request'],

  async handler(context, { body }) {
    const { caller, address, throttle, passwords, cookie } = context
    const { organizationId } = caller
    const user = await context.inTransaction('read', (tx) => store.findByEmail(tx, organizationId, body.email))
    // What the database takes for one address must be one account here too, however it was spelt.
    const attempt = { realm: organizationId, account: accountName(user?.email ?? body.email), address }
    const proven = await throttle.guard(attempt, () => prove(passwords, user, body.password))
    if (!proven) throw fail('sign_in_failed')
    const isOutdated = passwords.isOutdated(proven.verified)
    const hash = isOutdated ? await passwords.hash(body.password) : proven.verified
    const { token, session } = await openSession(context, { ...proven, hash })
    return { status: 201, body: session, headers: { 'set-cookie': cookie.keep(token, sessionSeconds) } }
  },
})

interface Proven {
  readonly userId: string
  /** The hash that the password was held against. */
  readonly verified: string
}

/** Takes as long for somebody who does not exist as for a wrong password. */
async function prove(
  passwords: Passwords,
  user: store.Claimed | undefined,
  password: string,
): Promise<Proven | undefined> {
  const verified = user?.passwordHash ?? null
  const isRight = await passwords.verify(verified, password)
  return isRight && user?.active && verified !== null ? { userId: user.userId, verified } : undefined
}

function openSession(context: TenantVisitorContext, { userId, verified, hash }: Proven & { readonly hash: string }) {
  const { caller, mint, now, address, userAgent } = context
  const { organizationId, appId } = caller
  const { keyId, secretHash, text } = mint.token('ses')
  return context.inTransaction('write', async (tx) => {
    const isStillRight = await store.replacePasswordHash(tx, { organizationId, userId, verified, hash })
    if (!isStillRight) throw fail('sign_in_failed')
    const client = { address, userAgent: userAgentLine(userAgent) }
    const [createdAt, expiresAt] = [new Date(now).toISOString(), sessionExpiry(now)]
    // What a user may do is decided by roles, so the session carries every scope.
    const created = { organizationId, appId, userId, keyId, secretHash, scopes: allScopes, createdAt, expiresAt }
    await store.insertSession(tx, { ...created, ...client })
    await store.dropOldSessions(tx, { organizationId, userId, now: createdAt, keep: sessionsMax })
    await recordTenantAudit(
      { ...context, tx, actor: { kind: 'user', id: userId } },
      { action: 'session.created', target: { type: 'session', id: keyId }, after: { userId, expiresAt, ...client } },
    )
    return { token: text, session: await store.readSession(tx, organizationId, keyId) }
  })
}

export const getSession = tenantOperation({
  ...onSession,
  id: 'developerTenantSessionGet',
  method: 'GET',
  credentials: ['ses'],
  rateClass: 'read',
  transaction: 'read',
  summary: 'Read who is signed in.',
  description: 'The user of the session, and what decides what the user sees. 401 where nobody is signed in.',
  responses: { 200: Session },
  errors: ['organization_not_found'],

  async handler({ caller, tx }) {
    const session = await store.readSession(tx, caller.organizationId, caller.keyId)
    if (!session) throw fail('credential_invalid')
    return { status: 200, body: session }
  },
})

export const signOut = tenantOperation({
  ...onSession,
  id: 'developerTenantSessionDelete',
  method: 'DELETE',
  credentials: ['ses'],
  rateClass: 'write',
  transaction: 'write',
  summary: 'Sign out.',
  description: 'Ends the session at once, in every process, and removes its cookie. Other sessions of the user stay.',
  responses: { 200: SignedOut },
  responseHeaders: {
    'Set-Cookie': { description: 'Removes the cookie.', example: '__Host-portico_session=; Path=/; Max-Age=0' },
  },
  errors: ['organization_not_found', 'cross_site_request'],

  async handler(context, _) {
    const { caller, tx, now, cookie } = context
    const { organizationId, actor, keyId } = caller
    await store.revokeSessions(tx, { organizationId, userId: actor.id, only: keyId, at: new Date(now).toISOString() })
    await recordTenantAudit(
      { ...context, actor },
      { action: 'session.revoked', target: { type: 'session', id: keyId }, before: { userId: actor.id } },
    )
    return { status: 200, body: { signedOut: true }, headers: { 'set-cookie': cookie.drop() } }
  },
})
