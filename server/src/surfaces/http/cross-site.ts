import type { IncomingMessage } from 'node:http'
import { type Failure, fail } from '../../kernel/errors.ts'

/** Returns why a request on a tenant host must not reach an operation, or undefined. */
export type CrossSiteCheck = (request: IncomingMessage) => Failure | undefined

/**
 * Is this a change that another site made a browser send, with the user's cookie? Browsers say where a request comes from:
 * `Sec-Fetch-Site` to hosts they trust (https, localhost), and those before 2023 at least `Origin` with every unsafe method
 * (the OWASP cheat sheet on cross-site request forgery, "Fetch Metadata"). Another tenant is `same-site`, and no better
 * than any other site. No answer allows another origin anything (CORS), so that a request which needs to be asked for
 * first is never sent.
 *
 * Browsers that say neither sent forms in the three types that a form has, and those are refused by their type: every
 * operation takes JSON. What is left is no browser and holds no cookie of a user.
 */
export function createCrossSiteCheck(baseUrl: string): CrossSiteCheck {
  const secure = baseUrl.startsWith('https:')
  return ({ method, headers }) => {
    if (method === 'GET' || method === 'HEAD') return undefined
    const site = headers['sec-fetch-site']
    if (site !== undefined) return site === 'same-origin' || site === 'none' ? undefined : fail('cross_site_request')
    const { origin, host } = headers
    if (origin === undefined) return formTypes.test(headers['content-type'] ?? '') ? formRefused() : undefined
    return isSameOrigin(origin, host ?? '', secure) ? undefined : fail('cross_site_request')
  }
}

const formTypes = /^\s*(text\/plain|multipart\/form-data|application\/x-www-form-urlencoded)\s*(;|$)/i

function formRefused(): Failure {
  return fail('unsupported_media_type', { field: 'Content-Type', message: 'Send application/json in UTF-8.' })
}

/**
 * An opaque origin (`null`) is nobody's. Behind a proxy that ends TLS the service sees plain http, so the scheme is held
 * against the base URL: a page of the same host that somebody on the network has put there over http is another site.
 */
function isSameOrigin(origin: string, host: string, secure: boolean): boolean {
  const from = URL.parse(origin)
  if (!from || (secure && from.protocol !== 'https:')) return false
  // Parsed alike, so that a port that the scheme implies may be there or not.
  return from.host !== '' && from.host === URL.parse(`${from.protocol}//${host}`)?.host
}
