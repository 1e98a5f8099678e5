import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import Type from 'typebox'
import type { Caller } from '../../kernel/caller.ts'
import { systemClock } from '../../kernel/clock.ts'
import { fail } from '../../kernel/errors.ts'
import type { Outcome } from '../../kernel/exchange.ts'
import { type BaseContext, operationFor, StreamBody } from '../../kernel/operation.ts'
import { createPipeline } from '../../kernel/pipeline.ts'
import { createRegistry } from '../../kernel/registry.ts'
import { AppParams, Strict, Uuid } from '../../kernel/schemas.ts'
import { requireToken } from '../../kernel/steps.ts'
import { family } from './family.ts'
import { createHttpSurface, type HttpSurfaceOptions } from './server.ts'

/** A surface over a handful of operations, and clients that can also misbehave. For the tests of this folder. */
export const appId = '0199a1b2-0000-7000-8000-00000000000a'
export const thingId = '0199a1b2-0000-7000-8000-00000000000b'
export const token = 'ptc_live_test'
const things = '/v1/apps/{saasAppId}/things'
const operation = operationFor<BaseContext>()

const common = {
  area: 'Things',
  summary: 'Works on things.',
  description: 'For tests.',
  credentials: ['live'],
  scope: null,
  rateClass: 'read',
  transaction: 'read',
  mcp: false,
  params: Type.Object(AppParams),
  responses: { 200: Type.Unknown() },
  errors: [],
} as const
const thingParams = Type.Object({ ...AppParams, thingId: Uuid('The thing.') })

/** How many chunks of streams were asked for. */
export const streamed = { chunks: 0 }

async function* chunksOf({ chunks, breaksOff }: { readonly chunks: number; readonly breaksOff?: boolean }) {
  for (let count = 0; count < chunks; count++) {
    streamed.chunks++
    yield Buffer.alloc(1024 * 1024, 'x')
  }
  if (breaksOff) throw new Error('secret words of a stream')
}

/** Every operation answers with what reached it. */
const operations = [
  operation({
    ...common,
    id: 'thingsList',
    method: 'GET',
    path: things,
    query: Strict({ tag: Type.Optional(Type.Array(Type.String())), q: Type.Optional(Type.String()) }),
    handler: async (_, { query }) => ({ status: 200, body: { query } }),
  }),
  operation({
    ...common,
    id: 'thingsGet',
    method: 'GET',
    path: `${things}/{thingId}`,
    params: thingParams,
    handler: async (_, { params }) => ({ status: 200, body: { params }, headers: { etag: '"7"' } }),
  }),
  operation({
    ...common,
    id: 'thingsCreate',
    method: 'POST',
    path: things,
    body: Strict({ name: Type.Unknown() }),
    handler: async (_, { body }) => ({ status: 201, body: { body } }),
  }),
  operation({
    ...common,
    id: 'thingsRestore',
    method: 'POST',
    path: `${things}/{thingId}:restore`,
    params: thingParams,
    handler: async (_, { params }) => ({ status: 200, body: { restored: params.thingId } }),
  }),
  operation({
    ...common,
    id: 'thingsBatch',
    method: 'POST',
    path: `${things}:batch`,
    body: Strict({ items: Type.Array(Type.Unknown()) }),
    bodyOptional: false,
    bodyBytesMax: 1000,
    handler: async (_, { body }) => ({ status: 200, body: { count: body.items.length } }),
  }),
  operation({
    ...common,
    id: 'thingsUpsert',
    method: 'PUT',
    path: `${things}/by-key/{externalKey}`,
    params: Type.Object({ ...AppParams, externalKey: Type.String() }),
    handler: async (_, { params }) => ({ status: 200, body: { externalKey: params.externalKey } }),
  }),
  operation({
    ...common,
    id: 'thingsBreak',
    method: 'GET',
    path: '/v1/apps/{saasAppId}/broken',
    handler: async () => {
      throw new Error('secret words of an inner failure')
    },
  }),
  operation({
    ...common,
    id: 'thingsHuge',
    method: 'GET',
    path: '/v1/apps/{saasAppId}/huge',
    handler: async () => ({ status: 200, body: 'x'.repeat(32 * 1024 * 1024) }),
  }),
  operation({
    ...common,
    id: 'thingsStream',
    method: 'GET',
    path: '/v1/apps/{saasAppId}/stream',
    query: Strict({ chunks: Type.Integer(), breaksOff: Type.Optional(Type.Boolean()) }),
    handler: async (_, { query }) => ({ status: 200, body: new StreamBody(() => chunksOf(query), 'text/plain') }),
  }),
  operation({
    ...common,
    id: 'thingsWait',
    method: 'GET',
    path: '/v1/apps/{saasAppId}/slow',
    handler: async () => {
      await delay(400)
      return { status: 200, body: { waited: true } }
    },
  }),
]

const caller: Caller = {
  credentialKind: 'live',
  keyId: 'test',
  expiresAt: null,
  appId,
  organizationId: '0199a1b2-0000-7000-8000-00000000000c',
  tenantId: '0199a1b2-0000-7000-8000-00000000000c',
  actor: { kind: 'credential', id: 'test' },
  organizationName: 'Northwind',
  organizationSlug: 'northwind',
  user: null,
  dataRoles: [],
  dataRoleIds: [],
  locationIds: 'all',
  scopes: new Set(),
  unrestricted: true,
  epochs: { organization: '1', application: '1' },
}

export async function startSurface(more: Partial<HttpSurfaceOptions> = {}) {
  const registry = createRegistry(operations)
  const outcomes: Outcome[] = []
  const errors: unknown[] = []
  const ready = { database: true }
  const invoke = createPipeline<BaseContext>({
    clock: systemClock,
    authenticate(request) {
      if (requireToken(request) !== token) throw fail('credential_invalid')
      return { caller, refusal: null }
    },
    forget: () => undefined,
    consume: () => ({ headers: { ratelimit: '"read";r=99;t=1' } }),
    transact: (_mode, _caller, work) => work({ rows: async () => [], savepoint: (fn) => fn() }),
    idempotency: { claim: async () => undefined, keep: async () => undefined },
    services: {},
    record: (outcome) => outcomes.push(outcome),
    checkResponses: false,
  })
  const surface = createHttpSurface({
    cookieName: 'portico_session',
    families: [family('api', registry.operations, invoke)],
    clock: systemClock,
    baseUrl: 'http://127.0.0.1:8080',
    log: { error: (fields) => errors.push(fields), warn: () => undefined },
    readiness: async () => ready,
    metrics: async () => ({ contentType: 'text/plain; version=0.0.4', text: 'portico_up 1\n' }),
    ...more,
  })
  const { port } = await surface.listen({ host: '127.0.0.1', port: 0 })
  return { surface, port, outcomes, errors, ready }
}

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly json: Record<string, unknown>
}

export interface Sent {
  /** A list sends the header that often; undefined leaves it out. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly body?: string | Uint8Array
}

/** One request on a connection of its own, with the test's token unless `headers` say otherwise. */
export async function call(port: number, method: string, path: string, { headers, body }: Sent = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const type = body === undefined ? {} : { 'content-type': 'application/json' }
  const sent = httpRequest({
    port,
    host: '127.0.0.1',
    method,
    path,
    agent: false,
    headers: Object.fromEntries(
      Object.entries({ authorization: `Bearer ${token}`, ...type, ...headers }).filter(
        ([, value]) => value !== undefined,
      ),
    ) as OutgoingHttpHeaders,
  })
  sent.on('error', reject)
  sent.on('response', async (response) => {
    try {
      const received = await text(response)
      const isJson = response.headers['content-type']?.includes('json') && received !== ''
      const json = isJson ? (JSON.parse(received) as Record<string, unknown>) : {}
      resolve({ status: response.statusCode!, headers: response.headers, text: received, json })
    } catch (error) {
      reject(error)
    }
  })
  sent.end(body)
  return promise
}

/** Sends bytes as they are and collects everything that comes back until the server closes. */
export async function sendRaw(port: number, bytes: string | Uint8Array): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.write(bytes)
  return text(socket)
}

export const at = (path: string) => `/v1/apps/${appId}${path}`
