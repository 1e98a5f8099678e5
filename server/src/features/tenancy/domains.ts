import { fail } from '../../kernel/errors.ts'
import type { Operation } from '../../kernel/operation.ts'
import { type PlatformContext, platformOperation } from '../../shared/platform-context.ts'
import { answer, changeOrganization, detailOf, etag, pendingRecordOf } from './organization-changes.ts'
import { Organization } from './organization-schema.ts'
import { findOrganization, lockOrganization } from './organization-store.ts'
import { domainProblems, isHostOfService } from './rules.ts'
import { OrganizationParams } from './schema.ts'

/** A domain as it is kept. Throws `validation_failed` for the hosts of the service. */
export function domainOf({ links }: PlatformContext, asked: string | null): string | null {
  if (asked === null) return null
  const domain = asked.toLowerCase()
  const ofTenants = new URL(links.tenantOrigin({ slug: 'x', verifiedDomain: null })).hostname.replace(/^x\./, '')
  // Names below localhost are this machine, and never asked for as somebody's domain (surfaces/http/hosts.ts).
  if (isHostOfService(domain, [new URL(links.baseUrl).hostname, ofTenants, 'localhost'])) {
    throw fail('validation_failed', { field: 'customDomain', message: 'This is the host of the service, or below it.' })
  }
  return domain
}

/** Since when a domain counts that is asked for now: in development some do at once, all others have to be verified. */
export function verifiedAtFirst({ domains, now }: PlatformContext, domain: string | null): string | null {
  return domain !== null && domains.needsNoRecord(domain) ? new Date(now).toISOString() : null
}

const verify = platformOperation({
  id: 'developerPlatformDomainsVerify',
  method: 'POST',
  path: '/v1/platform/organizations/{organizationId}/domain:verify',
  area: 'Organizations',
  summary: 'Verify the domain of a customer organization by its TXT record in the DNS.',
  description:
    'Looks for the record that `domainVerification` of the organization names. From then on the domain is served, and nobody else can have it. A domain that is verified stays so until the organization gets another one; the record may go.',
  credentials: ['bld'],
  scope: 'organizations.manage',
  rateClass: 'write',
  transaction: 'own',
  mcp: false,
  params: OrganizationParams,
  responses: { 200: Organization },
  responseHeaders: etag,
  errors: ['organization_not_found', 'domain_not_verified', 'domain_taken', 'revision_conflict', 'dns_unavailable'],

  async handler(context, { params }) {
    const { organizationId } = params
    const { asked, verified } = await context.inTransaction('read', async (tx) => {
      const row = await findOrganization(tx, organizationId)
      if (!row) throw fail('organization_not_found')
      const isVerified = row.verifiedDomain !== null
      return { asked: row, verified: isVerified ? answer(await detailOf({ ...context, tx }, row)) : null }
    })
    if (verified) return verified
    const { customDomain } = asked
    if (customDomain === null) {
      const message = 'The organization has no domain to verify.'
      throw fail('domain_not_verified', { field: 'customDomain', message })
    }
    if (!context.domains.needsNoRecord(customDomain)) {
      const record = pendingRecordOf(context, asked)!
      const found = await context.domains.lookUp(record.recordName)
      if (!found.some((value) => value.trim() === record.recordValue)) {
        throw fail('domain_not_verified', { details: domainProblems(record, found) })
      }
    }
    return context.inTransaction('write', async (tx) => {
      const before = await lockOrganization(tx, organizationId)
      if (before.customDomain !== customDomain) {
        const message = 'The organization got another domain while this one was looked up.'
        throw fail('revision_conflict', { field: 'customDomain', message })
      }
      const customDomainVerifiedAt = before.customDomainVerifiedAt ?? new Date(context.now).toISOString()
      return changeOrganization({ ...context, tx }, before, { ...before, customDomainVerifiedAt })
    })
  },
})

export const domainOperations: readonly Operation<PlatformContext>[] = [verify]
