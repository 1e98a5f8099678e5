import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify'
import type { Clock } from '../../kernel/clock.ts'
import { Failure, fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import { failed } from '../../kernel/serialise.ts'
import { createClientAddress } from './client-address.ts'
import { answerClientError } from './client-errors.ts'
import { createCrossSiteCheck } from './cross-site.ts'
import { drainServer, trackSockets } from './drain.ts'
import type { Family } from './family.ts'
import { createHostCheck } from './hosts.ts'
import { createOperationHandler } from './operation-handler.ts'
import { limitPipelining } from './pipelining.ts'
import { createMethodTable, routerPaths } from './routes.ts'
import { type SendState, send } from './send.ts'
import { createSystemRoutes, type SystemParts } from './system-routes.ts'

/** The HTTP surface: one route for each operation of the registry, and the few routes that a process itself has. */
export interface HttpSurfaceOptions extends SystemParts {
  readonly families: readonly Family[]
  readonly clock: Clock
  /** Where clients reach the service: an origin, without a slash at its end. */
  readonly baseUrl: string
  /** The cookie of tenant sessions. */
  readonly cookieName: string
  /** Is a host name a domain of an organisation? None is unless said otherwise. */
  readonly isTenantDomain?: ((name: string) => boolean | Promise<boolean>) | undefined
  /** Addresses and networks of proxies whose `X-Forwarded-For` is believed; none unless said otherwise. */
  readonly trustedProxies?: readonly string[] | undefined
  /** How long a connection may make no progress while something is to be sent or received. */
  readonly stalledAfterMs?: number
  /** Failures of the surface itself. Requests are recorded by the pipeline, not here. */
  readonly log: Record<'error' | 'warn', (fields: Readonly<Record<string, unknown>>, message: string) => void>
}

export interface HttpSurface {
  /** Starts to accept connections. Port 0 takes a free one. */
  listen(at: { readonly host: string; readonly port: number }): Promise<{ host: string; port: number }>
  /** Stops accepting, answers what is in flight, then closes; cuts what is left after `deadlineMs`. */
  drain(deadlineMs: number): Promise<{ connectionsCut: number }>
}

export function createHttpSurface(options: HttpSurfaceOptions): HttpSurface {
  const { clock, baseUrl, cookieName, log, stalledAfterMs = 60_000 } = options
  const families = options.onlyProbes ? [] : options.families
  const state: SendState = { draining: false }
  const hostKind = createHostCheck(baseUrl, options.isTenantDomain)
  const crossSite = createCrossSiteCheck(baseUrl)
  const clientAddress = createClientAddress(options.trustedProxies ?? [], (peer) => {
    log.warn(
      { peer },
      'X-Forwarded-For is ignored: it came from an address that PORTICO_TRUSTED_PROXIES does not name. If that is a proxy of yours, name it there; until then its clients share the limits of one.',
    )
  })
  const onStreamFault = (correlationId: string, err: unknown) =>
    log.error({ correlationId, err }, 'An answer broke off while it was sent.')
  const parts = { baseUrl, hostKind, crossSite, clientAddress, state, cookieName, onStreamFault }
  const app = createServer(clock, stalledAfterMs, onFrameworkError)
  const sockets = trackSockets(app.server)

  const systemRoutes = createSystemRoutes(options, state)
  const operations = families.flatMap((family) => family.operations)
  const routerPath = routerPaths(operations.map((operation) => operation.path))
  const systemMethods = systemRoutes.map(({ path, onAnyHost }) => ({ method: 'GET', path, onAnyHost }))
  const methodsOn = {
    api: createMethodTable([...on('api'), ...systemMethods]),
    tenant: createMethodTable([...on('tenant'), ...systemMethods.filter(({ onAnyHost }) => onAnyHost)]),
  }

  for (const family of families) {
    for (const operation of family.operations) {
      const handler = createOperationHandler(operation, family, parts)
      const method = operation.method === 'GET' ? ['GET', 'HEAD'] : operation.method
      app.route({ method, url: routerPath(operation.path), handler })
    }
  }
  for (const { path, onAnyHost, answer } of systemRoutes) {
    app.route({
      method: ['GET', 'HEAD'],
      url: path,
      handler: async ({ raw, id }, reply) => {
        if (!onAnyHost && (await hostKind(raw)) !== 'api') throw fail('route_not_found')
        send(raw, reply.raw, state, id, await answer(raw, hostKind))
      },
    })
  }
  app.setNotFoundHandler(onNotFound)
  app.setErrorHandler(onFrameworkError)
  return { listen, drain }

  function on(host: Family['host']) {
    return families.filter((family) => family.host === host).flatMap((family) => family.operations)
  }

  async function onNotFound({ raw, id }: FastifyRequest, reply: FastifyReply): Promise<void> {
    const host = await hostKind(raw)
    const methods = host === 'malformed' ? [] : methodsOn[host](raw.url!.replace(/[?#].*$/s, ''))
    refuse(
      raw,
      reply.raw,
      id,
      methods.length === 0
        ? fail('route_not_found')
        : fail('method_not_allowed', { headers: { allow: methods.join(', ') } }),
    )
  }

  /** What Fastify refuses by itself, and whatever a handler threw. */
  function onFrameworkError(error: Error & { code?: string }, { raw, id }: FastifyRequest, reply: FastifyReply): void {
    refuse(raw, reply.raw, id, failureOf(error))
  }

  function refuse(raw: IncomingMessage, response: ServerResponse, correlationId: string, failure: Failure): void {
    if (failure.status >= 500) log.error({ correlationId, err: failure.cause ?? failure }, 'The HTTP surface failed.')
    send(raw, response, state, correlationId, failed(failure, correlationId))
  }

  async function listen(at: { readonly host: string; readonly port: number }) {
    await app.ready()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    app.server.once('error', reject)
    app.server.listen(at, resolve)
    await promise
    app.server.off('error', reject)
    const { address, port } = app.server.address() as AddressInfo
    return { host: address, port }
  }

  async function drain(deadlineMs: number) {
    state.draining = true
    const connectionsCut = await drainServer(app.server, sockets, deadlineMs)
    await app.close()
    return { connectionsCut }
  }
}

type OnFrameworkError = (error: Error & { code?: string }, request: FastifyRequest, reply: FastifyReply) => void

/** Fastify as a router: bodies, validation, serialisation and logging are not its business here. */
function createServer(clock: Clock, stalledAfterMs: number, onFrameworkError: OnFrameworkError): FastifyInstance {
  const correlationId = () => uuidv7(clock.now())
  const app = Fastify({
    genReqId: correlationId,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    frameworkErrors: onFrameworkError,
    clientErrorHandler: (error, socket) => answerClientError(error, socket as Socket, correlationId()),
    // A name of 255 characters, each of four bytes and percent-encoded.
    routerOptions: { maxParamLength: 3060, compile: true },
    // Of the largest file over a slow line; bodies that are held in memory have less (body.ts).
    requestTimeout: 600_000,
    // Who stops reading would keep its answer in memory for ever. Between requests `keepAliveTimeout` holds instead.
    connectionTimeout: stalledAfterMs,
    keepAliveTimeout: 65_000,
    http: {
      headersTimeout: 10_000,
      // How often Node looks for requests that are late; its default of 30 s would make 10 s up to 40.
      connectionsCheckingInterval: 2_000,
      // Two Authorization or Host headers arrive joined by a comma and are refused, instead of the first one winning.
      joinDuplicateHeaders: true,
      // Node would answer a missing Host by itself, without a correlation id.
      requireHostHeader: false,
    },
  })
  // An unknown expectation may be ignored (RFC 9110 10.1.1); Node would answer 417 by itself.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
  // `Expect: 100-continue` is answered when the body is wanted, by `receiveBody`: a refusal comes instead of it.
  app.server.on('checkContinue', (request, response) => app.server.emit('request', request, response))
  // Handlers read bodies themselves, with the limit of their operation, when the request has been routed.
  for (const method of app.supportedMethods) app.addHttpMethod(method, { hasBody: false, overrideExisting: true })
  app.server.prependListener('request', limitPipelining)
  return app
}

function failureOf(error: Error & { code?: string }): Failure {
  if (error instanceof Failure) return error
  switch (error.code) {
    case 'FST_ERR_BAD_URL':
      return fail('malformed_request', { field: 'path', message: 'The percent-encoding of the path is not valid.' })
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return fail('route_not_found')
    default:
      return fail('internal_error', { cause: error })
  }
}
