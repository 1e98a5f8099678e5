import { fail } from '../../../kernel/errors.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { type PlatformContext, platformOperation } from '../../../shared/platform-context.ts'
import { meOf, provePassword } from './me.ts'
import { openTotp, prove, realm, totpContext } from './proof.ts'
import { newRecoveryCodes, newTotp, totpStepOf } from './rules.ts'
import * as schema from './schema.ts'
import * as store from './store.ts'

const factor = {
  area: 'Me',
  credentials: ['bld'],
  scope: null,
  rateClass: 'write',
  params: schema.NoParams,
  // Secrets must not pass through a model's context.
  mcp: false,
} as const

const path = '/v1/platform/me/totp'

export const enrollTotp = platformOperation({
  ...factor,
  id: 'developerPlatformMeTotpEnroll',
  method: 'POST',
  path: `${path}:enroll`,
  summary: 'Begin with a second factor: receive the secret for an authenticator.',
  description: `The secret is shown once, and asked for by nothing until it is confirmed with a first code. Enrolling again
before that replaces it.`,
  transaction: 'own',
  body: schema.EnrollTotpBody,
  responses: { 200: schema.EnrolledTotp },
  errors: ['password_wrong', 'sign_in_throttled', 'totp_already_enabled'],

  async handler(context, { body }) {
    const { caller, secrets } = context
    const { email } = await provePassword(context, body.password)
    const enrolled = newTotp(email)
    const sealed = await secrets.seal(enrolled.secret, totpContext(caller.builderId))
    await context.inTransaction('write', async (tx) => {
      if (!(await store.enrollTotp(tx, caller, sealed))) throw fail('totp_already_enabled')
      await recordAudit({ ...context, tx }, { action: 'builder.totp_enrolled', target: target(context) })
    })
    return { status: 200, body: enrolled }
  },
})

export const confirmTotp = platformOperation({
  ...factor,
  id: 'developerPlatformMeTotpConfirm',
  method: 'POST',
  path: `${path}:confirm`,
  summary: 'Turn the second factor on with a first code, and receive recovery codes.',
  description: `From now on signing in takes a code. The recovery codes are shown once; each stands in for one code.
Repeating the request with its Idempotency-Key shows them again.`,
  transaction: 'write',
  confidential: true,
  body: schema.ConfirmTotpBody,
  responses: { 200: schema.ConfirmedTotp },
  errors: ['totp_not_enrolled', 'totp_already_enabled', 'secrets_unavailable'],

  async handler(context, { body }) {
    const { tx, caller, mint, now } = context
    const self = await store.findSelf(tx, caller, 'lock')
    if (self.totpConfirmedAt !== null) throw fail('totp_already_enabled')
    if (self.totpSecret === null) throw fail('totp_not_enrolled')
    const step = totpStepOf(await openTotp(context, self), body.code, self.totpLastStep, now)
    if (step === undefined) {
      throw fail('validation_failed', { field: 'code', message: 'The authenticator shows another code.' })
    }
    const recoveryCodes = newRecoveryCodes()
    const codeHashes = recoveryCodes.map((code) => mint.hashOf(code))
    await store.confirmTotp(tx, caller, { step, codeHashes, at: new Date(now).toISOString() })
    await recordAudit(context, {
      action: 'builder.totp_enabled',
      target: target(context),
      before: { totpEnabled: false },
      after: { totpEnabled: true },
    })
    return { status: 200, body: { recoveryCodes } }
  },
})

export const removeTotp = platformOperation({
  ...factor,
  id: 'developerPlatformMeTotpRemove',
  method: 'DELETE',
  path,
  summary: 'Turn the second factor off.',
  description: 'Takes the password and a code. The recovery codes go with it.',
  transaction: 'own',
  body: schema.RemoveTotpBody,
  responses: { 200: schema.Me },
  errors: ['password_wrong', 'sign_in_throttled', 'totp_not_enrolled', 'secrets_unavailable'],

  async handler(context, { body }) {
    const { caller, throttle, address } = context
    const self = await context.inTransaction('read', (tx) => store.findSelf(tx, caller))
    if (self.totpConfirmedAt === null) throw fail('totp_not_enrolled')
    const removed = await throttle.guard({ realm, account: self.email, address }, async () => {
      const proven = await prove(context, self, body)
      return proven && remove(context, self, proven)
    })
    if (!removed) throw fail('password_wrong', { message: 'The password or the code is wrong.' })
    return removed
  },
})

/** Undefined: the code was used a moment ago. */
function remove(context: PlatformContext, self: store.BuilderRow, proven: store.ProvenFactor) {
  const { caller } = context
  return context.inTransaction('write', async (tx) => {
    if (!(await store.claimFactor(tx, self, proven))) return undefined
    await store.removeTotp(tx, caller)
    await recordAudit(
      { ...context, tx },
      {
        action: 'builder.totp_disabled',
        target: target(context),
        before: { totpEnabled: true },
        after: { totpEnabled: false },
      },
    )
    return { status: 200, body: await meOf(context, tx) }
  })
}

function target({ caller }: PlatformContext) {
  return { type: 'builder', id: caller.builderId }
}
