import sql from 'sql-template-tag'
import type { Clock } from '../kernel/clock.ts'
import type { Database } from './database/database.ts'

/** How long an answer is good: so long may it take until a domain that was verified or taken away is served as what it is. */
export const domainKeptMs = 10_000
/** Bounded: whoever sends invented names costs look-ups, not memory. */
const keptMax = 10_000

interface Kept {
  readonly isTenant: boolean
  readonly untilMs: number
}

/**
 * Says which names are verified domains of organisations. Only where a request belongs is decided by it: who may do what there is
 * asked of the database each time. Rejects with `database_unavailable` where it is.
 */
export function createTenantDomains({ database, clock }: { readonly database: Database; readonly clock: Clock }) {
  const kept = new Map<string, Kept>()
  const asking = new Map<string, Promise<boolean>>()

  async function ask(name: string): Promise<boolean> {
    try {
      const rows = await database.as('portico_app', (tx) =>
        tx.rows(sql`SELECT FROM portico.find_organization_of_host(NULL, ${name})`),
      )
      const isTenant = rows.length > 0
      if (kept.size >= keptMax) kept.delete(kept.keys().next().value!)
      // Put at the end again: what is asked for all the time is not what goes first.
      kept.delete(name)
      kept.set(name, { isTenant, untilMs: clock.now() + domainKeptMs })
      return isTenant
    } finally {
      asking.delete(name)
    }
  }

  return {
    /** @param name a host name in lower case, without a port */
    isTenantDomain(name: string): boolean | Promise<boolean> {
      const known = kept.get(name)
      if (known && clock.now() < known.untilMs) return known.isTenant
      const asked = asking.get(name) ?? ask(name)
      asking.set(name, asked)
      return asked
    },
  }
}
