import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

/**
 * One process serves the API host and the tenant hosts (contract 1). `<slug>.<base host>` is a tenant host; with a base
 * URL that is an address, as in the default, tenants are `<slug>.localhost`. A domain that an organisation has made its
 * own is one too. Any other name (a container's, a proxy's, an address) is the API host: people reach the service by
 * names that it cannot know.
 */
export type HostKind = 'api' | 'tenant' | 'malformed'

/** Decides at once, except for names that may be an organisation's own: those have to be looked up now and then. */
export type HostCheck = (request: IncomingMessage) => HostKind | Promise<HostKind>

/**
 * @param isTenantDomain does this name, in lower case and without a port, belong to an organisation? Asked for names with
 *   a dot that are neither an address nor below the base host.
 */
export function createHostCheck(
  baseUrl: string,
  isTenantDomain: (name: string) => boolean | Promise<boolean> = () => false,
): HostCheck {
  const { hostname } = new URL(baseUrl)
  const base = isIP(hostname) || hostname.startsWith('[') ? 'localhost' : hostname.toLowerCase()
  // Nearly every request carries the same Host, so the last answer that cannot change is remembered.
  let last: string | undefined
  let lastKind: HostKind = 'api'
  return (request) => {
    const host = request.headers.host
    if (host === undefined) return request.httpVersion === '1.0' ? 'api' : 'malformed'
    if (host === last) return lastKind
    const kind = kindOf(host, base)
    if (kind !== 'unknown') {
      last = host
      lastKind = kind
      return kind
    }
    const isTenant = isTenantDomain(hostName(host))
    return typeof isTenant === 'boolean' ? tenantOrApi(isTenant) : isTenant.then(tenantOrApi)
  }
}

function tenantOrApi(isTenant: boolean): HostKind {
  return isTenant ? 'tenant' : 'api'
}

/** The name in a Host header: lower case, without the port and without the dot of the root. */
export function hostName(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
}

const slugShape = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/
/** Two labels or more, of which the last is no number: not an address, and not the name of a container. */
const domainShape = /^(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])$/

function kindOf(host: string, base: string): HostKind | 'unknown' {
  // Two Host headers arrive joined by a comma (`joinDuplicateHeaders`); RFC 9112 3.2 demands a 400.
  if (host === '' || /[\s,/@]/.test(host)) return 'malformed'
  const name = hostName(host)
  if (name.endsWith(`.${base}`)) return slugShape.test(name.slice(0, -base.length - 1)) ? 'tenant' : 'api'
  return name !== base && domainShape.test(name) && !name.endsWith('.localhost') ? 'unknown' : 'api'
}
