import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type ErrorCode, fail } from '../../kernel/errors.ts'
import { failed } from '../../kernel/serialise.ts'
import { jsonType } from './send.ts'

/** Node's and llhttp's names for what arrived on a socket without becoming a request. */
const codes: Readonly<Record<string, ErrorCode>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'request_timeout',
  HPE_HEADER_OVERFLOW: 'request_headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'payload_too_large',
}

/**
 * Answers bytes that are not HTTP, headers that are too large and requests that do not arrive in time. No request object
 * exists yet, so the answer is written to the socket.
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Socket, correlationId: string): void {
  // `_httpMessage` is the answer that this socket is sending: a second status line in the middle of it would be read as
  // part of its body. Node's own default looks at the same property.
  const sending = (socket as { _httpMessage?: { headersSent: boolean } })._httpMessage
  if (error.code === 'ECONNRESET' || !socket.writable || sending?.headersSent) {
    socket.destroy()
    return
  }
  const { status, payload } = failed(fail(codes[error.code ?? ''] ?? 'malformed_request'), correlationId)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    `X-Correlation-Id: ${correlationId}`,
    `Content-Type: ${jsonType}`,
    'X-Content-Type-Options: nosniff',
    `Content-Length: ${Buffer.byteLength(payload)}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${payload}`, () => socket.destroy())
}
