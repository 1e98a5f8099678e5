import { fail } from '../../kernel/errors.ts'
import type { Reply } from '../../kernel/operation.ts'
import { recordAudit } from '../../shared/audit.ts'
import { brokenConstraint } from '../../shared/database/failures.ts'
import type { DomainRecord } from '../../shared/domain-ownership.ts'
import { emitLifecycle } from '../../shared/outbox/lifecycle.ts'
import type { PlatformContext } from '../../shared/platform-context.ts'
import * as organizations from './organization-store.ts'
import { changesOrganization, type OrganizationFacts, organizationEvents } from './rules.ts'

/** Changes of an organization with what follows from them, and the organization as the API shows it. */

/** Writes `facts` where they change anything, tells and records it, and answers. `before` must be locked. */
export async function changeOrganization(
  context: PlatformContext,
  before: organizations.OrganizationRow,
  facts: OrganizationFacts,
): Promise<Reply> {
  const { tx } = context
  if (!changesOrganization(before, facts)) return answer(await detailOf(context, before))
  await orTaken(() => organizations.updateOrganization(tx, before.organizationId, facts))
  const after = (await organizations.findOrganization(tx, before.organizationId))!
  for (const eventKey of organizationEvents(before, after)) await tell(context, eventKey, after)
  const told = { ...targetOf(after), before: itemOf(context, before), after: itemOf(context, after) }
  await recordAudit(context, { action: actionOf(before, after), ...told })
  return answer(await detailOf(context, after))
}

function actionOf(before: OrganizationFacts, after: OrganizationFacts): string {
  if (before.status !== after.status) {
    return after.status === 'active' ? 'organization.reactivated' : 'organization.deactivated'
  }
  const isSameDomain = before.customDomain === after.customDomain
  const becameVerified = before.customDomainVerifiedAt === null && after.customDomainVerifiedAt !== null
  return isSameDomain && becameVerified ? 'organization.domain_verified' : 'organization.updated'
}

/** Slugs and verified domains are unique over all accounts: they are host names. */
export async function orTaken(write: () => Promise<void>): Promise<void> {
  try {
    await write()
  } catch (error) {
    const constraint = brokenConstraint(error, 'unique')
    if (constraint === 'organization_slug_key') throw fail('slug_taken', { field: 'slug', cause: error })
    if (constraint === 'organization_verified_domain_key') {
      throw fail('domain_taken', { field: 'customDomain', cause: error })
    }
    throw error
  }
}

export async function tell(
  { tx, now, caller }: PlatformContext,
  eventKey: 'organization.created' | 'organization.updated' | 'organization.deactivated',
  row: organizations.OrganizationRow,
): Promise<void> {
  const { organizationId, appId, name, slug, billingEmail, status, customDomain, customDomainVerifiedAt } = row
  const data = { organizationId, name, slug, billingEmail, status, customDomain, customDomainVerifiedAt }
  await emitLifecycle({ tx, now, actor: caller.actor }, { eventKey, saasAppId: appId, data })
}

export function targetOf({ organizationId, appId }: organizations.OrganizationRow) {
  return { target: { type: 'organization', id: organizationId }, saasAppId: appId, organizationId }
}

/** The record that verifies the domain; null where there is none to verify. */
export function pendingRecordOf(
  { domains, caller }: PlatformContext,
  { organizationId, customDomain, verifiedDomain }: organizations.OrganizationRow,
): DomainRecord | null {
  if (customDomain === null || verifiedDomain !== null) return null
  return domains.recordOf({ accountId: caller.accountId, organizationId, domain: customDomain })
}

export function itemOf(context: PlatformContext, row: organizations.OrganizationRow) {
  const { organizationId, appId, name, slug, billingEmail, status, revision, createdAt } = row
  const { customDomain, customDomainVerifiedAt } = row
  const tenantOrigin = context.links.tenantOrigin(row)
  const identity = { organizationId, saasAppId: appId, name, slug, tenantOrigin }
  const domain = { customDomain, customDomainVerifiedAt, domainVerification: pendingRecordOf(context, row) }
  return { ...identity, billingEmail, status, ...domain, revision, createdAt }
}

export async function detailOf(context: PlatformContext, row: organizations.OrganizationRow) {
  const { tx, now } = context
  const { organizationId } = row
  const [dataRoles, locations, counts] = await Promise.all([
    organizations.findDataRoles(tx, organizationId),
    organizations.findLocations(tx, organizationId),
    organizations.countPeople(tx, organizationId, now),
  ])
  return { ...itemOf(context, row), dataRoles, locations, counts }
}

export const etag = {
  ETag: { description: 'The revision, quoted. Send it as If-Match to guard a change.', example: '"1"' },
}

export function answer(body: { readonly revision: number }): Reply {
  return { status: 200, body, headers: { etag: `"${body.revision}"` } }
}
