import { createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { fail } from '../../kernel/errors.ts'
import { bearerToken } from './api-request.ts'
import { createDocsPage } from './docs-page.ts'
import type { Family } from './family.ts'
import type { HostCheck } from './hosts.ts'
import { createLinkPages } from './pages/link-pages.ts'
import { type Answer, jsonType, type SendState } from './send.ts'

/** What the process tells about itself. */
export interface SystemParts {
  /** May requests be sent here? Named checks, so that a refusal says what is missing. */
  readiness(): Promise<Readonly<Record<string, boolean>>>
  /** Metrics in the Prometheus text format. */
  metrics(): Promise<{ readonly contentType: string; readonly text: string }>
  /** What `/metrics` has to be asked with. Null: the route does not exist. Absent: everybody may read it. */
  readonly metricsToken?: string | null | undefined
  /** What the process tells about itself is all it answers: it is there for other work. */
  readonly onlyProbes?: boolean
}

export interface SystemRoute {
  readonly path: string
  /** Otherwise on the API host alone. Probes come by whatever name or address the prober knows. */
  readonly onAnyHost?: true
  answer(request: IncomingMessage, hostKind: HostCheck): Answer | Promise<Answer>
}

export function createSystemRoutes(
  parts: SystemParts & { readonly families: readonly Family[] },
  state: SendState,
): readonly SystemRoute[] {
  const probes: readonly SystemRoute[] = [
    { path: '/healthz', onAnyHost: true, answer: () => json(200, { status: 'ok' }) },
    { path: '/readyz', onAnyHost: true, answer: () => answerReadiness(parts, state) },
    {
      path: '/metrics',
      answer: async (request) => {
        requireMetricsToken(request, parts.metricsToken)
        const { contentType, text } = await parts.metrics()
        return { status: 200, headers: { 'content-type': contentType }, payload: text }
      },
    },
  ]
  if (parts.onlyProbes) return probes
  const docs = createDocsPage()
  return [
    { path: '/', answer: () => ({ status: 302, headers: { location: '/docs' }, payload: '' }) },
    ...probes,
    ...docs.paths.map((path) => ({
      path,
      answer: ({ headers }: IncomingMessage) => docs.answer(path, headers['accept-encoding']),
    })),
    ...createLinkPages(parts.families),
  ]
}

function requireMetricsToken({ headers }: IncomingMessage, wanted: SystemParts['metricsToken']): void {
  if (wanted === undefined) return
  if (wanted === null) throw fail('route_not_found')
  const sent = bearerToken(headers.authorization)
  if (sent !== null && timingSafeEqual(digest(sent), digest(wanted))) return
  throw fail('credential_invalid', { headers: { 'www-authenticate': 'Bearer' } })
}

/** Of one length, so that comparing takes one time. */
function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

async function answerReadiness(parts: SystemParts, state: SendState): Promise<Answer> {
  if (state.draining) return json(503, { status: 'draining' })
  const checks = await parts.readiness()
  const ready = Object.values(checks).every(Boolean)
  return json(ready ? 200 : 503, { status: ready ? 'ready' : 'not_ready', checks })
}

function json(status: number, body: unknown): Answer {
  return { status, headers: { 'content-type': jsonType, 'cache-control': 'no-store' }, payload: JSON.stringify(body) }
}
