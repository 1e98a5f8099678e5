import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Response } from '../../kernel/exchange.ts'
import { dropUnread } from './body.ts'
import type { SendState } from './send.ts'

/**
 * Writes an answer whose body is made while it is sent, at the pace of whoever reads it. Nothing can be said any more when the
 * stream fails: the connection ends before the promised length, and the client knows that it has not got it all.
 */
export async function sendStream(
  request: IncomingMessage,
  response: ServerResponse,
  state: SendState,
  correlationId: string,
  answer: Response,
  onFault: (error: unknown) => void,
): Promise<void> {
  if (response.headersSent || response.destroyed) return
  const close = dropUnread(request) || state.draining
  response.writeHead(answer.status, {
    'x-correlation-id': correlationId,
    'x-content-type-options': 'nosniff',
    ...answer.headers,
    ...(close && { connection: 'close' }),
  })
  if (request.method === 'HEAD') {
    response.end()
    return
  }
  const left = new AbortController()
  response.once('close', () => left.abort())
  try {
    for await (const bytes of answer.stream!.bytes()) {
      if (!response.write(bytes)) await once(response, 'drain', { signal: left.signal })
      if (left.signal.aborted) return
    }
    response.end()
  } catch (error) {
    if (!left.signal.aborted) onFault(error)
    response.destroy()
  }
}
