import type { ErrorDetail } from '../../kernel/errors.ts'
import type { DomainRecord } from '../../shared/domain-ownership.ts'
import type { LifecycleEventKey } from '../../shared/outbox/lifecycle-events.ts'

/** Decisions about organizations, users and invitations. Nothing here asks the database. */

/**
 * Host names below the service's own that no customer may have: those that people and programs take for the service
 * itself, those that mail and certificates trust (RFC 2142), and those that browsers and systems look up by themselves.
 */
export const reservedSlugs: ReadonlySet<string> = new Set(
  [
    'www web api apis app apps admin administrator root system internal portico platform console dashboard manage',
    'auth oauth oauth2 oidc sso login signin signup signout logout register account accounts id identity me session',
    'billing pay payment payments checkout shop store marketplace status health metrics monitor logs',
    'docs doc help support contact about blog news legal privacy terms press careers',
    'static assets asset cdn media files images img js css download downloads upload uploads',
    'mail email smtp imap pop pop3 mx webmail newsletter autodiscover autoconfig',
    'postmaster hostmaster webmaster abuse security noc info sales marketing noreply',
    'ns ns1 ns2 ns3 ns4 dns ftp sftp ssh vpn proxy gateway hooks webhooks mcp',
    'localhost local localdomain broadcasthost wpad isatap test staging dev sandbox',
  ]
    .join(' ')
    .split(' '),
)

/** Is this the host of the service, or below it? Both are lower case. */
export function isHostOfService(domain: string, hosts: readonly string[]): boolean {
  return hosts.some((host) => domain === host || domain.endsWith(`.${host}`))
}

export type ActiveState = 'active' | 'inactive'

/** What of an organization is published (specification 6.2). */
export interface OrganizationFacts {
  readonly name: string
  readonly billingEmail: string | null
  readonly status: ActiveState
  readonly customDomain: string | null
  /** ISO 8601; null while it is only asked for. */
  readonly customDomainVerifiedAt: string | null
}

export function changesOrganization(before: OrganizationFacts, after: OrganizationFacts): boolean {
  const names = ['name', 'billingEmail', 'status', 'customDomain', 'customDomainVerifiedAt'] as const
  return names.some((name) => before[name] !== after[name])
}

/** `updated` tells every change of what is published, the status included; `deactivated` comes beside it. */
export function organizationEvents(before: OrganizationFacts, after: OrganizationFacts) {
  const events: Extract<LifecycleEventKey, `organization.${string}`>[] = []
  if (changesOrganization(before, after)) events.push('organization.updated')
  if (before.status === 'active' && after.status === 'inactive') events.push('organization.deactivated')
  return events
}

/** What a user is and may do. */
export interface UserFacts {
  readonly email: string
  readonly displayName: string
  readonly status: ActiveState
  readonly userTypeKey: string
  readonly isOwner: boolean
  readonly dataRoleIds: readonly string[]
  readonly locations: 'all' | readonly string[]
}

export function changesRoles(before: UserFacts, after: UserFacts): boolean {
  return !sameSet(before.dataRoleIds, after.dataRoleIds)
}

export function changesLocations({ locations: before }: UserFacts, { locations: after }: UserFacts): boolean {
  if (before === 'all' || after === 'all') return before !== after
  return !sameSet(before, after)
}

export function changesUser(before: UserFacts, after: UserFacts): boolean {
  return userEvents(before, after).length > 0 || changesLocations(before, after)
}

/**
 * The facts that follow from a change of a user. Where somebody works is not among the causes that the specification
 * names, so a change of locations alone tells nobody anything.
 */
export function userEvents(before: UserFacts, after: UserFacts) {
  const events: ('user.updated' | 'user.deactivated' | 'membership.role_changed')[] = []
  const differs = (...names: (keyof UserFacts)[]) => names.some((name) => before[name] !== after[name])
  if (differs('email', 'displayName', 'status', 'userTypeKey', 'isOwner')) events.push('user.updated')
  if (before.status === 'active' && after.status === 'inactive') events.push('user.deactivated')
  if (differs('userTypeKey', 'isOwner') || changesRoles(before, after)) events.push('membership.role_changed')
  return events
}

/** Does the organization lose an active owner? Then another one must be there. */
export function losesOwner(before: UserFacts, after: UserFacts): boolean {
  const isActiveOwner = ({ isOwner, status }: UserFacts) => isOwner && status === 'active'
  return isActiveOwner(before) && !isActiveOwner(after)
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  const left = new Set(a)
  return left.size === new Set(b).size && b.every((one) => left.has(one))
}

/** How long the link of an invitation works. */
const invitationDays = 7
export const invitationMs = invitationDays * 24 * 60 * 60 * 1000

/** The token stands behind the `#`, which browsers send to nobody: neither to a server and its log, nor as a referrer. */
export function invitationLink(tenantOrigin: string, token: string): string {
  return `${tenantOrigin}/accept-invitation#token=${token}`
}

export type InvitationStatus = 'pending' | 'accepted' | 'revoked' | 'expired'

export function invitationStatus(
  invitation: {
    readonly acceptedAt: string | null
    readonly revokedAt: string | null
    readonly expiresAt: string
  },
  now: number,
): InvitationStatus {
  if (invitation.acceptedAt !== null) return 'accepted'
  if (invitation.revokedAt !== null) return 'revoked'
  return Date.parse(invitation.expiresAt) > now ? 'pending' : 'expired'
}

/** Of what stands in the DNS, which is anybody's text, so much is shown: a few values, each one line. */
const foundMax = 5
const foundTextMax = 100

/** Says what was looked for and what was found instead. */
export function domainProblems({ recordName, recordValue }: DomainRecord, found: readonly string[]): ErrorDetail[] {
  const detail = (message: string) => ({ field: 'customDomain', code: 'domain_not_verified', message })
  const shown = found.slice(0, foundMax).map((value) => {
    const text = value.replace(/[^\x20-\x7e]/g, '?')
    return detail(`Found: ${text.length > foundTextMax ? `${text.slice(0, foundTextMax)}…` : text}`)
  })
  return [
    detail(`Looked for a TXT record ${recordName} with the value ${recordValue}.`),
    ...(found.length === 0 ? [detail('Found no TXT record of this name.')] : shown),
    ...(found.length > foundMax ? [detail(`Found ${found.length - foundMax} more.`)] : []),
  ]
}
