import sql from 'sql-template-tag'
import Type from 'typebox'
import { type ErrorDetail, fail } from '../../kernel/errors.ts'
import { Uuid, uuidPattern } from '../../kernel/schemas.ts'
import type { Tx } from '../../kernel/transaction.ts'

/** DataRoles and locations as requests name them, for users, invitations and the envelopes of credentials. */

/** What builders call things by, in templates and in keys. */
export const keyPattern = '^[a-z][a-z0-9_-]{0,49}$'

const dataRolesMax = 100

export const DataRoleIds = Type.Array(Uuid('A DataRole of the organization.', '0199a1b2-0000-7000-8000-000000000003'), {
  maxItems: dataRolesMax,
  description: 'Every DataRole that it is to have.',
})

/** DataRoles by the key of their template, for those who do not know the ids. */
export const DataRoleKeys = Type.Array(
  Type.String({ pattern: keyPattern, description: 'The key of a DataRole template.', examples: ['sales'] }),
  {
    maxItems: dataRolesMax,
    description: 'The same by the keys of their templates. Send one or the other.',
    examples: [['sales']],
  },
)

export const Locations = Type.Union(
  [
    Type.Enum(['all'], { description: 'Every location, also those to come.', examples: ['all'] }),
    Type.Array(
      Type.String({
        pattern: `${uuidPattern}|${keyPattern}`,
        description: 'A location of the organization, by id or by key.',
        examples: ['north'],
      }),
      { maxItems: 1000, description: 'These locations, by id or by key.', examples: [['north']] },
    ),
  ],
  { description: 'Where it works: `all`, or a list of the ids or keys of locations.', examples: ['all'] },
)

interface Asked {
  readonly dataRoleIds?: readonly string[]
  readonly dataRoleKeys?: readonly string[]
  readonly locations?: 'all' | readonly string[]
}

export interface Resolved {
  readonly dataRoleIds: string[] | undefined
  readonly locations: 'all' | string[] | undefined
}

/**
 * The ids that a request means; undefined for what it does not name. `at` is where it names them, for instance
 * `envelope.`. Throws `reference_not_found` with every field that names something which the organization does not have,
 * and `validation_failed` where roles are named twice.
 */
export async function resolveReferences(
  tx: Tx,
  organizationId: string,
  { dataRoleIds, dataRoleKeys, locations }: Asked,
  at = '',
): Promise<Resolved> {
  if (dataRoleIds && dataRoleKeys) {
    throw fail('validation_failed', { field: `${at}dataRoleKeys`, message: 'Send either dataRoleIds or dataRoleKeys.' })
  }
  const [roles, places] = await Promise.all([findRoles(tx, organizationId), findPlaces(tx, organizationId)])
  const problems: ErrorDetail[] = []
  const among = (name: string, asked: readonly string[], known: Iterable<readonly [string, string]>) => {
    const picked = pick(`${at}${name}`, asked, new Map(known))
    problems.push(...picked.problems)
    return picked.ids
  }
  const byId = (rows: readonly Known[]) => rows.map(({ id }) => [id, id] as const)
  const byKey = (rows: readonly Known[]) => rows.map(({ id, key }) => [key, id] as const)
  const resolved = {
    dataRoleIds:
      dataRoleIds === undefined
        ? dataRoleKeys && among('dataRoleKeys', dataRoleKeys, byKey(roles))
        : among('dataRoleIds', dataRoleIds, byId(roles)),
    locations:
      locations === undefined || locations === 'all'
        ? locations
        : // A key may look like an id; then the id counts.
          among('locations', locations, [...byKey(places), ...byId(places)]),
  }
  if (problems.length > 0) throw fail('reference_not_found', { details: problems })
  return resolved
}

/** Finds what was asked for among what the organization has. Twice the same is once. */
function pick(
  field: string,
  asked: readonly string[],
  known: ReadonlyMap<string, string>,
): { readonly ids: string[]; readonly problems: ErrorDetail[] } {
  const ids = new Set<string>()
  const problems: ErrorDetail[] = []
  for (const [index, one] of asked.entries()) {
    const id = known.get(one.toLowerCase())
    if (id === undefined) {
      const message = 'There is no such thing in this organization.'
      problems.push({ field: `${field}[${index}]`, code: 'reference_not_found', message })
    } else ids.add(id)
  }
  return { ids: [...ids], problems }
}

interface Known {
  readonly id: string
  readonly key: string
}

async function findRoles(tx: Tx, organizationId: string): Promise<Known[]> {
  return tx.rows(sql`SELECT data_role_id AS id, template_key AS key FROM portico.data_role
    WHERE organization_id = ${organizationId}`)
}

async function findPlaces(tx: Tx, organizationId: string): Promise<Known[]> {
  return tx.rows(sql`SELECT location_id AS id, location_key AS key FROM portico.location
    WHERE organization_id = ${organizationId}`)
}
