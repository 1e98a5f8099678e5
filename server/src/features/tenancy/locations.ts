import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Operation } from '../../kernel/operation.ts'
import { recordAudit } from '../../shared/audit.ts'
import { type PlatformContext, platformOperation } from '../../shared/platform-context.ts'
import { Location, LocationBody, LocationParams } from './organization-schema.ts'
import { findLocations, lockOrganization, renameLocation } from './organization-store.ts'
import { insertLocation } from './store.ts'

/** Locations are read whole, with the organization and with every assignment. */
const locationsMax = 1000

const putLocation = platformOperation({
  area: 'Organizations',
  credentials: ['bld'],
  scope: 'organizations.manage',
  rateClass: 'write',
  transaction: 'write',
  mcp: false,
  id: 'developerPlatformLocationsPut',
  method: 'PUT',
  path: '/v1/platform/organizations/{organizationId}/locations/{locationKey}',
  summary: 'Add a location to a customer organization, or rename it.',
  description: `Answers 201 when it is new, else 200. An organization has at most ${locationsMax}.`,
  params: LocationParams,
  body: LocationBody,
  responses: { 200: Location, 201: Location },
  errors: ['organization_not_found', 'location_limit_reached'],

  async handler(context, { params, body }) {
    const { tx, now } = context
    const { organizationId, appId } = await lockOrganization(tx, params.organizationId)
    const known = await findLocations(tx, organizationId)
    const before = known.find(({ locationKey }) => locationKey === params.locationKey)
    if (before?.name === body.name) return { status: 200, body: before }
    if (!before && known.length >= locationsMax) throw fail('location_limit_reached')
    const locationId = before?.locationId ?? uuidv7(now)
    const after = { locationId, locationKey: params.locationKey, name: body.name }
    if (before) await renameLocation(tx, organizationId, after)
    else await insertLocation(tx, { organizationId, ...after })
    const target = { type: 'location', id: locationId }
    const action = before ? 'location.updated' : 'location.created'
    await recordAudit(context, { action, target, saasAppId: appId, organizationId, before: before ?? null, after })
    return { status: before ? 200 : 201, body: after }
  },
})

export const locationOperations: readonly Operation<PlatformContext>[] = [putLocation]
