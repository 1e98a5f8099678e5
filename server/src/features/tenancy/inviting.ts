import { randomBytes } from 'node:crypto'
import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import { recordAudit } from '../../shared/audit.ts'
import type { PlatformContext } from '../../shared/platform-context.ts'
import type { Invitation } from './invitation-schema.ts'
import * as store from './invitation-store.ts'
import type { OrganizationRow } from './organization-store.ts'
import { invitationLink, invitationMs, invitationStatus } from './rules.ts'
import { existsEmail } from './user-store.ts'

/** What an invitation says that its user will be. */
type Invited = Pick<
  store.NewInvitation,
  'email' | 'displayName' | 'userTypeKey' | 'isOwner' | 'dataRoleIds' | 'locations'
>

/**
 * Invites an address, in place of an invitation of it that has expired. The organization must be locked, or made in this
 * transaction. Throws `email_taken` where a user has the address, and `invitation_pending` where it is invited already.
 */
export async function invite(
  context: PlatformContext,
  organization: OrganizationRow,
  invited: Invited,
): Promise<Invitation> {
  const { tx, now } = context
  const { organizationId } = organization
  await requireFreeEmail(context, organizationId, invited.email)
  const open = await store.findOpenFor(tx, organizationId, invited.email)
  if (open && invitationStatus(open, now) === 'pending') throw fail('invitation_pending', { field: 'email' })
  if (open) await revoke(context, organization, open)
  const ticket = newTicket(context)
  const invitationId = uuidv7(now)
  await store.insertInvitation(tx, { organizationId, invitationId, ...invited, ...ticket.kept })
  const row = (await store.findInvitation(tx, organizationId, invitationId))!
  await sendLink(context, organization, row, ticket.token)
  const after = invitationView(row, now)
  await recordAudit(context, { action: 'invitation.created', ...targetOf(organization, row), before: null, after })
  return after
}

/** Sends another link with another token, for seven days from now. The organization must be locked. */
export async function resend(
  context: PlatformContext,
  organization: OrganizationRow,
  invitation: store.InvitationRow,
): Promise<Invitation> {
  const { tx, now } = context
  const { organizationId, invitationId } = invitation
  await requireFreeEmail(context, organizationId, invitation.email)
  const ticket = newTicket(context)
  await store.renewInvitation(tx, { organizationId, invitationId, ...ticket.kept })
  const row = (await store.findInvitation(tx, organizationId, invitationId))!
  await sendLink(context, organization, row, ticket.token)
  const [before, after] = [invitationView(invitation, now), invitationView(row, now)]
  await recordAudit(context, { action: 'invitation.resent', ...targetOf(organization, row), before, after })
  return after
}

/** The link opens nothing from then on. The organization must be locked. */
export async function revoke(
  context: PlatformContext,
  organization: OrganizationRow,
  invitation: store.InvitationRow,
): Promise<Invitation> {
  const { tx, now } = context
  const { organizationId, invitationId } = invitation
  await store.revokeInvitation(tx, organizationId, invitationId, now)
  const row = (await store.findInvitation(tx, organizationId, invitationId))!
  const [before, after] = [invitationView(invitation, now), invitationView(row, now)]
  await recordAudit(context, { action: 'invitation.revoked', ...targetOf(organization, row), before, after })
  return after
}

export function invitationView(row: store.InvitationRow, now: number): Invitation {
  return { ...row, status: invitationStatus(row, now) }
}

async function requireFreeEmail({ tx }: PlatformContext, organizationId: string, email: string): Promise<void> {
  if (!(await existsEmail(tx, organizationId, email))) return
  throw fail('email_taken', { field: 'email', message: 'A user of the organization has this address.' })
}

/** 256 random bits, which leave in the mail and nowhere else; a hash of them is kept. */
function newTicket({ mint, now }: PlatformContext) {
  const token = randomBytes(32).toString('base64url')
  const sentAt = new Date(now).toISOString()
  const expiresAt = new Date(now + invitationMs).toISOString()
  return { token, kept: { tokenHash: mint.hashOf(token), sentAt, expiresAt } }
}

async function sendLink(
  context: PlatformContext,
  organization: OrganizationRow,
  { email, displayName, expiresAt }: store.InvitationRow,
  token: string,
): Promise<void> {
  const { caller, links, mail } = context
  const { organizationId, name: organizationName } = organization
  const variables = {
    organizationName,
    inviterName: caller.displayName || caller.email,
    link: invitationLink(links.tenantOrigin(organization), token),
    expiresAt,
  }
  const to = { name: displayName, address: email }
  await mail.enqueue(context, { organizationId, to, kind: 'tenant_invitation', variables })
}

function targetOf({ organizationId, appId }: OrganizationRow, { invitationId }: store.InvitationRow) {
  return { target: { type: 'invitation', id: invitationId }, saasAppId: appId, organizationId }
}
