import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'

/**
 * One process serves the API host and the tenant hosts (contract 1). `<slug>.<base host>` is a tenant host; with a base
 * URL that is an address, as in the default, tenants are `<slug>.localhost`. Any other name (a container's, a proxy's, an
 * address) is the API host: people reach the service by names that it cannot know.
 */
export type HostKind = 'api' | 'tenant' | 'malformed'

export function createHostCheck(baseUrl: string): (request: IncomingMessage) => HostKind {
  const { hostname } = new URL(baseUrl)
  const suffix = `.${isIP(hostname) || hostname.startsWith('[') ? 'localhost' : hostname.toLowerCase()}`
  // Nearly every request carries the same Host, so the last answer is remembered.
  let last: string | undefined
  let lastKind: HostKind = 'api'
  return (request) => {
    const host = request.headers.host
    if (host === undefined) return request.httpVersion === '1.0' ? 'api' : 'malformed'
    if (host === last) return lastKind
    last = host
    lastKind = kindOf(host, suffix)
    return lastKind
  }
}

/** The name in a Host header: lower case, without the port and without the dot of the root. */
export function hostName(host: string): string {
  return host.toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '')
}

function kindOf(host: string, suffix: string): HostKind {
  // Two Host headers arrive joined by a comma (`joinDuplicateHeaders`); RFC 9112 3.2 demands a 400.
  if (host === '' || /[\s,/@]/.test(host)) return 'malformed'
  const name = hostName(host)
  if (!name.endsWith(suffix)) return 'api'
  const slug = name.slice(0, -suffix.length)
  return /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(slug) ? 'tenant' : 'api'
}
