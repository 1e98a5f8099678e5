import { fail } from '../../../kernel/errors.ts'
import { type VisitorContext, visitorOperation } from '../../../shared/platform-context.ts'
import { prove, realm, signInFailed } from './proof.ts'
import * as schema from './schema.ts'
import { beginSession } from './signed-in.ts'
import { claimFactor, type ProvenFactor, replacePassword } from './store.ts'
import { bindMember, findBuilderByEmail, type KnownBuilder } from './visitor-store.ts'

export const signIn = visitorOperation({
  id: 'developerPlatformSessionsCreate',
  method: 'POST',
  path: '/v1/platform/sessions',
  area: 'Sessions',
  summary: 'Sign in and receive a session token.',
  description: `The token is good for 12 hours and shown once. An unknown address, a wrong password and a wrong code are
answered alike. Where the person has a second factor, a right password without \`totpCode\` is answered with
\`totp_required\`. Who is a member of several accounts names one with \`accountId\`; otherwise it is the one joined first.
Failures slow down further attempts, by account and by address.`,
  credentials: ['none'],
  scope: null,
  rateClass: 'visit',
  transaction: 'own',
  // A password must not pass through a model's context.
  mcp: false,
  params: schema.NoParams,
  body: schema.SignInBody,
  responses: { 201: schema.SignedIn },
  errors: ['sign_in_failed', 'totp_required', 'sign_in_throttled', 'account_not_found', 'secrets_unavailable'],

  async handler(context, { body }) {
    const { email, password, totpCode, accountId, label } = body
    const known = await context.inTransaction('read', (tx) => findBuilderByEmail(tx, email))
    // As the database spells it: letters that it takes for one must not make several accounts for the throttle.
    const attempt = { realm, account: known?.email ?? email, address: context.address }
    const signedIn = await context.throttle.guard(attempt, async () => {
      const factor = await prove(context, known, { password, code: totpCode })
      return factor && enter(context, known!, factor, { password, accountId, label })
    })
    if (!signedIn) throw signInFailed()
    return signedIn
  },
})

/** Undefined: the password or the code is no longer good. */
async function enter(
  context: VisitorContext,
  known: KnownBuilder,
  factor: ProvenFactor,
  { password, accountId, label }: { password: string; accountId: string | undefined; label: string | undefined },
) {
  const { builderId, email, displayName, passwordHash, totpConfirmedAt, accounts } = known
  const home = accounts[0]?.accountId
  if (home === undefined) return undefined
  const chosen = accountId?.toLowerCase() ?? home
  const fresh = context.passwords.isOutdated(passwordHash) ? await context.passwords.hash(password) : null
  return context.inTransaction('write', async (tx) => {
    await bindMember(tx, builderId, home)
    if (!(await claimFactor(tx, known, factor))) return undefined
    // Only who has proven everything learns which accounts are theirs.
    const role = await bindMember(tx, builderId, chosen)
    if (!role) throw fail('account_not_found')
    if (fresh !== null) await replacePassword(tx, known, { from: passwordHash, to: fresh })
    const totpEnabled = totpConfirmedAt !== null
    return beginSession(
      context,
      tx,
      { builderId, email, displayName, totpEnabled, accountId: chosen, role, accounts },
      label,
    )
  })
}
