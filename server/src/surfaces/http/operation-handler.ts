import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Failure, fail } from '../../kernel/errors.ts'
import type { Response } from '../../kernel/exchange.ts'
import { isUuid } from '../../kernel/ids.ts'
import { bodyBytesDefault, type Operation } from '../../kernel/operation.ts'
import { failed } from '../../kernel/serialise.ts'
import { ApiRequest } from './api-request.ts'
import type { ClientAddress } from './client-address.ts'
import type { CrossSiteCheck } from './cross-site.ts'
import type { Family } from './family.ts'
import type { HostCheck, HostKind } from './hosts.ts'
import { type SendState, send } from './send.ts'
import { sendStream } from './send-stream.ts'

/** Carries one operation over HTTP. Everything that decides anything about the request happens in the pipeline. */
export function createOperationHandler(
  operation: Operation<never>,
  family: Family,
  surface: {
    readonly baseUrl: string
    readonly hostKind: HostCheck
    readonly crossSite: CrossSiteCheck
    readonly clientAddress: ClientAddress
    readonly state: SendState
    readonly cookieName: string
    /** A stream that failed when its answer had begun. */
    readonly onStreamFault: (correlationId: string, error: unknown) => void
  },
) {
  const { baseUrl, hostKind, crossSite, clientAddress, state } = surface
  const cookieName = family.host === 'tenant' ? surface.cookieName : undefined
  const limits = { bytesMax: operation.bodyBytesMax ?? bodyBytesDefault, uploadBytesMax: operation.uploadBytesMax }

  return async function handle(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { raw, id } = request
    const params = request.params as Readonly<Record<string, string>>
    const kind = hostKind(raw)
    const refusal =
      misdirected(typeof kind === 'string' ? kind : await kind, family.host, params) ??
      (cookieName === undefined ? undefined : crossSite(raw))
    if (refusal) {
      send(raw, reply.raw, state, id, guarded(failed(refusal, id), operation, family))
      return
    }
    const query = request.query as Readonly<Record<string, unknown>>
    const call = new ApiRequest(id, raw, reply.raw, clientAddress(raw), params, query, limits, cookieName)
    const response = guarded(await family.invoke(operation, call), operation, family)
    call.dropRest()
    if (call.left) {
      reply.hijack()
      return
    }
    if (response.stream) {
      await sendStream(raw, reply.raw, state, id, response, (error) => surface.onStreamFault(id, error))
      return
    }
    send(raw, reply.raw, state, id, response.status === 401 ? challenged(response, family, baseUrl, params) : response)
  }
}

/**
 * What a cookie opened must not be given to the next user by a cache in between: unlike `Authorization`, a cookie does not
 * keep caches from storing an answer (RFC 9111 3.5). And what holds secrets, or is about people and their account, is not
 * to lie in the cache of a browser either.
 */
function guarded(response: Response, { path, confidential }: Operation<never>, { host }: Family): Response {
  if (host === 'api' && !confidential && !path.startsWith('/v1/platform/')) return response
  return { ...response, headers: { 'cache-control': 'no-store', ...response.headers } }
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
