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
 */
export function createClientAddress(trusted: readonly string[]): ClientAddress {
  if (trusted.length === 0) return ({ socket }) => plainAddress(socket.remoteAddress ?? '')
  const proxies = proxyList(trusted)
  const isTrusted = (address: string) => proxies.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  return ({ socket, headers }) => {
    let address = plainAddress(socket.remoteAddress ?? '')
    // Several headers arrive joined by commas.
    const hops = String(headers['x-forwarded-for'] ?? '').split(',')
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
