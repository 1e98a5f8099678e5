import { isIP } from 'node:net'

/** How values of settings are read. Each throws an Error with words for people, which do not repeat the value. */

export function oneOf<const T extends string>(values: readonly T[], text: string): T {
  const value = values.find((one) => one === text)
  if (value === undefined) throw new Error(`must be one of ${values.join(', ')}`)
  return value
}

export function integer(text: string, minimum: number, maximum: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= minimum && value <= maximum)) throw new Error(`must be an integer from ${minimum} to ${maximum}`)
  return value
}

export function scale(text: string): number {
  if (!/^\d{1,6}(\.\d{1,6})?$/.test(text)) throw new Error('must be a number from 0')
  return Number(text)
}

/** An origin and nothing after it: paths are the service's own, and a slash at the end would be doubled in links. */
export function origin(text: string): string {
  const url = URL.parse(text)
  const isOrigin = url && /^https?:$/.test(url.protocol) && [url.origin, `${url.origin}/`].includes(url.href)
  if (!isOrigin) throw new Error('must be an http or https URL without a path, a query or credentials')
  return url.origin
}

export function databaseUrl(text: string): string {
  const url = URL.parse(text)
  if (!url || !/^postgres(ql)?:$/.test(url.protocol)) throw new Error('must be a postgres:// URL')
  return text
}

export function bearer(text: string): string {
  if (!/^[\w.~+/-]{16,}=*$/.test(text)) throw new Error('must be 16 or more of the characters of a bearer token')
  return text
}

export function vaultKey(text: string): string {
  if (!/^[\w.-]+(\/[\w.-]+)+$/.test(text) || text.includes('..')) throw new Error('must look like transit/portico')
  return text
}

export function headerValue(text: string): string {
  if (!/^[\x21-\x7e]+$/.test(text)) throw new Error('must be visible ASCII characters')
  return text
}

/** Name servers, as `setServers` of node:dns takes them: an address alone, or with a port. */
export function nameServers(text: string): string[] {
  return text.split(',').map((part) => {
    const server = part.trim()
    const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([\d.]+)):(\d{1,5})$/.exec(server) ?? []
    const hasPort = isIP(bracketed ?? '') === 6 || isIP(plain ?? '') === 4
    const isServer = isIP(server) !== 0 || (hasPort && Number(port) >= 1 && Number(port) <= 65_535)
    if (!isServer || server.includes('%')) {
      throw new Error(
        'must be IP addresses such as 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53, with commas between them',
      )
    }
    return server
  })
}

/** Addresses and networks. One that holds every address is refused: whoever trusts everybody believes what anybody says. */
export function networks(text: string): string[] {
  return text.split(',').map((part) => {
    const [, address = '', prefix] = /^\s*([^\s/]+)(?:\/(\d{1,3}))?\s*$/.exec(part) ?? []
    const bits = { 0: 0, 4: 32, 6: 128 }[isIP(address)]!
    const isNetwork = prefix === undefined || (Number(prefix) >= 1 && Number(prefix) <= bits)
    if (bits === 0 || address.includes('%') || !isNetwork) {
      throw new Error('must be IP addresses or networks such as 10.0.0.0/8, with commas between them')
    }
    return prefix === undefined ? address : `${address}/${Number(prefix)}`
  })
}
