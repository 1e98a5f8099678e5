import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Operation } from '../../kernel/operation.ts'
import { Strict } from '../../kernel/schemas.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { recordTenantAudit } from '../../shared/audit.ts'
import { emitLifecycle } from '../../shared/outbox/lifecycle.ts'
import { type TenantVisitorContext, tenantVisitorOperation } from '../../shared/tenant-context.ts'
import { AcceptBody } from './invitation-schema.ts'
import { findInvitation, findPendingByToken, type InvitationRow, markAccepted } from './invitation-store.ts'
import { invitationView } from './inviting.ts'
import { createMember } from './members.ts'
import { lockOrganization, type OrganizationRow } from './organization-store.ts'
import { User } from './user-schema.ts'
import type { UserRow } from './user-store.ts'

const accept = tenantVisitorOperation({
  id: 'developerTenantInvitationsAccept',
  method: 'POST',
  path: '/api/invitations:accept',
  area: 'Invitations',
  summary: 'Accept an invitation with the token of its link, and choose a password.',
  description:
    'Makes the user and its membership. The token works once, for seven days, on the host of the organization that sent it; one that is wrong, spent, revoked or expired answers as one that never was. Sign in afterwards.',
  credentials: ['none'],
  scope: null,
  rateClass: 'visit',
  transaction: 'own',
  mcp: false, // a password must not pass through a model's context
  params: Strict({}),
  body: AcceptBody,
  responses: { 201: User },
  errors: ['organization_not_found', 'invitation_not_found', 'email_taken', 'cross_site_request'],

  async handler(context, { body }) {
    const { caller, mint, passwords, now } = context
    const tokenHash = mint.hashOf(body.token)
    const pending = (tx: Tx) => requirePending(tx, caller.organizationId, tokenHash, now)
    // First, so that nobody without a token can make the service hash passwords.
    const { displayName } = await context.inTransaction('read', pending)
    const name = body.displayName ?? displayName
    if (name === '') throw fail('validation_failed', { field: 'displayName', message: 'The invitation has no name.' })
    const passwordHash = await passwords.hash(body.password)
    const user = await context.inTransaction('write', async (tx) => {
      const organization = await lockOrganization(tx, caller.organizationId)
      // It was active when its host was asked for.
      if (organization.status !== 'active') throw fail('organization_inactive')
      return consume(context, tx, organization, await pending(tx), { displayName: name, passwordHash })
    })
    return { status: 201, body: user }
  },
})

async function requirePending(tx: Tx, organizationId: string, tokenHash: Buffer, now: number): Promise<InvitationRow> {
  const invitation = await findPendingByToken(tx, organizationId, tokenHash, now)
  if (!invitation) throw fail('invitation_not_found')
  return invitation
}

/** The visitor becomes a user, and everything from here on is that user's doing. */
async function consume(
  { correlationId, now }: TenantVisitorContext,
  tx: Tx,
  organization: OrganizationRow,
  invitation: InvitationRow,
  chosen: { readonly displayName: string; readonly passwordHash: string },
): Promise<UserRow> {
  const { organizationId, invitationId, email, userTypeKey, isOwner, dataRoles, locations } = invitation
  const userId = uuidv7(now)
  const actor = { kind: 'user', id: userId } as const
  const dataRoleIds = dataRoles.map(({ dataRoleId }) => dataRoleId)
  const member = { userId, email, ...chosen, userTypeKey, isOwner, dataRoleIds, locationIds: locations }
  const user = await createMember({ tx, now, actor }, organization, member)
  await markAccepted(tx, { organizationId, invitationId, userId }, now)
  const data = { organizationId, invitationId, userId, email }
  await emitLifecycle({ tx, now, actor }, { eventKey: 'invitation.accepted', saasAppId: organization.appId, data })
  const accepted = (await findInvitation(tx, organizationId, invitationId))!
  const occasion = { tx, actor, correlationId, now }
  const ofUser = { type: 'user', id: userId }
  await recordTenantAudit(occasion, { action: 'user.created', target: ofUser, before: null, after: user })
  await recordTenantAudit(occasion, {
    action: 'invitation.accepted',
    target: { type: 'invitation', id: invitationId },
    before: invitationView(invitation, now),
    after: invitationView(accepted, now),
  })
  return user
}

export const acceptanceOperations: readonly Operation<TenantVisitorContext>[] = [accept]
