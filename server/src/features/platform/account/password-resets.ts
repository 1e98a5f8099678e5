import { setTimeout as wait } from 'node:timers/promises'
import { fail } from '../../../kernel/errors.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { PasswordChanged, PasswordResetRequested } from '../../../shared/identity/answers.ts'
import { withinMailLimits } from '../../../shared/mail/queue.ts'
import { type VisitorContext, visitorOperation } from '../../../shared/platform-context.ts'
import { newLinkSecret, passwordResetMs } from './rules.ts'
import * as schema from './schema.ts'
import { callerOf } from './signed-in.ts'
import * as store from './visitor-store.ts'

const resets = {
  method: 'POST',
  area: 'Sessions',
  credentials: ['none'],
  scope: null,
  rateClass: 'visit',
  transaction: 'own',
  // A one-time token must not pass through a model's context.
  mcp: false,
} as const

const path = '/v1/platform/password-resets'

/** Writing a mail takes a few milliseconds. The answer takes this long either way, so that the time tells nobody anything. */
const answerAfterMs = 150

export const requestPasswordReset = visitorOperation({
  ...resets,
  id: 'developerPlatformPasswordResetsCreate',
  path,
  summary: 'Ask for a link to choose a new password.',
  description: `Always answered alike. If the address is known, a link is mailed to it that is good for one hour, at most
three in an hour.`,
  params: schema.NoParams,
  body: schema.PasswordResetBody,
  responses: { 202: PasswordResetRequested },
  errors: [],

  async handler(context, { body }) {
    await Promise.all([withinMailLimits(mailLink(context, body.email)), wait(answerAfterMs)])
    return { status: 202, body: { accepted: true } }
  },
})

async function mailLink(context: VisitorContext, email: string): Promise<void> {
  const { mint, mail, links, now } = context
  const secret = newLinkSecret()
  const expiresAt = new Date(now + passwordResetMs).toISOString()
  await context.inTransaction('write', async (tx) => {
    const reset = { email, tokenHash: mint.hashOf(secret), now: new Date(now).toISOString(), expiresAt }
    const person = await store.requestPasswordReset(tx, reset)
    if (!person) return
    await mail.enqueue(
      { tx, now, afterCommit: context.afterCommit },
      {
        accountId: person.accountId,
        to: { name: person.displayName, address: person.email },
        kind: 'builder_password_reset',
        variables: {
          link: `${links.baseUrl}/reset-password#token=${secret}`,
          expiresAt,
          request: [`POST ${links.baseUrl}${path}:complete`, `{"token": "${secret}", "newPassword": "…"}`],
        },
      },
    )
  })
}

export const completePasswordReset = visitorOperation({
  ...resets,
  id: 'developerPlatformPasswordResetsComplete',
  path: `${path}:complete`,
  summary: 'Choose a new password with the link from the mail.',
  description: `Ends every session of the person and every other link. A second factor stays as it is: who has lost it too
signs in with a recovery code.`,
  params: schema.NoParams,
  body: schema.CompletePasswordResetBody,
  responses: { 200: PasswordChanged },
  errors: ['reset_token_invalid'],

  async handler(context, { body }) {
    const tokenHash = context.mint.hashOf(body.token)
    const now = new Date(context.now).toISOString()
    if (!(await context.inTransaction('read', (tx) => store.holdsPasswordReset(tx, tokenHash, now)))) {
      throw fail('reset_token_invalid')
    }
    const passwordHash = await context.passwords.hash(body.newPassword)
    await context.inTransaction('write', async (tx) => {
      const homes = await store.completePasswordReset(tx, tokenHash, passwordHash, now)
      if (homes.length === 0) throw fail('reset_token_invalid')
      for (const person of homes) {
        await store.bindMember(tx, person.builderId, person.accountId)
        await recordAudit(
          { tx, caller: callerOf(person), correlationId: context.correlationId, now: context.now },
          { action: 'builder.password_reset', target: { type: 'builder', id: person.builderId } },
        )
      }
      await context.mail.enqueue(
        { tx, now: context.now, afterCommit: context.afterCommit },
        {
          accountId: homes.at(-1)!.accountId,
          to: { name: homes[0]!.displayName, address: homes[0]!.email },
          kind: 'password_changed',
          variables: { organizationName: null, changedAt: now },
        },
      )
    })
    return { status: 200, body: { changed: true } }
  },
})
