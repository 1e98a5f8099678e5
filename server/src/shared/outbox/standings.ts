import sql from 'sql-template-tag'
import type { Clock } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { accessProfile, withinScopes } from '../access/permissions.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import type { Database } from '../database/database.ts'
import { standingIdentity } from '../identity/credential-identity.ts'
import type { Standing } from './disclosure.ts'

/** The credential of a subscription, and where it belongs. */
export interface Holder {
  readonly keyId: string
  readonly organizationId: string
  readonly appId: string
}

export interface Standings {
  /**
   * What each credential may know at this moment, by `holderKey`. One that was revoked, has expired or is another
   * organisation's is absent: it may know nothing.
   */
  of(holders: readonly Holder[]): Promise<ReadonlyMap<string, Standing>>
}

/** A subscription that names a credential of another organisation stands for nothing. */
export function holderKey({ keyId, organizationId }: Holder): string {
  return `${organizationId} ${keyId}`
}

const rememberedMax = 10_000

/** What a credential may know, read in a transaction that is bound to its organisation. */
export async function standingOf(
  tx: Tx,
  keyId: string,
  { catalogue, clock }: { readonly catalogue: Catalogue; readonly clock: Clock },
): Promise<Standing | undefined> {
  const identity = await standingIdentity(tx, { keyId, clock })
  if (!identity) return undefined
  const { caller, refusal } = identity
  const profile = withinScopes(accessProfile(await catalogue.modelFor(tx, caller), caller), caller)
  return { caller, profile, active: refusal === null }
}

/** Remembers what it read, and holds it against the epochs each time: two numbers, in one query for all. */
export function createStandings(parts: {
  readonly database: Pick<Database, 'as' | 'inOrganization'>
  readonly catalogue: Catalogue
  readonly clock: Clock
}): Standings {
  const { database, catalogue, clock } = parts
  const remembered = new Map<string, Standing>()

  async function read(holder: Holder): Promise<Standing | undefined> {
    const { keyId, organizationId } = holder
    const key = holderKey(holder)
    const standing = await database.inOrganization(organizationId, (tx) => standingOf(tx, keyId, { catalogue, clock }))
    if (standing) {
      if (remembered.size >= rememberedMax) remembered.delete(remembered.keys().next().value!)
      remembered.set(key, standing)
    } else remembered.delete(key)
    return standing
  }

  return {
    async of(holders) {
      const scopeIds = [...new Set(holders.flatMap(({ organizationId, appId }) => [organizationId, appId]))]
      const rows = await database.as('portico_app', (tx) =>
        tx.rows<{ scopeId: string; value: unknown }>(
          sql`SELECT scope_id AS "scopeId", value FROM portico.epoch WHERE scope_id = ANY (${scopeIds}::uuid[])`,
        ),
      )
      const epochs = new Map(rows.map(({ scopeId, value }) => [scopeId, String(value)]))
      const found = new Map<string, Standing>()
      for (const holder of holders) {
        const { organizationId, appId } = holder
        const key = holderKey(holder)
        if (found.has(key)) continue
        const known = remembered.get(key)
        const holds =
          known !== undefined &&
          known.caller.epochs.organization === epochs.get(organizationId) &&
          known.caller.epochs.application === epochs.get(appId) &&
          (known.caller.expiresAt === null || Date.parse(known.caller.expiresAt) > clock.now())
        const standing = holds ? known : await read(holder)
        if (standing) found.set(key, standing)
      }
      return found
    },
  }
}
