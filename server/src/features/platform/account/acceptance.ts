import type { Static } from 'typebox'
import { type ErrorDetail, fail } from '../../../kernel/errors.ts'
import { uuidv7 } from '../../../kernel/ids.ts'
import type { Reply } from '../../../kernel/operation.ts'
import type { Tx } from '../../../kernel/transaction.ts'
import { assertValid } from '../../../kernel/validation.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { NewPassword } from '../../../shared/identity/passwords.ts'
import { type VisitorContext, visitorOperation } from '../../../shared/platform-context.ts'
import { prove, realm, signInFailed } from './proof.ts'
import * as schema from './schema.ts'
import { beginSession, callerOf, type Entrant } from './signed-in.ts'
import { claimFactor } from './store.ts'
import * as store from './visitor-store.ts'

type Body = Static<typeof schema.AcceptBody>

/** What was accepted must not stay when the proof turns out to be worth nothing: thrown to roll back. */
class ProofSpent extends Error {
  override readonly name = 'ProofSpent'
}

export const acceptInvitation = visitorOperation({
  id: 'developerPlatformTeamInvitationsAccept',
  method: 'POST',
  path: '/v1/platform/team/invitations:accept',
  area: 'Team',
  summary: 'Accept an invitation to a team, and sign in.',
  description: `Who is new gives a \`displayName\` and chooses a \`password\`. Who has signed in here before, under the address
that was invited, proves the own password, and a code where there is a second factor. The link works once. The setup link
of a new installation is accepted here too; it also takes the \`email\` of the first owner and, if you like, an
\`accountName\`.`,
  credentials: ['none'],
  scope: null,
  rateClass: 'visit',
  transaction: 'own',
  // A password must not pass through a model's context.
  mcp: false,
  params: schema.NoParams,
  body: schema.AcceptBody,
  responses: { 201: schema.SignedIn },
  errors: ['invitation_not_found', 'sign_in_failed', 'totp_required', 'sign_in_throttled', 'secrets_unavailable'],

  async handler(context, { body }) {
    const tokenHash = context.mint.hashOf(body.token)
    const now = new Date(context.now).toISOString()
    const found = await context.inTransaction('read', async (tx) => {
      const invitation = await store.findInvitationOfLink(tx, tokenHash, now)
      if (invitation) return { email: invitation.email, known: await store.findBuilderByEmail(tx, invitation.email) }
      return (await store.opensFirstAccount(tx, tokenHash, now)) ? 'first account' : undefined
    })
    if (!found) throw fail('invitation_not_found')
    if (found === 'first account') return makeFirstAccount(context, tokenHash, body)
    return found.known
      ? joinKnown(context, tokenHash, found.known, body)
      : joinNew(context, tokenHash, found.email, body)
  },
})

async function joinKnown(
  context: VisitorContext,
  tokenHash: Buffer,
  known: store.KnownBuilder,
  { password, totpCode }: Body,
): Promise<Reply> {
  const { builderId, email, displayName, accounts } = known
  const joined = await context.throttle.guard({ realm, account: email, address: context.address }, async () => {
    const factor = await prove(context, known, { password, code: totpCode })
    if (!factor) return undefined
    const work = context.inTransaction('write', async (tx) => {
      const accepted = await accept(context, tx, { tokenHash, builderId, newcomer: null })
      if (!(await claimFactor(tx, known, factor))) throw new ProofSpent()
      const totpEnabled = known.totpConfirmedAt !== null
      return beginSession(context, tx, { builderId, email, displayName, totpEnabled, ...accepted, accounts })
    })
    return work.catch((error: unknown) => {
      if (error instanceof ProofSpent) return undefined
      throw error
    })
  })
  if (!joined) throw signInFailed()
  return joined
}

async function joinNew(context: VisitorContext, tokenHash: Buffer, email: string, body: Body): Promise<Reply> {
  const { displayName } = requireFields(body, ['displayName'])
  const passwordHash = await hashNew(context, body.password)
  const builderId = uuidv7(context.now)
  return context.inTransaction('write', async (tx) => {
    const accepted = await accept(context, tx, { tokenHash, builderId, newcomer: { displayName, passwordHash } })
    return beginSession(context, tx, newcomer({ builderId, email, displayName, ...accepted }))
  })
}

async function makeFirstAccount(context: VisitorContext, tokenHash: Buffer, body: Body): Promise<Reply> {
  const { email, displayName } = requireFields(body, ['email', 'displayName'])
  const passwordHash = await hashNew(context, body.password)
  const person = { builderId: uuidv7(context.now), email, displayName }
  const account = { accountId: uuidv7(context.now), name: body.accountName ?? displayName }
  return context.inTransaction('write', async (tx) => {
    const now = new Date(context.now).toISOString()
    const made = await store.acceptFirstAccount(tx, tokenHash, { ...account, ...person, passwordHash }, now)
    if (!made) throw fail('invitation_not_found')
    const entrant = newcomer({ ...person, accountId: account.accountId, role: 'owner' })
    await recordAudit(
      { ...context, tx, caller: callerOf(entrant) },
      { action: 'account.created', target: { type: 'account', id: account.accountId }, after: { ...account, email } },
    )
    return beginSession(context, tx, entrant)
  })
}

async function accept(
  context: VisitorContext,
  tx: Tx,
  accepting: Omit<Parameters<typeof store.acceptInvitation>[1], 'now'>,
) {
  const { now } = context
  const accepted = await store.acceptInvitation(tx, { ...accepting, now: new Date(now).toISOString() })
  if (!accepted) throw fail('invitation_not_found')
  const { accountId, invitationId, role } = accepted
  const { builderId } = accepting
  await recordAudit(
    { ...context, tx, caller: callerOf({ accountId, builderId }) },
    {
      action: 'team_invitation.accepted',
      target: { type: 'team_invitation', id: invitationId },
      after: { invitationId, builderId, role },
    },
  )
  return { accountId, role }
}

function newcomer(person: Pick<Entrant, 'builderId' | 'email' | 'displayName' | 'accountId' | 'role'>): Entrant {
  return { ...person, totpEnabled: false, accounts: [] }
}

/** Which fields are needed depends on the link. */
function requireFields<const K extends 'email' | 'displayName'>(body: Body, names: readonly K[]): Record<K, string> {
  const details = names
    .filter((field) => body[field] === undefined)
    .map((field): ErrorDetail => ({ field, code: 'required', message: 'This field is required.' }))
  if (details.length > 0) throw fail('validation_failed', { details })
  return body as Record<K, string>
}

function hashNew(context: VisitorContext, password: string): Promise<string> {
  assertValid(NewPassword, password, 'password')
  return context.passwords.hash(password)
}
