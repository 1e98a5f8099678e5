import type { IncomingMessage, ServerResponse } from 'node:http'

import { dropUnread } from './body.ts'

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
  if (isUnchanged(request, answer)) {
    response.writeHead(304, headers)
    response.end()
    return
  }
  headers['content-length'] = Buffer.byteLength(answer.payload)
  response.writeHead(answer.status, headers)
  response.end(answer.payload)
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
