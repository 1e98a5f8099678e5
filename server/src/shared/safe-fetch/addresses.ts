import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/**
 * Ranges of which more than their name has to be known. Everything else is public only where ipaddr.js, which knows the
 * special-purpose registries of the IANA (RFC 6890), calls it unicast: mapped addresses, 6to4 and Teredo are not.
 */
const globalUnicast = ipaddr.parse('2000::') as ipaddr.IPv6
const nat64 = ipaddr.parse('64:ff9b::') as ipaddr.IPv6

/** Public by number and still not the internet: the platform endpoint of every virtual machine in Azure. */
const platformEndpoints = new Set(['168.63.129.16'])

/**
 * May the service connect to this address on behalf of a tenant? `address` as name servers and sockets write it, without
 * brackets; anything that is no address is not public. Of the well-known prefix of NAT64 (RFC 6052) the IPv4 address
 * inside is judged, since hosts with IPv6 alone reach everything through it; its local prefix (RFC 8215) is private.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false
  const parsed = ipaddr.parse(address)
  if (parsed.kind() === 'ipv4') return parsed.range() === 'unicast' && !platformEndpoints.has(parsed.toString())
  const v6 = parsed as ipaddr.IPv6
  if (v6.zoneId) return false
  if (v6.match(nat64, 96)) return isPublicAddress(v6.toByteArray().slice(12).join('.'))
  // Nothing outside 2000::/3 has been assigned for the internet (RFC 4291), so new special ranges are refused unnamed.
  return v6.match(globalUnicast, 3) && v6.range() === 'unicast'
}

/** Is it an address of this machine, which nothing but this machine answers at? */
export function isLoopbackAddress(address: string): boolean {
  return isIP(address) !== 0 && ipaddr.parse(address).range() === 'loopback'
}
