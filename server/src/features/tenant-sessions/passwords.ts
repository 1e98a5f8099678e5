import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Actor, AnyCaller } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import type { BaseContext } from '../../kernel/operation.ts'
import { Strict } from '../../kernel/schemas.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { recordTenantAudit } from '../../shared/audit.ts'
import { PasswordChanged, PasswordResetRequested } from '../../shared/identity/answers.ts'
import { withinMailLimits } from '../../shared/mail/queue.ts'
import {
  type TenantContext,
  type TenantVisitorContext,
  tenantOperation,
  tenantVisitorOperation,
} from '../../shared/tenant-context.ts'
import { accountName, resetAnswerAfterMs, resetLink, resetsMax, resetTimes } from './rules.ts'
import { PasswordChange, PasswordReset, PasswordResetRequest } from './schema.ts'
import * as store from './store.ts'

const onPasswords = {
  method: 'POST',
  area: 'Tenant sessions',
  scope: null,
  transaction: 'own',
  mcp: false, // a password must not pass through a model's context
  params: Strict({}),
} as const

export const changePassword = tenantOperation({
  ...onPasswords,
  id: 'developerTenantSessionChangePassword',
  path: '/api/session/password',
  credentials: ['ses'],
  rateClass: 'write',
  summary: 'Change your own password.',
  description: 'Ends all other sessions of the user at once and tells the user by mail. This session stays.',
  body: PasswordChange,
  responses: { 200: PasswordChanged },
  errors: ['password_wrong', 'sign_in_throttled', 'organization_not_found', 'cross_site_request'],

  async handler(context, { body }) {
    const { caller, address, throttle, passwords } = context
    const { organizationId } = caller
    const user = caller.user!
    const attempt = { realm: organizationId, account: accountName(user.email), address }
    const verified = await throttle.guard(attempt, () => verifyOwn(context, body.currentPassword))
    if (verified === undefined) throw fail('password_wrong', { field: 'currentPassword' })
    const hash = await passwords.hash(body.newPassword)
    await context.inTransaction('write', async (tx) => {
      const { userId } = user
      const isStillRight = await store.replacePasswordHash(tx, { organizationId, userId, verified, hash })
      if (!isStillRight) throw fail('password_wrong', { field: 'currentPassword' })
      await store.deleteResets(tx, { organizationId, userId })
      await followPassword(context, tx, { user, action: 'user.password_changed', keep: caller.keyId })
    })
    return { status: 200, body: { changed: true } }
  },
})

/** The hash that the password was held against, or undefined where it is not the user's. */
async function verifyOwn({ caller, inTransaction, passwords }: TenantContext, password: string) {
  const { organizationId, actor } = caller
  const kept = await inTransaction('read', (tx) => store.findPasswordHash(tx, { organizationId, userId: actor.id }))
  return (await passwords.verify(kept, password)) && kept !== null ? kept : undefined
}

export const requestReset = tenantVisitorOperation({
  ...onPasswords,
  id: 'developerTenantPasswordResetsCreate',
  path: '/api/password-resets',
  credentials: ['none'],
  rateClass: 'visit',
  summary: 'Ask for a new password.',
  description:
    'Sends a link that works once and for an hour to the user with this address, if there is one; the answer is the same either way. There is at most one a minute, and none while three of them can be used; all of them end when one is used.',
  body: PasswordResetRequest,
  responses: { 202: PasswordResetRequested },
  errors: ['organization_not_found', 'cross_site_request'],

  async handler(context, { body }) {
    await Promise.all([withinMailLimits(sendReset(context, body.email)), delay(resetAnswerAfterMs)])
    return { status: 202, body: { accepted: true } }
  },
})

async function sendReset(context: TenantVisitorContext, email: string): Promise<void> {
  const { caller, mint, mail, links, now } = context
  const { organizationId } = caller
  const token = randomBytes(32).toString('base64url')
  await context.inTransaction('write', async (tx) => {
    const [user, verifiedDomain] = await Promise.all([
      store.findByEmail(tx, organizationId, email),
      store.findVerifiedDomain(tx, organizationId),
    ])
    if (!user?.active) return
    const { userId, displayName } = user
    const times = resetTimes(now)
    const reset = { organizationId, userId, tokenHash: mint.hashOf(token), most: resetsMax, ...times }
    const isMade = await store.insertReset(tx, reset)
    if (!isMade) return
    // To where the organisation is at home, not to the host that was asked: anybody can write anything there.
    const origin = links.tenantOrigin({ slug: caller.organizationSlug, verifiedDomain })
    const { expiresAt } = times
    await mail.enqueue(
      { ...context, tx },
      {
        organizationId,
        to: { name: displayName, address: user.email },
        kind: 'tenant_password_reset',
        variables: { organizationName: caller.organizationName, link: resetLink(origin, token), expiresAt },
      },
    )
    const requested = { action: 'user.password_reset_requested', target: { type: 'user', id: userId } }
    await recordTenantAudit({ ...context, tx, actor: caller.actor }, requested)
  })
}

export const completeReset = tenantVisitorOperation({
  ...onPasswords,
  id: 'developerTenantPasswordResetsComplete',
  path: '/api/password-resets:complete',
  credentials: ['none'],
  rateClass: 'visit',
  summary: 'Choose a new password.',
  description: 'Takes the token of the mail, once. Ends all sessions of the user at once, and signs nobody in.',
  body: PasswordReset,
  responses: { 200: PasswordChanged },
  errors: ['reset_token_invalid', 'organization_not_found', 'cross_site_request'],

  async handler(context, { body }) {
    const { caller, mint, passwords, now } = context
    const { organizationId } = caller
    const reset = { organizationId, tokenHash: mint.hashOf(body.token), now: new Date(now).toISOString() }
    // Asked first, because hashing a password for every invented token would be an attack.
    const exists = await context.inTransaction('read', (tx) => store.existsReset(tx, reset))
    if (!exists) throw fail('reset_token_invalid', { field: 'token' })
    const hash = await passwords.hash(body.newPassword)
    await context.inTransaction('write', async (tx) => {
      const user = await store.takeResets(tx, reset)
      if (!user) throw fail('reset_token_invalid', { field: 'token' })
      await store.setPasswordHash(tx, { organizationId, userId: user.userId, hash })
      await followPassword(context, tx, { user, action: 'user.password_reset', keep: null })
    })
    return { status: 200, body: { changed: true } }
  },
})

/** What every new password brings with it: sessions end, the user hears of it, and it is on record. */
async function followPassword(
  context: Pick<TenantContext, 'mail'> &
    BaseContext<AnyCaller & { readonly organizationId: string; readonly organizationName: string }>,
  tx: Tx,
  change: {
    readonly user: { readonly userId: string; readonly email: string; readonly displayName: string }
    readonly action: string
    /** The session that stays, if any. */
    readonly keep: string | null
  },
): Promise<void> {
  const { caller, mail, now } = context
  const { organizationId, organizationName } = caller
  const { userId, email, displayName } = change.user
  const changedAt = new Date(now).toISOString()
  await store.revokeSessions(tx, { organizationId, userId, except: change.keep, at: changedAt })
  await mail.enqueue(
    { ...context, tx },
    {
      organizationId,
      to: { name: displayName, address: email },
      kind: 'password_changed',
      variables: { organizationName, changedAt },
    },
  )
  // Whoever holds the token of the mail is the user, as far as anybody can tell.
  const actor: Actor = { kind: 'user', id: userId }
  await recordTenantAudit({ ...context, tx, actor }, { action: change.action, target: { type: 'user', id: userId } })
}
