import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { FetchFailure } from './categories.ts'

const queryTimeoutMs = 2000
const tries = 2
/** More are not needed to reach anybody; all that are used are checked. */
const addressesMax = 8

/**
 * The addresses of a host, IPv4 first; an address is its own. Throws `dns_error`, also where `withinMs` pass.
 *
 * Name servers are asked directly: `getaddrinfo` would wait on the four threads that Node has for files and hashing, where
 * a handful of receivers with a silent name server could stop everything. Hence the hosts file and search lists of this
 * machine have no say; `localhost` is loopback (RFC 6761). `servers`: `ip` or `ip:port` each; none: those of the system.
 */
export async function resolveAddresses(host: string, servers: readonly string[], withinMs: number): Promise<string[]> {
  if (isIP(host) !== 0) return [host]
  if (/(^|\.)localhost$/.test(host)) return ['127.0.0.1', '::1']
  // A new one each time: it reads the system's servers as they are now, and remembers no outage.
  const resolver = new Resolver({ timeout: queryTimeoutMs, maxTimeout: queryTimeoutMs, tries })
  if (servers.length > 0) resolver.setServers(servers)
  const late = setTimeout(() => resolver.cancel(), withinMs)
  try {
    const answers = await Promise.allSettled([resolver.resolve4(`${host}.`), resolver.resolve6(`${host}.`)])
    const addresses = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    if (addresses.length === 0) throw new FetchFailure('dns_error')
    return addresses.slice(0, addressesMax)
  } finally {
    clearTimeout(late)
  }
}
