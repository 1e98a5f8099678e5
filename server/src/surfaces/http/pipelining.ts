import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How many requests of one connection may be at work at once. Clients that pipeline at all send about ten. */
export const pipelinedMax = 64

const atWork = new WeakMap<Socket, number>()

/**
 * Ends a connection that sends ever more requests without waiting for answers: Node hands over all that fit into one
 * read, several hundred, and each would hold its answer until those before it have left.
 */
export function limitPipelining({ socket }: IncomingMessage, response: ServerResponse): void {
  const count = (atWork.get(socket) ?? 0) + 1
  atWork.set(socket, count)
  response.once('close', () => atWork.set(socket, atWork.get(socket)! - 1))
  if (count > pipelinedMax) socket.destroy()
}
