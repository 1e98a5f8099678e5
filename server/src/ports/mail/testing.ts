/** What the tests of mail share: a mail server that speaks SMTP on a port of its own, and a reader of what it got. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'

export interface MailServer {
  /** `smtp://127.0.0.1:<port>`. */
  readonly url: string
  readonly port: number
  /** What was taken, as it came over the wire. */
  readonly received: string[]
  /** How many times a message was offered, taken or not. */
  readonly offered: () => number
  /** Answers every message with this from now on, or takes them again. */
  refuse(code: number | null, words?: string): void
  /** Addresses that it does not take mail for. */
  readonly unknown: Set<string>
  close(): Promise<void>
}

export async function startMailServer(options: SMTPServerOptions = {}): Promise<MailServer> {
  const received: string[] = []
  const unknown = new Set<string>()
  let offered = 0
  let refusal: Error | null = null
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: options.key ? [] : ['STARTTLS'],
    disableReverseLookup: true,
    logger: false,
    onRcptTo: ({ address }, _session, done) =>
      done(unknown.has(address) ? smtpError(550, '5.1.1 nobody of that name') : null),
    onData: (stream, _session, done) => {
      offered++
      text(stream).then((message) => {
        if (!refusal) received.push(message)
        done(refusal)
      }, done)
    },
    ...options,
  })
  // Clients that hang up in the middle.
  server.on('error', () => {})
  const listener = server.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const { port } = listener.address() as AddressInfo
  return {
    url: `smtp://127.0.0.1:${port}`,
    port,
    received,
    offered: () => offered,
    refuse(code, words = 'not now') {
      refusal = code === null ? null : smtpError(code, words)
    },
    unknown,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

function smtpError(responseCode: number, words: string): Error {
  return Object.assign(new Error(words), { responseCode })
}

export interface ReadMail {
  /** By their names in lower case; encoded words decoded (RFC 2047). */
  readonly headers: ReadonlyMap<string, string>
  readonly text: string
  readonly html: string
}

/** Reads a message as a mail program would, as far as ours go: two parts, quoted-printable (RFC 2045, 2046). */
export function readMail(source: string): ReadMail {
  const { headers, body } = split(source)
  const boundary = /boundary="([^"]+)"/.exec(headers.get('content-type') ?? '')?.[1] ?? 'none'
  const parts = body.split(new RegExp(`(?:^|\r\n)--${boundary}(?:--)?\r\n`)).map(split)
  const part = (type: string) => parts.find((one) => one.headers.get('content-type')?.startsWith(type))
  return { headers, text: decoded(part('text/plain')), html: decoded(part('text/html')) }
}

interface Part {
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

function split(source: string): Part {
  const end = source.indexOf('\r\n\r\n')
  const lines = source
    .slice(0, end)
    .replace(/\r\n[ \t]/g, ' ')
    .split('\r\n')
  const headers = lines.map((one): [string, string] => {
    const colon = one.indexOf(':')
    return [one.slice(0, colon).toLowerCase(), words(one.slice(colon + 1).trim())]
  })
  return { headers: new Map(headers), body: source.slice(end + 4) }
}

function words(value: string): string {
  return value
    .replace(/\?=\s+=\?/g, '?==?')
    .replace(/=\?utf-8\?([bq])\?([^?]*)\?=/gi, (_, encoding: string, content: string) =>
      encoding.toLowerCase() === 'b' ? Buffer.from(content, 'base64').toString() : octets(content.replaceAll('_', ' ')),
    )
}

function decoded(part: Part | undefined): string {
  if (!part) return ''
  const isQuoted = part.headers.get('content-transfer-encoding') === 'quoted-printable'
  return (isQuoted ? octets(part.body.replace(/=\r\n/g, '')) : part.body).replaceAll('\r\n', '\n')
}

function octets(content: string): string {
  const bytes = content.replace(/=([0-9A-F]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}
