import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Operation } from '../../kernel/operation.ts'
import { recordAudit } from '../../shared/audit.ts'
import { pageOf } from '../../shared/cursors.ts'
import { type PlatformContext, platformOperation } from '../../shared/platform-context.ts'
import { requireRevision } from '../../shared/records/input.ts'
import { domainOf, verifiedAtFirst } from './domains.ts'
import { invite } from './inviting.ts'
import { answer, changeOrganization, detailOf, etag, itemOf, orTaken, targetOf, tell } from './organization-changes.ts'
import * as schema from './organization-schema.ts'
import * as organizations from './organization-store.ts'
import { reservedSlugs } from './rules.ts'
import { OrganizationParams } from './schema.ts'
import * as store from './store.ts'

const base = '/v1/platform/applications/{saasAppId}/organizations'
const one = '/v1/platform/organizations/{organizationId}'
const common = { area: 'Organizations', credentials: ['bld'], mcp: false } as const
const reading = { ...common, scope: 'organizations.read', rateClass: 'read', transaction: 'read' } as const
const writing = { ...common, scope: 'organizations.manage', rateClass: 'write', transaction: 'write' } as const

const list = platformOperation({
  ...reading,
  id: 'developerPlatformOrganizationsList',
  method: 'GET',
  path: base,
  summary: 'List the customer organizations of an application, by name.',
  description: '`search` looks into names and slugs.',
  params: schema.ApplicationParams,
  query: schema.OrganizationQuery,
  responses: { 200: schema.OrganizationPage },
  errors: ['cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler(context, { params, query }) {
    const { tx, caller, cursors } = context
    const { status, search } = query
    const appId = params.saasAppId.toLowerCase()
    const wanted = { accountId: caller.accountId, appId, status, search }
    const page = await pageOf(
      cursors,
      ['organizations', wanted],
      query,
      (after, limit) => organizations.findOrganizations(tx, wanted, after, limit),
      ({ sortName, organizationId }) => [sortName, organizationId],
    )
    const items = page.rows.map((row) => itemOf(context, row))
    return { status: 200, body: { items, nextCursor: page.nextCursor } }
  },
})

const create = platformOperation({
  ...writing,
  id: 'developerPlatformOrganizationsCreate',
  method: 'POST',
  path: base,
  summary: 'Provision a customer organization.',
  description:
    'It gets a DataRole for each DataRole template and a location for each location template of the application. `owner` is invited by mail; until somebody has accepted, the organization has no owner. `customDomain` is served once it is verified.',
  params: schema.ApplicationParams,
  body: schema.OrganizationCreateBody,
  responses: { 201: schema.Organization },
  responseHeaders: {
    ...etag,
    Location: { description: 'The address of the organization.', example: '/v1/platform/organizations/…' },
  },
  errors: ['application_archived', 'slug_reserved', 'slug_taken', 'domain_taken', 'mail_limit_reached'],

  async handler(context, { params, body }) {
    const { tx, caller, now } = context
    const application = await organizations.lockApplication(tx, caller.accountId, params.saasAppId)
    if (!application) throw fail('application_not_found')
    if (application.archived) throw fail('application_archived', { message: 'The application is archived.' })
    if (reservedSlugs.has(body.slug)) throw fail('slug_reserved', { field: 'slug' })
    const customDomain = domainOf(context, body.customDomain ?? null)
    const organization = {
      organizationId: uuidv7(now),
      appId: params.saasAppId.toLowerCase(),
      name: body.name,
      slug: body.slug,
      billingEmail: body.billingEmail ?? null,
      customDomain,
      customDomainVerifiedAt: verifiedAtFirst(context, customDomain),
    }
    await orTaken(() => store.insertBareOrganization(tx, organization))
    await store.bindOrganization(tx, caller.accountId, organization.organizationId)
    await store.insertDataRoles(tx, organization)
    await insertLocations(context, organization, body.locations ?? [])
    const row = (await organizations.findOrganization(tx, organization.organizationId))!
    await tell(context, 'organization.created', row)
    const made = await detailOf(context, row)
    await recordAudit(context, { action: 'organization.created', ...targetOf(row), before: null, after: made })
    if (body.owner) {
      const rights = { userTypeKey: 'owner', isOwner: true, dataRoleIds: [], locations: 'all' } as const
      await invite(context, row, { ...body.owner, ...rights })
    }
    return { ...answer(await detailOf(context, row)), status: 201, headers: created(row) }
  },
})

/** Those of the templates, and those that were asked for; of two with one key the latter. */
async function insertLocations(
  { tx, now }: PlatformContext,
  { organizationId, appId }: { readonly organizationId: string; readonly appId: string },
  asked: readonly { readonly locationKey: string; readonly name: string }[],
): Promise<void> {
  const names = new Map((await organizations.findLocationTemplates(tx, appId)).map(({ key, label }) => [key, label]))
  const seen = new Set<string>()
  for (const [index, { locationKey, name }] of asked.entries()) {
    if (seen.has(locationKey)) {
      const field = `locations[${index}].locationKey`
      throw fail('validation_failed', { field, message: 'Another location in the request has this key.' })
    }
    seen.add(locationKey)
    names.set(locationKey, name)
  }
  for (const [locationKey, name] of names) {
    await store.insertLocation(tx, { organizationId, locationId: uuidv7(now), locationKey, name })
  }
}

const get = platformOperation({
  ...reading,
  id: 'developerPlatformOrganizationsGet',
  method: 'GET',
  path: one,
  summary: 'Read a customer organization, with its DataRoles, locations and numbers of users.',
  description: 'The revision counts changes of the organization itself, not of its users, roles and locations.',
  params: OrganizationParams,
  responses: { 200: schema.Organization },
  responseHeaders: etag,
  errors: ['organization_not_found'],

  async handler(context, { params }) {
    const row = await organizations.findOrganization(context.tx, params.organizationId)
    if (!row) throw fail('organization_not_found')
    return answer(await detailOf(context, row))
  },
})

const update = platformOperation({
  ...writing,
  id: 'developerPlatformOrganizationsUpdate',
  method: 'PATCH',
  path: one,
  summary: 'Change name, billing email, status or domain of a customer organization.',
  description:
    'What the body does not name stays, and a change that changes nothing keeps the revision. Another `customDomain` is served once it is verified, and the old one no longer. When the status becomes `inactive`, every credential and session of the organization is refused from the next request on; with `active` they hold again.',
  params: OrganizationParams,
  body: schema.OrganizationUpdateBody,
  ifMatch: true,
  responses: { 200: schema.Organization },
  responseHeaders: etag,
  errors: ['organization_not_found', 'revision_conflict', 'domain_taken'],

  async handler(context, { params, body, ifMatch }) {
    const before = await organizations.lockOrganization(context.tx, params.organizationId)
    requireRevision(before.revision, body.expectedRevision, ifMatch)
    const { name = before.name, billingEmail = before.billingEmail, status = before.status } = body
    const { customDomain: asked } = body
    const customDomain = asked === undefined ? before.customDomain : domainOf(context, asked)
    const customDomainVerifiedAt =
      customDomain === before.customDomain ? before.customDomainVerifiedAt : verifiedAtFirst(context, customDomain)
    return changeOrganization(context, before, { name, billingEmail, status, customDomain, customDomainVerifiedAt })
  },
})

function created({ organizationId, revision }: organizations.OrganizationRow) {
  return { etag: `"${revision}"`, location: `/v1/platform/organizations/${organizationId}` }
}

export const organizationOperations: readonly Operation<PlatformContext>[] = [list, create, get, update]
