import type { IncomingMessage } from 'node:http'
import { type Failure, fail } from '../../kernel/errors.ts'

/**
 * Is this a change that another site made a browser send, with the user's cookie? Browsers say where a request comes from:
 * `Sec-Fetch-Site`, and those before 2023 at least `Origin` with every unsafe method (the OWASP cheat sheet on cross-site
 * request forgery, "Fetch Metadata"). What sends neither is no browser and holds no cookie of a user.
 */
export function crossSite({ method, headers }: IncomingMessage): Failure | undefined {
  if (method === 'GET' || method === 'HEAD') return undefined
  const site = headers['sec-fetch-site']
  if (site !== undefined) return site === 'same-origin' || site === 'none' ? undefined : fail('cross_site_request')
  const { origin } = headers
  if (origin === undefined) return undefined
  // The scheme is not compared: behind a proxy that ends TLS the service cannot see it.
  return URL.parse(origin)?.host === headers.host?.toLowerCase() ? undefined : fail('cross_site_request')
}
