import { createHmac } from 'node:crypto'
import { Resolver } from 'node:dns/promises'
import { fail } from '../kernel/errors.ts'
import { derive } from './keys.ts'

/** Which organisation asks for which domain. */
export interface DomainClaim {
  readonly accountId: string
  readonly organizationId: string
  /** Lower case, in ASCII. */
  readonly domain: string
}

/** A TXT record that only those can publish who hold the domain. */
export interface DomainRecord {
  readonly recordName: string
  readonly recordValue: string
}

/** Finds out whether an organisation holds the domain that it asks for. */
export interface DomainOwnership {
  /**
   * The record that shows it. Bound to account, organisation and domain, so that one organisation cannot use what was
   * published for another, and the same at any time on every process. No secret: everybody can read it in the DNS.
   */
  recordOf(claim: DomainClaim): DomainRecord
  /** Does the name count without a record? Only in development, and only of names that nobody can hold (RFC 6761). */
  needsNoRecord(domain: string): boolean
  /** The values of the TXT records of a name, none where there is no such name. Throws `dns_unavailable`. */
  lookUp(recordName: string): Promise<string[]>
}

const timeoutMs = 2000
const tries = 2
/** For all tries at all servers together. */
const lookUpWithinMs = 10_000

/** What name servers say of a name that is not there, or has no such record. Anything else is no answer. */
const absent = new Set(['ENOTFOUND', 'ENODATA'])
const reservedZones = /\.(test|example)$/

export function createDomainOwnership(options: {
  readonly pepper: Uint8Array
  /** `ip` or `ip:port` each; none: those of the system. */
  readonly dnsServers: readonly string[]
  readonly acceptReservedDomains: boolean
}): DomainOwnership {
  const key = derive(options.pepper, 'domain verification')
  return {
    recordOf({ accountId, organizationId, domain }) {
      const claim = JSON.stringify([accountId, organizationId, domain])
      const token = createHmac('sha256', key).update(claim).digest('base64url')
      return { recordName: `_portico.${domain}`, recordValue: `portico-verification=${token}` }
    },

    needsNoRecord: (domain) => options.acceptReservedDomains && reservedZones.test(domain),

    async lookUp(recordName) {
      // A new one each time: it reads the system's servers as they are now, and remembers no answer and no outage.
      const resolver = new Resolver({ timeout: timeoutMs, maxTimeout: timeoutMs, tries })
      if (options.dnsServers.length > 0) resolver.setServers(options.dnsServers)
      const late = setTimeout(() => resolver.cancel(), lookUpWithinMs)
      try {
        // With the dot of the root: no search list of this machine is tried.
        const records = await resolver.resolveTxt(`${recordName}.`)
        return records.map((pieces) => pieces.join(''))
      } catch (error) {
        if (absent.has((error as NodeJS.ErrnoException).code ?? '')) return []
        throw fail('dns_unavailable', { cause: error })
      } finally {
        clearTimeout(late)
      }
    },
  }
}
