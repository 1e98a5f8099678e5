import { fail } from '../../../kernel/errors.ts'
import type { Operation } from '../../../kernel/operation.ts'
import type { Family } from '../family.ts'
import type { Answer } from '../send.ts'
import { createStaticFiles } from '../static-files.ts'
import type { SystemRoute } from '../system-routes.ts'
import { builderInvitation, builderReset, type LinkPage, tenantInvitation, tenantReset } from './link-page-texts.ts'
import { renderPage } from './render-page.ts'

/**
 * The pages behind the links in mails: `/accept-invitation` and `/reset-password`, for builders on the API host, for users
 * on the hosts of organisations. A page is the same for everybody and says nothing of whom the link belongs to: its script
 * takes the token out of the fragment and sends it, with what was filled in, to the operation.
 *
 * Script and stylesheet are below the path of each page, so that a proxy in front can give one path, and all that belongs
 * to it, to pages of the application's own.
 */
const pages: Readonly<Record<string, Readonly<Record<Family['host'], LinkPage>>>> = {
  '/accept-invitation': { api: builderInvitation, tenant: tenantInvitation },
  '/reset-password': { api: builderReset, tenant: tenantReset },
}

/** Nothing from elsewhere, nothing inline, no frame around it, and forms are sent by the script alone. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const pageHeaders = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': contentSecurityPolicy,
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-store',
}

/** The routes of the pages whose operations the families have. */
export function createLinkPages(families: readonly Family[]): readonly SystemRoute[] {
  const operations = new Map(families.flatMap((family) => family.operations).map((one) => [one.id, one]))
  return Object.entries(pages).flatMap(([path, { api, tenant }]) => {
    const [onApi, onTenant] = [api, tenant].map((page) => answerOf(path, page, operations))
    return onApi && onTenant ? [pageRoute(path, { api: onApi, tenant: onTenant }), ...fileRoutes(path)] : []
  })
}

function answerOf(path: string, page: LinkPage, operations: ReadonlyMap<string, Operation<never>>): Answer | undefined {
  const operation = operations.get(page.operationId)
  return operation && { status: 200, headers: pageHeaders, payload: renderPage(path, operation.path, page) }
}

function pageRoute(path: string, answers: Readonly<Record<Family['host'], Answer>>): SystemRoute {
  return {
    path,
    onAnyHost: true,
    async answer(request, hostKind) {
      const host = await hostKind(request)
      if (host === 'malformed') throw fail('route_not_found')
      return answers[host]
    },
  }
}

function fileRoutes(path: string): readonly SystemRoute[] {
  const files = createStaticFiles({
    [`${path}/page.css`]: { contentType: 'text/css; charset=utf-8', url: new URL('./page.css', import.meta.url) },
    [`${path}/page.js`]: { contentType: 'text/javascript; charset=utf-8', url: new URL('./page.js', import.meta.url) },
  })
  return files.paths.map((file) => ({
    path: file,
    onAnyHost: true,
    answer: ({ headers }) => files.answer(file, headers['accept-encoding']),
  }))
}
