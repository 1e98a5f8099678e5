import { connect, type Socket } from 'node:net'

/**
 * The load client, in a process of its own: a fixed number of keep-alive connections, each sends its next request when
 * the last answer is complete. It speaks HTTP by hand on bare sockets, because on two cores every microsecond of the
 * client is one that the server under test does not get (about 10 µs for a request here, 50 µs with `node:http`).
 */
export interface LoadPlan {
  readonly port: number
  readonly connections: number
  readonly durationMs: number
  /** Whole requests, used in turn. `{unique}` becomes a value that was never sent before. */
  readonly requests: readonly string[]
  readonly status: number
}

export interface LoadResult {
  readonly requests: number
  readonly requestsPerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  readonly bytesPerAnswer: number
}

const headEnd = Buffer.from('\r\n\r\n')
const latenciesMax = 2_000_000
/** Keys of one run must not meet those of another on the same database. */
const run = Date.now().toString(36)
let sent = 0

async function load(plan: LoadPlan): Promise<LoadResult> {
  const parts = plan.requests.map((request) => request.split('{unique}'))
  const latenciesMs = new Float64Array(latenciesMax)
  let done = 0
  let bytes = 0
  const started = performance.now()
  const deadline = started + plan.durationMs

  function nextRequest(): string {
    const [head = '', ...rest] = parts[sent++ % parts.length]!
    return rest.length === 0 ? head : head + rest.map((part) => `${run}-${sent}${part}`).join('')
  }

  function converse(socket: Socket): Promise<void> {
    return new Promise((resolve, reject) => {
      let sentAt = 0
      let received: Buffer | undefined
      let wanted = -1
      const send = () => {
        sentAt = performance.now()
        if (sentAt >= deadline) {
          socket.destroy()
          resolve()
        } else socket.write(nextRequest(), 'latin1')
      }
      socket.on('data', (chunk) => {
        received = received ? Buffer.concat([received, chunk]) : chunk
        if (wanted < 0) wanted = answerLength(received, plan.status)
        if (wanted < 0 || received.length < wanted) return
        latenciesMs[done++ % latenciesMax] = performance.now() - sentAt
        bytes += wanted
        received = undefined
        wanted = -1
        send()
      })
      socket.on('error', reject)
      socket.on('close', () => reject(new Error('The server closed a connection.')))
      send()
    })
  }

  const sockets = await Promise.all(Array.from({ length: plan.connections }, () => open(plan.port)))
  await Promise.all(sockets.map(converse))
  const elapsedMs = performance.now() - started
  const sorted = latenciesMs.subarray(0, Math.min(done, latenciesMax)).sort()
  return {
    requests: done,
    requestsPerSecond: (done / elapsedMs) * 1000,
    p50Ms: sorted[Math.floor(sorted.length * 0.5)]!,
    p99Ms: sorted[Math.floor(sorted.length * 0.99)]!,
    bytesPerAnswer: Math.round(bytes / done),
  }
}

/** Of head and body, or -1 while the head is not complete. Anything but the expected status ends the run. */
function answerLength(bytes: Buffer, status: number): number {
  const end = bytes.indexOf(headEnd)
  if (end < 0) return -1
  const head = bytes.toString('latin1', 0, end)
  if (!head.startsWith(`HTTP/1.1 ${status} `)) throw new Error(`Unexpected answer: ${bytes.toString()}`)
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1]
  if (length === undefined) throw new Error(`An answer without a length: ${head}`)
  return end + headEnd.length + Number(length)
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    socket.once('connect', () => resolve(socket))
    socket.once('error', reject)
  })
}

process.on('message', async (plan: LoadPlan) => process.send!(await load(plan)))
