import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'

/** Tells the address of the client that sent a request; empty where its connection is gone already. */
export type ClientAddress = (request: IncomingMessage) => string

/**
 * Who connects is the client, unless it is a proxy that the operator trusts: that one has written into `X-Forwarded-For`
 * who connected to it, at the right end. Read from there, the first address that is no trusted proxy is the client; what
 * stands further left is what the client says, and anybody can say anything. From everybody else the header is ignored.
 *
 * @param trusted addresses and networks in CIDR notation, as `PORTICO_TRUSTED_PROXIES` has them
 * @param onIgnored told once, of the first peer whose header was ignored: it may be a proxy that nobody has named, and then
 *   all of its clients count as one
 */
export function createClientAddress(
  trusted: readonly string[],
  onIgnored: (peer: string) => void = () => {},
): ClientAddress {
  const proxies = proxyList(trusted)
  let told = false
  const isTrusted = (address: string) => proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  return ({ socket, headers }) => {
    let address = plainAddress(socket.remoteAddress ?? '')
    const forwarded = headers['x-forwarded-for']
    if (forwarded === undefined || isIP(address) === 0) return address
    if (!isTrusted(address)) {
      if (!told) onIgnored(address)
      told = true
      return address
    }
    // Several headers arrive joined by commas.
    const hops = String(forwarded).split(',')
    while (isIP(address) !== 0 && isTrusted(address)) {
      const next = hopAddress(hops.pop() ?? '')
      // At the end of the list, or at something that is no address (`unknown`), the last proxy is as far as one can see.
      if (isIP(next) === 0) break
      address = next
    }
    return address
  }
}

function proxyList(trusted: readonly string[]): BlockList {
  const list = new BlockList()
  for (const entry of trusted) {
    const [address = '', prefix] = entry.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return list
}

/** `203.0.113.7`, `203.0.113.7:51234`, `[2001:db8::1]:51234`: some proxies add the port. */
function hopAddress(hop: string): string {
  const text = hop.trim()
  const [, bracketed, withPort] = /^\[([^\]]*)\](?::\d+)?$|^([^:]+):\d+$/.exec(text) ?? []
  return plainAddress(bracketed ?? withPort ?? text)
}

/** Without the zone of a link-local address; and what came over IPv4 to a socket for both families is IPv4. */
function plainAddress(address: string): string {
  // Nearly all are, and every request passes here.
  if (!address.includes(':')) return address
  return address.replace(/%.*$/s, '').replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}
