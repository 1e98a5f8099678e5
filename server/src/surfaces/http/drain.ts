import type { Server } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'

/**
 * How long idle connections stay open after the listening socket has closed. A request that was already on its way when
 * the process was told to stop arrives within this time and is answered; without it the client would see a reset.
 */
const graceMs = 300

/** Keeps the open sockets of a server, since Node counts a connection that never sent a request as busy. */
export function trackSockets(server: Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return sockets
}

/**
 * Stops accepting connections, lets the requests in flight finish, and closes what is left at the deadline. Resolves to
 * the number of connections that had to be cut.
 */
export async function drainServer(server: Server, sockets: ReadonlySet<Socket>, deadlineMs: number): Promise<number> {
  const started = performance.now()
  // `http.Server.close` would close idle connections at once, with requests for them perhaps already on the wire.
  NetServer.prototype.close.call(server)
  while (sockets.size > 0) {
    const elapsedMs = performance.now() - started
    if (elapsedMs >= deadlineMs) break
    if (elapsedMs >= graceMs) closeIdle(server, sockets)
    await delay(20)
  }
  const cut = sockets.size
  server.closeAllConnections()
  for (const socket of sockets) socket.destroy()
  return cut
}

function closeIdle(server: Server, sockets: ReadonlySet<Socket>): void {
  server.closeIdleConnections()
  for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
}
