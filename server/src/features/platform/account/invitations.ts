import { fail } from '../../../kernel/errors.ts'
import { uuidv7 } from '../../../kernel/ids.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { type PlatformContext, platformOperation } from '../../../shared/platform-context.ts'
import { acceptInvitation } from './acceptance.ts'
import { invitationMs, newLinkSecret, requireOwnerAmong, teamMax } from './rules.ts'
import * as schema from './schema.ts'
import { findAccount } from './store.ts'
import { lockTeam } from './team.ts'
import * as store from './team-store.ts'

const managing = {
  area: 'Team',
  credentials: ['bld'],
  scope: 'account.manage',
  rateClass: 'write',
  transaction: 'write',
  mcp: false,
} as const

export const invite = platformOperation({
  ...managing,
  id: 'developerPlatformTeamInvitationsCreate',
  method: 'POST',
  path: '/v1/platform/team/invitations',
  summary: 'Invite somebody to the team.',
  description: `A link that works once, for seven days, is mailed to the address. An address that has a pending
invitation is not invited again: revoke that one first. Only owners invite owners. An invitation is revoked when whoever sent it leaves the team, or gets a role that
could not send it.`,
  params: schema.NoParams,
  body: schema.InviteBody,
  responses: { 201: schema.Invitation },
  errors: ['email_taken', 'invitation_pending', 'team_limit_reached', 'permission_denied', 'mail_limit_reached'],

  async handler(context, { body }) {
    const { tx, caller, mint, now } = context
    requireOwnerAmong(caller.role, body.role)
    const createdAt = new Date(now).toISOString()
    const members = await lockTeam(context)
    const isSame = ({ email }: { readonly email: string }) => email.toLowerCase() === body.email.toLowerCase()
    if (members.some(isSame))
      throw fail('email_taken', { message: 'Somebody with this address is in the team already.' })
    const pending = await store.findInvitations(tx, caller, createdAt)
    const open = pending.find(isSame)
    // Only an owner may deal with what an owner was invited with.
    if (open) requireOwnerAmong(caller.role, open.role)
    if (open) throw fail('invitation_pending', { field: 'email', message: 'Revoke the pending invitation first.' })
    if (members.length + pending.length >= teamMax) throw fail('team_limit_reached')
    const secret = newLinkSecret()
    const invitation: schema.Invitation = {
      invitationId: uuidv7(now),
      email: body.email,
      role: body.role,
      createdAt,
      expiresAt: new Date(now + invitationMs).toISOString(),
    }
    const kept = { tokenHash: mint.hashOf(secret), invitedBy: caller.builderId }
    await store.insertInvitation(tx, caller, { ...invitation, ...kept })
    await recordAudit(context, { action: 'team_invitation.created', target: target(invitation), after: invitation })
    await mailInvitation(context, invitation, secret)
    return { status: 201, body: invitation }
  },
})

export const revokeInvitation = platformOperation({
  ...managing,
  id: 'developerPlatformTeamInvitationsRevoke',
  method: 'DELETE',
  path: '/v1/platform/team/invitations/{invitationId}',
  summary: 'Revoke an invitation.',
  description: 'Its link works no more. Only owners revoke what owners were invited with.',
  params: schema.InvitationParams,
  responses: { 200: schema.Invitation },
  errors: ['invitation_not_found', 'permission_denied'],

  async handler(context, { params }) {
    const { tx, caller, now } = context
    const revoked = await store.revokeInvitation(tx, caller, params.invitationId, new Date(now).toISOString())
    if (!revoked) throw fail('invitation_not_found')
    requireOwnerAmong(caller.role, revoked.role)
    await recordAudit(context, { action: 'team_invitation.revoked', target: target(revoked), before: revoked })
    return { status: 200, body: revoked }
  },
})

function target({ invitationId }: schema.Invitation) {
  return { type: 'team_invitation', id: invitationId }
}

async function mailInvitation(
  context: PlatformContext,
  { email, role, expiresAt }: schema.Invitation,
  secret: string,
): Promise<void> {
  const { tx, caller, links, mail } = context
  const account = await findAccount(tx, caller)
  await mail.enqueue(context, {
    accountId: caller.accountId,
    to: { name: '', address: email },
    kind: 'builder_invitation',
    variables: {
      accountName: account.name,
      inviterName: caller.displayName || caller.email,
      role,
      link: `${links.baseUrl}/accept-invitation#token=${secret}`,
      expiresAt,
      request: [
        `POST ${links.baseUrl}${acceptInvitation.path}`,
        `{"token": "${secret}", "displayName": "…", "password": "…"}`,
      ],
    },
  })
}
