import { isIP } from 'node:net'

/** Addresses that people are sent to. */
export interface Links {
  /** The API host: an origin, without a slash at its end. */
  readonly baseUrl: string
  /**
   * Where the users of an organisation are at home: its own domain, or `<slug>.<base host>` (contract 1). A domain that is
   * not verified may be anybody's, so no link leads there.
   */
  tenantOrigin(organization: { readonly slug: string; readonly verifiedDomain: string | null }): string
}

export function createLinks(baseUrl: string): Links {
  const { protocol, hostname, port } = new URL(baseUrl)
  const base = isIP(hostname) || hostname.startsWith('[') ? 'localhost' : hostname
  const suffix = port === '' ? '' : `:${port}`
  return {
    baseUrl,
    tenantOrigin: ({ slug, verifiedDomain }) =>
      verifiedDomain === null ? `${protocol}//${slug}.${base}${suffix}` : `https://${verifiedDomain}`,
  }
}
