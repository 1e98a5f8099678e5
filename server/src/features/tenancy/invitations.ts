import { fail } from '../../kernel/errors.ts'
import type { Operation } from '../../kernel/operation.ts'
import { resolveReferences } from '../../shared/access/references.ts'
import { pageOf } from '../../shared/cursors.ts'
import { type PlatformContext, platformOperation } from '../../shared/platform-context.ts'
import * as schema from './invitation-schema.ts'
import * as store from './invitation-store.ts'
import { invitationView, invite, resend, revoke } from './inviting.ts'
import { lockOrganization } from './organization-store.ts'
import { OrganizationParams } from './schema.ts'

const base = '/v1/platform/organizations/{organizationId}/invitations'
const common = { area: 'Invitations', credentials: ['bld'], mcp: false } as const
const reading = { ...common, scope: 'organizations.read', rateClass: 'read', transaction: 'read' } as const
const writing = { ...common, scope: 'organizations.manage', rateClass: 'write', transaction: 'write' } as const

const list = platformOperation({
  ...reading,
  id: 'developerPlatformInvitationsList',
  method: 'GET',
  path: base,
  summary: 'List the invitations to a customer organization, newest first.',
  description: 'Also those that were accepted, revoked or have expired; `status` narrows.',
  params: OrganizationParams,
  query: schema.InvitationQuery,
  responses: { 200: schema.InvitationPage },
  errors: ['organization_not_found', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler({ tx, cursors, now }, { params, query }) {
    const wanted = { organizationId: params.organizationId.toLowerCase(), status: query.status }
    const { rows, nextCursor } = await pageOf(
      cursors,
      ['invitations', wanted],
      query,
      (after, limit) => store.findInvitations(tx, { ...wanted, now }, after, limit),
      ({ invitationId }) => [invitationId],
    )
    return { status: 200, body: { items: rows.map((row) => invitationView(row, now)), nextCursor } }
  },
})

const create = platformOperation({
  ...writing,
  id: 'developerPlatformInvitationsCreate',
  method: 'POST',
  path: base,
  summary: 'Invite somebody to a customer organization by mail.',
  description:
    'The mail holds a link with a one-time token that works for seven days; nothing else shows the token. An address that has a pending invitation is not invited again: resend or revoke that one. One that has expired is replaced. Roles and locations that are gone when it is accepted are left out.',
  params: OrganizationParams,
  body: schema.InvitationCreateBody,
  responses: { 201: schema.Invitation },
  errors: ['organization_not_found', 'email_taken', 'invitation_pending', 'reference_not_found', 'mail_limit_reached'],

  async handler(context, { params, body }) {
    const organization = await lockOrganization(context.tx, params.organizationId)
    const { dataRoleIds = [], locations = [] } = await resolveReferences(context.tx, organization.organizationId, body)
    const { email, displayName = '', userTypeKey = 'member', isOwner = false } = body
    const invited = { email, displayName, userTypeKey, isOwner, dataRoleIds, locations }
    return { status: 201, body: await invite(context, organization, invited) }
  },
})

const resendLink = platformOperation({
  ...writing,
  id: 'developerPlatformInvitationsResend',
  method: 'POST',
  path: `${base}/{invitationId}:resend`,
  summary: 'Send the link of an invitation again.',
  description:
    'With a new token, for seven days from now; the link before opens nothing any more. Also for an invitation that has expired.',
  params: schema.InvitationParams,
  responses: { 200: schema.Invitation },
  errors: ['organization_not_found', 'invitation_not_found', 'invitation_closed', 'email_taken', 'mail_limit_reached'],

  async handler(context, { params }) {
    const organization = await lockOrganization(context.tx, params.organizationId)
    const invitation = await requireInvitation(context, params)
    if (invitation.acceptedAt !== null || invitation.revokedAt !== null) throw fail('invitation_closed')
    return { status: 200, body: await resend(context, organization, invitation) }
  },
})

const revokeOne = platformOperation({
  ...writing,
  id: 'developerPlatformInvitationsRevoke',
  method: 'POST',
  path: `${base}/{invitationId}:revoke`,
  summary: 'Revoke an invitation.',
  description: 'Its link opens nothing any more. Revoking it again changes nothing; an accepted one stays accepted.',
  params: schema.InvitationParams,
  responses: { 200: schema.Invitation },
  errors: ['organization_not_found', 'invitation_not_found', 'invitation_closed'],

  async handler(context, { params }) {
    const organization = await lockOrganization(context.tx, params.organizationId)
    const invitation = await requireInvitation(context, params)
    if (invitation.acceptedAt !== null) throw fail('invitation_closed')
    const isRevoked = invitation.revokedAt !== null
    const body = isRevoked ? invitationView(invitation, context.now) : await revoke(context, organization, invitation)
    return { status: 200, body }
  },
})

async function requireInvitation(
  { tx }: PlatformContext,
  { organizationId, invitationId }: { readonly organizationId: string; readonly invitationId: string },
): Promise<store.InvitationRow> {
  const invitation = await store.findInvitation(tx, organizationId, invitationId)
  if (!invitation) throw fail('invitation_not_found')
  return invitation
}

export const invitationOperations: readonly Operation<PlatformContext>[] = [list, create, resendLink, revokeOne]
