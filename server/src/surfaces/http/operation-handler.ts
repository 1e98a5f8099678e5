import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Failure, fail } from '../../kernel/errors.ts'
import { isUuid } from '../../kernel/ids.ts'
import { bodyBytesDefault, type Operation } from '../../kernel/operation.ts'
import { failed, type Response } from '../../kernel/pipeline.ts'
import { ApiRequest } from './api-request.ts'
import { crossSite } from './cross-site.ts'
import type { Family } from './family.ts'
import type { createHostCheck, HostKind } from './hosts.ts'
import { type SendState, send } from './send.ts'

/** Carries one operation over HTTP. Everything that decides anything about the request happens in the pipeline. */
export function createOperationHandler(
  operation: Operation<never>,
  family: Family,
  surface: {
    readonly baseUrl: string
    readonly hostKind: ReturnType<typeof createHostCheck>
    readonly state: SendState
    readonly cookieName: string
  },
) {
  const { baseUrl, hostKind, state } = surface
  const cookieName = family.host === 'tenant' ? surface.cookieName : undefined
  const bytesMax = operation.bodyBytesMax ?? bodyBytesDefault

  return async function handle(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { raw, id } = request
    const params = request.params as Readonly<Record<string, string>>
    const refusal =
      misdirected(hostKind(raw), family.host, params) ?? (cookieName === undefined ? undefined : crossSite(raw))
    if (refusal) {
      send(raw, reply.raw, state, id, failed(refusal, id))
      return
    }
    const query = request.query as Readonly<Record<string, unknown>>
    const call = new ApiRequest(id, raw, reply.raw, params, query, bytesMax, cookieName)
    const response = await family.invoke(operation, call)
    if (call.left) {
      reply.hijack()
      return
    }
    send(raw, reply.raw, state, id, response.status === 401 ? challenged(response, family, baseUrl, params) : response)
  }
}

/** Is the route not there after all? The router looks neither at hosts nor for empty segments (`/v1/apps//objects`). */
function misdirected(
  host: HostKind,
  wanted: Family['host'],
  params: Readonly<Record<string, string>>,
): Failure | undefined {
  if (host === 'malformed') return fail('malformed_request', hostDetail)
  if (host !== wanted) return fail('route_not_found')
  for (const name in params) if (params[name] === '') return fail('route_not_found')
  return undefined
}

const hostDetail = { field: 'Host', message: 'Send exactly one Host header.' }

/** A 401 says how to get a credential (RFC 9728 5.1), where the path names an application. */
function challenged(
  response: Response,
  { host }: Family,
  baseUrl: string,
  params: Readonly<Record<string, string>>,
): Response {
  if (host === 'tenant') return { ...response, headers: { ...response.headers, 'www-authenticate': 'Session' } }
  const appId = params['saasAppId']
  const metadata = isUuid(appId)
    ? ` resource_metadata="${baseUrl}/.well-known/oauth-protected-resource/v1/apps/${appId}/mcp"`
    : ''
  return { ...response, headers: { ...response.headers, 'www-authenticate': `Bearer${metadata}` } }
}
