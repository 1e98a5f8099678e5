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
