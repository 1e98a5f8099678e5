import { fail } from '../../../kernel/errors.ts'
import type { Tx } from '../../../kernel/transaction.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { type PlatformContext, platformOperation } from '../../../shared/platform-context.ts'
import { realm } from './proof.ts'
import * as schema from './schema.ts'
import { endOtherSessions } from './session-store.ts'
import * as store from './store.ts'

const me = { area: 'Me', credentials: ['bld'], scope: null, params: schema.NoParams, mcp: false } as const

export async function meOf({ caller }: PlatformContext, tx: Tx) {
  const [self, account] = await Promise.all([store.findSelf(tx, caller), store.findAccount(tx, caller)])
  const { builderId, email, displayName } = self
  const totpEnabled = self.totpConfirmedAt !== null
  return {
    builder: { builderId, email, displayName, totpEnabled },
    account: { accountId: account.accountId, name: account.name },
    role: caller.role,
    scopes: [...caller.scopes],
    totpEnabled,
  }
}

export const getMe = platformOperation({
  ...me,
  id: 'developerPlatformMeGet',
  method: 'GET',
  path: '/v1/platform/me',
  summary: 'Read who you are, in which account, and what you may do there.',
  description: 'Any session will do.',
  rateClass: 'read',
  transaction: 'read',
  responses: { 200: schema.Me },
  errors: [],

  handler: async (context) => ({ status: 200, body: await meOf(context, context.tx) }),
})

export const updateMe = platformOperation({
  ...me,
  id: 'developerPlatformMeUpdate',
  method: 'PATCH',
  path: '/v1/platform/me',
  summary: 'Change your name.',
  description: 'It is the same in every account of which you are a member.',
  rateClass: 'write',
  transaction: 'write',
  body: schema.UpdateMeBody,
  responses: { 200: schema.Me },
  errors: [],

  async handler(context, { body }) {
    const { tx, caller } = context
    const before = await meOf(context, tx)
    await store.updateDisplayName(tx, caller, body.displayName)
    const after = await meOf(context, tx)
    await recordAudit(context, {
      action: 'builder.updated',
      target: { type: 'builder', id: caller.builderId },
      before: before.builder,
      after: after.builder,
    })
    return { status: 200, body: after }
  },
})

export const changePassword = platformOperation({
  ...me,
  id: 'developerPlatformMeChangePassword',
  method: 'POST',
  path: '/v1/platform/me/password',
  summary: 'Choose a new password.',
  description: 'Takes the current one. Every other session of yours ends, in all of your accounts.',
  rateClass: 'write',
  transaction: 'own',
  body: schema.ChangePasswordBody,
  responses: { 200: schema.Me },
  errors: ['password_wrong', 'sign_in_throttled'],

  async handler(context, { body }) {
    const { caller, passwords, now } = context
    const self = await provePassword(context, body.currentPassword)
    const hashes = { from: self.passwordHash, to: await passwords.hash(body.newPassword) }
    return context.inTransaction('write', async (tx) => {
      if (!(await store.replacePassword(tx, caller, hashes))) throw fail('password_wrong')
      const at = new Date(now).toISOString()
      await endOtherSessions(tx, caller, at)
      await recordAudit(
        { ...context, tx },
        { action: 'builder.password_changed', target: { type: 'builder', id: caller.builderId } },
      )
      await context.mail.enqueue(
        { ...context, tx },
        {
          accountId: caller.accountId,
          to: { name: self.displayName, address: self.email },
          kind: 'password_changed',
          variables: { organizationName: null, changedAt: at },
        },
      )
      return { status: 200, body: await meOf(context, tx) }
    })
  },
})

/**
 * Whoever holds a session may not go on guessing at the password behind it either. Where there is a second factor these
 * guesses are counted by themselves: a right password clears what it was counted with, and must not clear wrong codes.
 */
export async function provePassword(context: PlatformContext, password: string): Promise<store.BuilderRow> {
  const { caller, passwords, throttle, address } = context
  const self = await context.inTransaction('read', (tx) => store.findSelf(tx, caller))
  const counted = self.totpConfirmedAt === null ? realm : `${realm}: passwords in sessions`
  const proven = await throttle.guard({ realm: counted, account: self.email, address }, async () =>
    (await passwords.verify(self.passwordHash, password)) ? self : undefined,
  )
  if (!proven) throw fail('password_wrong')
  return proven
}
