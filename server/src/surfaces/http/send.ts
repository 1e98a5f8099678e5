import type { IncomingMessage, ServerResponse } from 'node:http'

import { dropUnread } from './body.ts'
import { codedDocument } from './content-codings.ts'

export const jsonType = 'application/json; charset=utf-8'

export interface SendState {
  /** While draining, every answer asks the client to open its next connection elsewhere. */
  draining: boolean
}

/** The part of a pipeline's response that goes on the wire; files are bytes. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly payload: string | Buffer
}

/**
 * Writes an answer with the headers that every answer has. It goes to Node's response and not through Fastify's reply:
 * there is nothing left to serialise or to hook into, and content that is final is written once, with its length.
 */
export function send(
  request: IncomingMessage,
  response: ServerResponse,
  state: SendState,
  correlationId: string,
  answer: Answer,
): void {
  if (response.headersSent || response.destroyed) return
  const headers: Record<string, string | number> = {
    'x-correlation-id': correlationId,
    'content-type': jsonType,
    'x-content-type-options': 'nosniff',
    ...answer.headers,
  }
  if (dropUnread(request) || state.draining) headers['connection'] = 'close'
  const fingerprint = answer.headers['x-service-contract-sha256']
  if (fingerprint !== undefined) headers['vary'] = 'Accept-Encoding'
  if (isUnchanged(request, answer)) {
    response.writeHead(304, headers)
    response.end()
    return
  }
  const payload =
    fingerprint === undefined ? answer.payload : contractBytes(request, headers, fingerprint, answer.payload)
  headers['content-length'] = Buffer.byteLength(payload)
  response.writeHead(answer.status, headers)
  response.end(payload)
}

/**
 * The bytes of a contract, compressed where the client takes that. Its ETag stays the fingerprint, as specification 4.1
 * demands, although the bytes of two codings differ: what RFC 9110 8.8.3.3 guards against, mixing ranges of them or serving
 * one for the other from a cache, cannot happen to what has no ranges and is `private, no-store`.
 */
function contractBytes(
  request: IncomingMessage,
  headers: Record<string, string | number>,
  fingerprint: string,
  payload: string | Buffer,
): Buffer {
  if (typeof payload !== 'string') return payload
  const { bytes, coding } = codedDocument(fingerprint, payload, String(request.headers['accept-encoding'] ?? ''))
  if (coding !== undefined) headers['content-encoding'] = coding
  return bytes
}

/** Does the client hold what would be sent? RFC 9110 13.1.2: weak comparison, a list of tags, or `*`. */
function isUnchanged(request: IncomingMessage, answer: Answer): boolean {
  const held = request.headers['if-none-match']
  if (held === undefined || answer.status !== 200) return false
  if (request.method !== 'GET' && request.method !== 'HEAD') return false
  const tag = answer.headers['etag']
  if (tag === undefined) return false
  const opaque = tag.replace(/^W\//, '')
  return held.trim() === '*' || (held.match(/(?:W\/)?"[^"]*"/g) ?? []).some((one) => one.replace(/^W\//, '') === opaque)
}
