import { once } from 'node:events'
import { createServer as createHttpServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'

/** A real server on loopback that stands for somebody else's. */
export interface Receiver {
  readonly port: number
  /** How many connections were opened to it, ever. */
  readonly connections: number
  /** Every request that came completely; none of `startTcp`. */
  readonly requests: readonly ReceivedRequest[]
  close(): Promise<void>
}

export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly connection: Socket
}

const answerOk: RequestListener = (_request, response) => response.end('ok')

/** Answers HTTP, or HTTPS with a certificate. The body of a request has been read by the time `answer` runs. */
export async function startReceiver(
  answer: RequestListener = answerOk,
  tls?: { readonly key: string; readonly cert: string },
): Promise<Receiver> {
  const requests: ReceivedRequest[] = []
  const listener: RequestListener = async (request, response) => {
    const { method, url, headers, socket } = request
    const body = await text(request).catch(() => '')
    requests.push({ method: method!, path: url!, headers, body, connection: socket })
    answer(request, response)
  }
  return listen(tls ? createHttpsServer(tls, listener) : createHttpServer(listener), requests)
}

/** Gives each connection to `talk`, which may break every rule of HTTP. */
export async function startTcp(talk: (socket: Socket) => void): Promise<Receiver> {
  return listen(
    createTcpServer({ allowHalfOpen: true }, (socket) => talk(socket)),
    [],
  )
}

async function listen(server: Server, requests: readonly ReceivedRequest[]): Promise<Receiver> {
  const sockets = new Set<Socket>()
  let connections = 0
  server.on('connection', (socket: Socket) => {
    connections++
    sockets.add(socket)
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    requests,
    get connections() {
      return connections
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}
