import { fail } from '../../../kernel/errors.ts'
import { StaleIdentity } from '../../../kernel/exchange.ts'
import type { BuilderRole } from '../../../kernel/scopes.ts'
import { recordAudit } from '../../../shared/audit.ts'
import { type PlatformContext, platformOperation } from '../../../shared/platform-context.ts'
import { mayInvite, requireOwnerAmong, requireOwnerLeft } from './rules.ts'
import * as schema from './schema.ts'
import { bumpAccount, endMemberSessions } from './session-store.ts'
import { lockAccount } from './store.ts'
import * as store from './team-store.ts'

const team = { area: 'Team', credentials: ['bld'], mcp: false } as const
const managing = { ...team, scope: 'account.manage', rateClass: 'write', transaction: 'write' } as const

export const getTeam = platformOperation({
  ...team,
  id: 'developerPlatformTeamGet',
  method: 'GET',
  path: '/v1/platform/team',
  summary: 'List the members of the account and the invitations that are pending.',
  description: 'At most 200 together.',
  scope: 'account.read',
  rateClass: 'read',
  transaction: 'read',
  params: schema.NoParams,
  responses: { 200: schema.Team },
  errors: [],

  async handler({ tx, caller, now }) {
    const [members, invitations] = await Promise.all([
      store.findMembers(tx, caller),
      store.findInvitations(tx, caller, new Date(now).toISOString()),
    ])
    return { status: 200, body: { members, invitations } }
  },
})

export const updateMember = platformOperation({
  ...managing,
  id: 'developerPlatformTeamUpdateMember',
  method: 'PATCH',
  path: '/v1/platform/team/{builderId}',
  summary: 'Give a member another role.',
  description: `It holds from the member's next request on, and pending invitations are revoked that the member has sent and
could not send any more. Only owners make owners or change them, and the last owner stays one.`,
  params: schema.MemberParams,
  body: schema.UpdateMemberBody,
  responses: { 200: schema.Member },
  errors: ['member_not_found', 'permission_denied', 'last_owner'],

  async handler(context, { params, body }) {
    const { tx, caller } = context
    const { members, member } = await lockMember(context, params.builderId)
    requireOwnerAmong(caller.role, member.role, body.role)
    requireOwnerLeft(members, member.builderId, body.role)
    const after = { ...member, role: body.role }
    if (member.role === body.role) return { status: 200, body: after }
    await store.updateRole(tx, caller, member.builderId, body.role)
    await revokeInvitationsOf(context, member.builderId, body.role)
    await bumpAccount(tx, caller)
    await recordAudit(context, {
      action: 'member.updated',
      target: { type: 'member', id: member.builderId },
      before: member,
      after,
    })
    return { status: 200, body: after }
  },
})

export const removeMember = platformOperation({
  ...managing,
  id: 'developerPlatformTeamRemoveMember',
  method: 'DELETE',
  path: '/v1/platform/team/{builderId}',
  summary: 'Remove a member from the account.',
  description: `The sessions of the member in this account end at once, and so do the pending invitations to the team that the
member has sent. Only owners remove owners, and the last owner cannot be removed.`,
  params: schema.MemberParams,
  responses: { 200: schema.Member },
  errors: ['member_not_found', 'permission_denied', 'last_owner'],

  async handler(context, { params }) {
    const { tx, caller, now } = context
    const { members, member } = await lockMember(context, params.builderId)
    requireOwnerAmong(caller.role, member.role)
    requireOwnerLeft(members, member.builderId, null)
    const { accountId } = caller
    await endMemberSessions(tx, { accountId, builderId: member.builderId }, new Date(now).toISOString())
    await store.deleteMember(tx, caller, member.builderId)
    await revokeInvitationsOf(context, member.builderId, null)
    await bumpAccount(tx, caller)
    await recordAudit(context, {
      action: 'member.removed',
      target: { type: 'member', id: member.builderId },
      before: member,
    })
    return { status: 200, body: member }
  },
})

/** A way into the team must not outlive the right to open it. `role`: the one that the member has now, null for none. */
async function revokeInvitationsOf(context: PlatformContext, builderId: string, role: BuilderRole | null) {
  const { tx, caller, now } = context
  const at = new Date(now).toISOString()
  const sent = await store.findInvitationsBy(tx, caller, builderId, at)
  for (const invitation of sent.filter((one) => !mayInvite(role, one.role))) {
    const { invitationId } = invitation
    await store.revokeInvitation(tx, caller, invitationId, at)
    await recordAudit(context, {
      action: 'team_invitation.revoked',
      target: { type: 'team_invitation', id: invitationId },
      before: invitation,
    })
  }
}

/** The team as it is until the end of this transaction, and the one of it that the request names. */
async function lockMember(context: PlatformContext, named: string) {
  const members = await lockTeam(context)
  const builderId = named.toLowerCase()
  const member = members.find((one) => one.builderId === builderId)
  if (!member) throw fail('member_not_found')
  return { members, member }
}

/**
 * Waits for others who change the team. They may have changed the role of this caller too: then the request starts over
 * with what it is now.
 */
export async function lockTeam({ tx, caller }: PlatformContext): Promise<schema.Member[]> {
  await lockAccount(tx, caller)
  const members = await store.findMembers(tx, caller)
  if (members.find(({ builderId }) => builderId === caller.builderId)?.role !== caller.role) throw new StaleIdentity()
  return members
}
