import { createStaticFiles } from './static-files.ts'

/**
 * The API reference at `/docs`: a small page that asks for an application and a token, fetches the caller's own contract
 * and hands it to Scalar (vendored; see `server/vendor/scalar/README.md`). The token stays in the page's memory.
 *
 * The policy allows this origin and nothing else: no CDN, no font host, no telemetry. Scalar writes `style` attributes,
 * which no nonce can allow, so styles may be inline; scripts may not.
 */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const pageHeaders = { 'content-security-policy': contentSecurityPolicy, 'referrer-policy': 'no-referrer' }
const script = 'text/javascript; charset=utf-8'

/** The page and what belongs to it, by path. */
export const createDocsPage = () =>
  createStaticFiles({
    '/docs': {
      contentType: 'text/html; charset=utf-8',
      headers: pageHeaders,
      url: new URL('./docs/index.html', import.meta.url),
    },
    '/docs/page.css': { contentType: 'text/css; charset=utf-8', url: new URL('./docs/page.css', import.meta.url) },
    '/docs/page.js': { contentType: script, url: new URL('./docs/page.js', import.meta.url) },
    '/docs/scalar.js': {
      contentType: script,
      url: new URL('../../../vendor/scalar/standalone.js', import.meta.url),
    },
  })
