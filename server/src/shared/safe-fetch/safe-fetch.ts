import { readFileSync } from 'node:fs'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import type { Dispatcher } from 'undici'
import { type PartialBody, readBody } from './body.ts'
import { categoryOf, type FetchCategory, FetchFailure, failureOf, sentenceOf } from './categories.ts'
import { createConnections } from './connections.ts'
import { createConnector } from './connector.ts'
import { checkDestination, type Destination } from './destination.ts'

export interface SafeFetchOptions {
  /** Allows http and private addresses: for development and for tests, never where tenants choose destinations. */
  readonly allowLoopback: boolean
  /** A PEM file of authorities to trust beside those of Node. */
  readonly extraCaFile?: string
  /** `ip` or `ip:port` each; none: those of the system. */
  readonly dnsServers?: readonly string[]
  /** For DNS, TCP and TLS together; 5 s. */
  readonly connectTimeoutMs?: number
}

export interface SafeFetchRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array
  /** From DNS to the last byte of the body; 15 s. */
  readonly deadlineMs?: number
  /** Bytes of the body that are kept, after decompression; the rest is not read. */
  readonly responseBytesMax: number
  /** Whose connections may be reused: the id of a tenant, or of less. None: a connection for this request alone. */
  readonly connectionGroup?: string
  /** Ends the request; its reason is thrown. */
  readonly signal?: AbortSignal
}

/** What became of a request. Nothing in it names an address. */
export interface SafeFetchOutcome {
  /** `success`: any 2xx whose body came as well. */
  readonly category: FetchCategory
  /** For people. */
  readonly sentence: string
  /** Null: no answer began. */
  readonly status: number | null
  /** In lower case; several of one name are joined with commas (RFC 9110 5.3). Without a prototype. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array
  readonly bodyTruncated: boolean
  readonly durationMs: number
}

export interface SafeFetch {
  /** What can be refused before a destination is saved. */
  check(url: string): Destination
  /**
   * Sends one request and never follows a redirect. Whatever happens on the way is an outcome. Throws the reason of
   * `signal`, and an error where the caller's own headers are wrong.
   */
  fetch(url: string, request: SafeFetchRequest): Promise<SafeFetchOutcome>
  /** Breaks off what is still under way. */
  close(): Promise<void>
}

const responseHeadersMax = 100
const informationalMax = 10

/** Decided by the connection and the destination, not by the caller. */
const ownHeaders =
  /^(host|connection|keep-alive|content-length|transfer-encoding|upgrade|expect|te|trailer|proxy-[a-z-]+)$/i

/** The one way out of the service for requests whose destination somebody else chose. No proxy of the environment is used. */
export function createSafeFetch(options: SafeFetchOptions): SafeFetch {
  const connector = createConnector({
    allowLoopback: options.allowLoopback,
    dnsServers: options.dnsServers ?? [],
    connectTimeoutMs: options.connectTimeoutMs ?? 5000,
    secureContext: trust(options.extraCaFile),
  })
  const connections = createConnections(connector)
  const check = (url: string) => checkDestination(url, options)

  async function fetch(url: string, request: SafeFetchRequest): Promise<SafeFetchOutcome> {
    refuseOwnHeaders(request.headers ?? {})
    request.signal?.throwIfAborted()
    const startedAt = performance.now()
    const answer: Answer = { status: null, headers: Object.create(null), body: { bytes: empty, isTruncated: false } }
    const outcome = (category: FetchCategory, sentence: string) => {
      const { status, headers, body } = answer
      const durationMs = Math.round(performance.now() - startedAt)
      return { category, sentence, status, headers, body: body.bytes, bodyTruncated: body.isTruncated, durationMs }
    }
    const destination = check(url)
    if (destination.problem !== null) return outcome('blocked_destination', destination.sentence)
    const { origin } = destination.url
    const { dispatcher, release } = connections.take(origin, request.connectionGroup)
    const stop = new AbortController()
    const late = setTimeout(() => stop.abort(new FetchFailure('timeout')), request.deadlineMs ?? 15_000)
    const signal = request.signal ? AbortSignal.any([stop.signal, request.signal]) : stop.signal
    try {
      await exchange(dispatcher, destination.url, request, { signal, stop, answer })
      return outcome(categoryOf(answer.status!), sentenceOf(categoryOf(answer.status!)))
    } catch (error) {
      request.signal?.throwIfAborted()
      if (isMistake(error)) throw error
      // After an abort the stream may complain of something else first.
      const failure = failureOf(stop.signal.aborted ? stop.signal.reason : error)
      return outcome(failure.category, failure.message)
    } finally {
      clearTimeout(late)
      release()
    }
  }

  return { check, fetch, close: () => connections.close() }
}

interface Answer {
  status: number | null
  headers: Record<string, string>
  readonly body: PartialBody
}

interface Exchange {
  readonly signal: AbortSignal
  readonly stop: AbortController
  readonly answer: Answer
}

const empty = new Uint8Array()

/** Writes what comes into `answer`, so that a part of it is there when the rest fails. */
async function exchange(dispatcher: Dispatcher, url: URL, request: SafeFetchRequest, on: Exchange): Promise<void> {
  let informational = 0
  const response = await dispatcher.request({
    method: request.method,
    path: `${url.pathname}${url.search}`,
    headers: request.headers ?? {},
    ...(request.body !== undefined && { body: bytesOf(request.body) }),
    reset: request.connectionGroup === undefined,
    signal: on.signal,
    // As they came: an object of undici's making would take names such as `__proto__` for its own.
    responseHeaders: 'raw',
    onInfo: () => {
      if (++informational > informationalMax) on.stop.abort(new FetchFailure('network_error'))
    },
  })
  on.answer.status = response.statusCode
  response.body.on('error', () => undefined)
  if (!readHeaders(response.headers as unknown as string[], on.answer.headers)) {
    response.body.destroy()
    throw new FetchFailure('network_error')
  }
  const coding = on.answer.headers['content-encoding'] ?? ''
  await readBody(response.body, coding, request.responseBytesMax, on.answer.body)
}

/** False: there are too many. */
function readHeaders(raw: readonly string[], into: Record<string, string>): boolean {
  if (raw.length > responseHeadersMax * 2) return false
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at]!.toLowerCase()
    into[name] = name in into ? `${into[name]}, ${raw[at + 1]}` : raw[at + 1]!
  }
  return true
}

function bytesOf(body: string | Uint8Array): Uint8Array {
  return typeof body === 'string' ? new TextEncoder().encode(body) : body
}

function refuseOwnHeaders(headers: Readonly<Record<string, string>>): void {
  const own = Object.keys(headers).find((name) => ownHeaders.test(name))
  if (own !== undefined) throw new TypeError(`The header ${own} is not the caller's to set.`)
}

/** undici refuses headers that would be unsafe on the wire, before anything is sent. */
function isMistake(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'UND_ERR_INVALID_ARG'
}

/** The context is made once, when it is needed: reading all authorities takes longer than a handshake. */
function trust(extraCaFile: string | undefined): () => SecureContext {
  const extra = extraCaFile === undefined ? [] : [readFileSync(extraCaFile, 'utf8')]
  if (extra.some((pem) => !pem.includes('-----BEGIN CERTIFICATE-----'))) {
    throw new Error('The file of authorities holds no certificate.')
  }
  let context: SecureContext | undefined
  return () => {
    context ??= createSecureContext({ ca: [...getCACertificates('default'), ...extra] })
    return context
  }
}
