import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'

/**
 * Receivers of the webhook benchmark, in a process of their own: one that answers at once, and one of each kind that does what
 * receivers should not. Told `report`, it says what came to the good one since the last time, and when.
 */
export interface Arrival {
  /** Of the event: the id of its record. */
  readonly subjectId: string
  /** Milliseconds since the epoch, with fractions. */
  readonly at: number
}

export interface ReceiverPorts {
  readonly good: number
  readonly hang: number
  readonly drip: number
  readonly reset: number
  readonly redirect: number
  readonly endless: number
  readonly week: number
}

const now = () => performance.timeOrigin + performance.now()
const ok = 'HTTP/1.1 200 OK\r\n'
let arrivals: Arrival[] = []

function good(request: IncomingMessage, response: ServerResponse): void {
  let body = ''
  request.setEncoding('latin1')
  request.on('data', (chunk: string) => {
    body += chunk
  })
  request.on('end', () => {
    const at = now()
    response.end()
    // Its own parsing would take from what is measured.
    const from = body.indexOf('"id":"', body.indexOf('"subject":'))
    arrivals.push({ subjectId: body.slice(from + 6, from + 42), at })
  })
}

const talks: Record<'hang' | 'drip' | 'reset' | 'endless', (socket: Socket) => void> = {
  hang: () => {},
  drip: (socket) => {
    socket.write(`${ok}content-length: 99999\r\n\r\n`)
    const timer = setInterval(() => socket.write('.'), 200)
    socket.on('close', () => clearInterval(timer))
  },
  reset: (socket) => socket.resetAndDestroy(),
  endless: (socket) => {
    socket.write(`${ok}\r\n`)
    const write = () => {
      while (!socket.destroyed && socket.write('x'.repeat(16_384)));
    }
    socket.on('drain', write)
    write()
  },
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const talking = (talk: (socket: Socket) => void) =>
  listen(
    createTcpServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => talk(socket))
      socket.on('data', () => {})
    }),
  )

const ports: ReceiverPorts = {
  good: await listen(createHttpServer(good)),
  hang: await talking(talks.hang),
  drip: await talking(talks.drip),
  reset: await talking(talks.reset),
  endless: await talking(talks.endless),
  redirect: await listen(
    createHttpServer((request, response) => {
      request.resume()
      response.writeHead(302, { location: 'http://127.0.0.1/' }).end()
    }),
  ),
  week: await listen(
    createHttpServer((request, response) => {
      request.resume()
      response.writeHead(503, { 'retry-after': '604800' }).end()
    }),
  ),
}
process.on('message', () => {
  process.send!(arrivals)
  arrivals = []
})
process.on('disconnect', () => process.exit(0))
process.send!(ports)
