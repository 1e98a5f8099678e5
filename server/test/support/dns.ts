import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { type Answer, AUTHORITATIVE_ANSWER, decode, encode, type Packet } from 'dns-packet'

/** A name server on loopback, over UDP (RFC 1035). It knows what tests publish; of other names it says that there are none. */
export interface NameServer {
  /** `ip:port`, as PORTICO_DNS_SERVERS takes it. */
  readonly address: string
  /** Every name that was asked for. */
  readonly asked: readonly string[]
  /** The TXT records of a name; none: the name is there and has no such record. */
  publish(name: string, ...values: readonly string[]): void
  /** The addresses of a name, A and AAAA. */
  publishAddresses(name: string, ...addresses: readonly string[]): void
  /** What becomes of questions about a name: an answer without an answer, or silence. */
  fail(name: string, how: 'SERVFAIL' | 'REFUSED' | 'silence'): void
  /** Runs before each answer. */
  beforeAnswer: ((name: string) => Promise<void>) | undefined
  close(): Promise<void>
}

/** The response code in the flags of the header (RFC 1035 4.1.1). */
const codes = { NOERROR: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 } as const

/** Values are cut into strings of 255 octets, as the format demands (RFC 1035 3.3). */
function pieces(value: string): string[] {
  return value.match(/[\s\S]{1,255}/g) ?? ['']
}

export async function startNameServer(): Promise<NameServer> {
  const records = new Map<string, readonly Answer[]>()
  const failures = new Map<string, 'SERVFAIL' | 'REFUSED' | 'silence'>()
  const asked: string[] = []
  const socket = createSocket('udp4')

  function responseTo({ id, questions }: Packet, name: string): Packet {
    const failure = failures.get(name) as keyof typeof codes | undefined
    const code = failure ?? (records.has(name) ? 'NOERROR' : 'NXDOMAIN')
    const answers = code === 'NOERROR' ? records.get(name)! : []
    return {
      type: 'response',
      id,
      flags: AUTHORITATIVE_ANSWER | codes[code],
      questions,
      answers: answers.filter(({ type }) => type === questions![0]!.type),
    }
  }

  const server: NameServer = {
    address: '',
    asked,
    beforeAnswer: undefined,
    publish(name, ...values) {
      records.set(
        name,
        values.map((value) => ({ type: 'TXT', name, ttl: 0, data: pieces(value) })),
      )
    },
    publishAddresses(name, ...addresses) {
      const answerOf = (data: string): Answer => ({ type: isIPv6(data) ? 'AAAA' : 'A', name, ttl: 0, data })
      records.set(name, addresses.map(answerOf))
    },
    fail: (name, how) => void failures.set(name, how),
    async close() {
      socket.close()
      await once(socket, 'close')
    },
  }
  socket.on('message', async (message, { address, port }) => {
    const packet = decode(message)
    const name = packet.questions![0]!.name.toLowerCase()
    asked.push(name)
    await server.beforeAnswer?.(name)
    if (failures.get(name) !== 'silence') socket.send(encode(responseTo(packet, name)), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return Object.assign(server, { address: `127.0.0.1:${socket.address().port}` })
}
