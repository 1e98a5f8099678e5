import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Request } from '../../kernel/exchange.ts'
import type { Upload } from '../../kernel/operation.ts'
import { type Arrival, parseBody, receiveBody } from './body.ts'
import { cookieOf } from './cookies.ts'
import { hostName } from './hosts.ts'
import { isMultipart, type Multipart, receiveMultipart } from './multipart.ts'

/** How much of a body is taken; a file only where the operation takes one. */
export interface BodyLimits {
  readonly bytesMax: number
  readonly uploadBytesMax: number | undefined
}

/** What the pipeline needs of an HTTP request. A class: one shape for the engine, and no closure for each request. */
export class ApiRequest implements Request {
  readonly correlationId: string
  readonly token: string | null
  readonly address: string
  readonly host: string
  readonly userAgent: string
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  readonly idempotencyKey: string | undefined
  readonly ifMatch: string | undefined
  readonly #raw: IncomingMessage
  readonly #response: ServerResponse
  readonly #limits: BodyLimits
  #body: Arrival | Promise<Arrival> | undefined
  #multipart: Promise<Multipart> | undefined
  #dropRest = () => {}
  /** The file behind the options, once those were read. */
  upload: Upload | undefined

  constructor(
    correlationId: string,
    raw: IncomingMessage,
    response: ServerResponse,
    address: string,
    params: Readonly<Record<string, string>>,
    query: Readonly<Record<string, unknown>>,
    limits: BodyLimits,
    /** The cookie that the token comes in, on hosts where it does not come in a header. */
    cookieName: string | undefined,
  ) {
    this.correlationId = correlationId
    this.token =
      cookieName === undefined ? bearerToken(raw.headers.authorization) : cookieOf(raw.headers.cookie, cookieName)
    this.address = address
    this.host = hostName(raw.headers.host ?? '')
    this.userAgent = raw.headers['user-agent'] ?? ''
    this.params = params
    this.query = query
    this.idempotencyKey = raw.headers['idempotency-key'] as string | undefined
    this.ifMatch = raw.headers['if-match']
    this.#raw = raw
    this.#response = response
    this.#limits = limits
  }

  /** Nothing of the body is taken from the socket before this is called. What arrived is kept for the next call. */
  readBody(): unknown | Promise<unknown> {
    const { bytesMax, uploadBytesMax } = this.#limits
    if (uploadBytesMax !== undefined && isMultipart(this.#raw.headers)) return this.#readParts(uploadBytesMax)
    this.#body ??= receiveBody(this.#raw, this.#response, bytesMax)
    if (!(this.#body instanceof Promise)) return parseBody(this.#body, this.#raw.headers)
    return this.#body.then((arrival) => {
      this.#body = arrival
      return parseBody(arrival, this.#raw.headers)
    })
  }

  async #readParts(fileBytesMax: number): Promise<unknown> {
    const limits = { optionsBytesMax: this.#limits.bytesMax, fileBytesMax }
    this.#multipart ??= receiveMultipart(this.#raw, this.#response, limits)
    const { options, upload, drop } = await this.#multipart
    this.upload = upload
    this.#dropRest = drop
    return options
  }

  /** The request was answered: what is left of a file is not wanted. */
  dropRest(): void {
    this.#dropRest()
  }

  /** Has the client gone away before its body was there? Then nobody waits for an answer. */
  get left(): boolean {
    return this.#body === 'left' || (this.#multipart !== undefined && this.#response.destroyed)
  }
}

const bearer = /^bearer +([\w.~+/-]+=*) *$/i

/**
 * The token of `Authorization: Bearer <token>`, or null where none was sent. Anything else that stands in the header,
 * and two headers at once (they arrive joined by a comma), is a token that nobody issued: the empty one.
 */
export function bearerToken(authorization: string | undefined): string | null {
  if (authorization === undefined) return null
  return bearer.exec(authorization)?.[1] ?? ''
}
