import canonicalize from 'canonicalize'

/** RFC 8785: one text for one value, whatever the order of its names. */
export function canonical(value: object): string {
  return canonicalize(value)!
}
