import { isIP } from 'node:net'
import { isLoopbackAddress, isPublicAddress } from './addresses.ts'

/** A destination that may be tried, or why not, in a sentence for whoever wrote it. */
export type Destination =
  | { readonly url: URL; readonly problem: null }
  | { readonly url: null; readonly problem: 'malformed' | 'not_https' | 'blocked'; readonly sentence: string }

const urlLengthMax = 2048

/** Names of machines nearby, which no public name server answers for (RFC 6761, 6762, 7686, 8375, and `.internal`). */
const privateZones = /(^|\.)(localhost|localdomain|local|internal|home\.arpa|onion|invalid)$/

/**
 * Checks what can be known of a URL without asking a name server, so that it can be refused when it is saved. What its
 * name resolves to is checked when the service connects. Any port is allowed: what answers there has to present a
 * certificate for the name, so it cannot be talked into another protocol. `allowLoopback`: http and addresses of this machine
 * are allowed, for development. Save and show `url.href`: the one spelling that was checked.
 */
export function checkDestination(text: string, { allowLoopback }: { readonly allowLoopback: boolean }): Destination {
  const url = text.length <= urlLengthMax ? URL.parse(text) : null
  if (!url) return refuse('malformed', `The URL must be absolute and have at most ${urlLengthMax} characters.`)
  if (url.protocol !== 'https:' && !(allowLoopback && url.protocol === 'http:')) {
    return refuse('not_https', 'The URL must start with https://.')
  }
  if (url.username !== '' || url.password !== '') {
    return refuse('blocked', 'The URL must not carry a user name or a password.')
  }
  const name = hostOf(url)
  if (name === '' || name.split('.').includes('') || url.port === '0') {
    return refuse('malformed', 'The URL must name a host and a port that exist.')
  }
  if (!mayBePublic(name) && !(allowLoopback && mayBeLoopback(name))) {
    return refuse('blocked', 'The URL must lead to a public address on the internet.')
  }
  return { url, problem: null }
}

/** The name or address of a URL: without the brackets of IPv6, and without the dot of the root. */
export function hostOf({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** By now the URL parser has written every spelling of an IPv4 address as four decimal numbers. */
function mayBePublic(host: string): boolean {
  return isIP(host) === 0 ? host.includes('.') && !privateZones.test(host) : isPublicAddress(host)
}

function mayBeLoopback(host: string): boolean {
  return isIP(host) === 0 ? /(^|\.)localhost$/.test(host) : isLoopbackAddress(host)
}

function refuse(problem: 'malformed' | 'not_https' | 'blocked', sentence: string): Destination {
  return { url: null, problem, sentence }
}
