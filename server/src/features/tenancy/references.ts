import { fail } from '../../kernel/errors.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { findDataRoles, findLocations } from './organization-store.ts'
import { type Picked, pick } from './rules.ts'

/** DataRoles and locations as a request names them. */
interface Asked {
  readonly dataRoleIds?: readonly string[]
  readonly dataRoleKeys?: readonly string[]
  readonly locations?: 'all' | readonly string[]
}

/**
 * The ids that a request means; undefined for what it does not name. Throws `reference_not_found` with every field that
 * names something which the organization does not have.
 */
export async function resolveReferences(
  tx: Tx,
  organizationId: string,
  { dataRoleIds, dataRoleKeys, locations }: Asked,
): Promise<{ readonly dataRoleIds: string[] | undefined; readonly locations: 'all' | string[] | undefined }> {
  if (dataRoleIds && dataRoleKeys) {
    throw fail('validation_failed', { field: 'dataRoleKeys', message: 'Send either dataRoleIds or dataRoleKeys.' })
  }
  const [roles, places] = await Promise.all([findDataRoles(tx, organizationId), findLocations(tx, organizationId)])
  const picked: Picked[] = []
  const among = (field: string, asked: readonly string[], known: readonly (readonly [string, string])[]) => {
    const found = pick(field, asked, new Map(known))
    picked.push(found)
    return found.ids
  }
  const byId = roles.map(({ dataRoleId }) => [dataRoleId, dataRoleId] as const)
  const byKey = roles.map(({ dataRoleId, key }) => [key, dataRoleId] as const)
  const placesById = places.map(({ locationId }) => [locationId, locationId] as const)
  const resolved = {
    dataRoleIds:
      dataRoleIds === undefined
        ? dataRoleKeys && among('dataRoleKeys', dataRoleKeys, byKey)
        : among('dataRoleIds', dataRoleIds, byId),
    locations: locations === undefined || locations === 'all' ? locations : among('locations', locations, placesById),
  }
  const details = picked.flatMap(({ problems }) => problems)
  if (details.length > 0) throw fail('reference_not_found', { details })
  return resolved
}
