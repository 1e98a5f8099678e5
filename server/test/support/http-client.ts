import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, type RequestOptions, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { type ErrorBody, type ErrorCode, errorTable } from '../../src/kernel/errors.ts'
import { isUuid } from '../../src/kernel/ids.ts'

/** A client that looks at every answer: whatever a test asks for, a fault or an error of the wrong shape fails it. */
export interface Sent {
  /** Sent as `Authorization: Bearer <token>`. */
  readonly token?: string
  /** Sent as JSON. */
  readonly body?: unknown
  /** Sent as it is, as application/json unless `headers` say otherwise. */
  readonly raw?: string | Uint8Array
  /** A list sends the header that often; undefined leaves out what would be sent. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>
}

type Json = Readonly<Record<string, unknown>>

export interface Answer<T = Json> {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly correlationId: string
  readonly text: string
  /** The parsed body; where the status says so, an error. */
  readonly json: T & Partial<ErrorBody>
}

export interface HttpClient {
  call<T = Json>(method: string, path: string, sent?: Sent): Promise<Answer<T>>
  /** Sends bytes as they are and collects everything that comes back until the server closes. */
  sendBytes(bytes: string | Uint8Array): Promise<string>
  close(): void
}

/** `onAnswer` sees every answer; `onFault` may add to the message about a 5xx, for instance what the log says. */
export function createHttpClient(
  port: number,
  watch: { onAnswer(answer: Answer<unknown>): void; onFault(correlationId: string): string },
): HttpClient {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 })

  async function call<T = Json>(method: string, path: string, sent: Sent = {}): Promise<Answer<T>> {
    const payload = sent.raw ?? (sent.body === undefined ? undefined : JSON.stringify(sent.body))
    const { status, headers, received } = await exchange(
      { agent, port, method, path, headers: headersOf(sent, payload) },
      payload,
    )
    const isJson = /\bjson/.test(headers['content-type'] ?? '') && received !== ''
    const json = (isJson ? JSON.parse(received) : {}) as T & Partial<ErrorBody>
    const correlationId = String(headers['x-correlation-id'])
    const answer: Answer<T> = { status, headers, correlationId, text: received, json }
    const problem = problemOf(answer as Answer, method === 'HEAD' || status === 304)
    if (problem) throw new Error(`${method} ${path}: ${problem}: ${status} ${received} ${watch.onFault(correlationId)}`)
    watch.onAnswer(answer)
    return answer
  }

  return {
    call,
    async sendBytes(bytes) {
      const socket = connect(port, '127.0.0.1')
      socket.write(bytes)
      return text(socket)
    },
    close: () => agent.destroy(),
  }
}

function headersOf({ token, headers }: Sent, payload: string | Uint8Array | undefined): OutgoingHttpHeaders {
  const all = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    // Node sends no length by itself with a GET, and the body would be read as the next request.
    ...(payload !== undefined && {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(payload)),
    }),
    ...headers,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as OutgoingHttpHeaders
}

interface Exchanged {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly received: string
}

function exchange(options: RequestOptions, payload: string | Uint8Array | undefined): Promise<Exchanged> {
  const { promise, resolve, reject } = Promise.withResolvers<Exchanged>()
  const sent = request({ host: '127.0.0.1', ...options })
  sent.on('error', reject)
  sent.on('response', (response) => {
    text(response).then((received) => {
      resolve({ status: response.statusCode!, headers: response.headers, received })
    }, reject)
  })
  sent.end(payload)
  return promise
}

/** What is wrong with an answer, whatever was asked (contract 0). */
function problemOf({ status, headers, correlationId, json }: Answer, bodiless: boolean): string | undefined {
  if (!isUuid(correlationId)) return 'an answer without a correlation id'
  if (status >= 500) return 'a fault'
  if (status < 400 || bodiless) return undefined
  const names = Object.keys(json).filter((name) => name !== 'details')
  if (names.join() !== 'error,code,correlationId') return 'an error of another shape'
  if (json.correlationId !== correlationId) return 'two correlation ids'
  const entry = Object.hasOwn(errorTable, json.code!) ? errorTable[json.code as ErrorCode] : undefined
  if (entry?.status !== status) return 'a code that the catalogue does not have, or has with another status'
  if ((headers['retry-after'] !== undefined) !== (entry.retryable ?? false)) return 'Retry-After out of place'
  if ((headers['www-authenticate'] !== undefined) !== (status === 401 || json.code === 'scope_missing')) {
    return 'WWW-Authenticate out of place'
  }
  return json.details === undefined ? undefined : problemOfDetails(json.details, status)
}

function problemOfDetails(details: unknown, status: number): string | undefined {
  if (!Array.isArray(details) || details.length === 0) return 'details without a detail'
  const isDetail = (detail: Record<string, unknown>) =>
    Object.keys(detail).join() === 'field,code,message' &&
    Object.values(detail).every((value) => typeof value === 'string' && value !== '')
  if (!details.every(isDetail)) return 'a detail of another shape'
  return [400, 403, 409, 415, 422].includes(status) ? undefined : 'details where there is nothing to correct'
}
