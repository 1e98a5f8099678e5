import type { ConnectionOptions } from 'node:tls'
import { createTransport, type NodemailerError, type SMTPPoolOptions } from 'nodemailer'
import { compose } from './compose.ts'
import { type MailAddress, MailError, type Mailer } from './port.ts'

export interface SmtpOptions {
  /** `smtps://user:password@host:port` (TLS from the start) or `smtp://…` (STARTTLS). Name and password percent-encoded. */
  readonly url: string
  readonly from: MailAddress
  /** More authorities to trust than those of Node, which also takes them from `NODE_EXTRA_CA_CERTS`. */
  readonly tls?: Pick<ConnectionOptions, 'ca'>
  /** Longest that one message may take, all told. */
  readonly sendTimeoutMs?: number
}

/** As many as `shared/mail` sends at once, so that nothing waits inside the pool. */
const connectionsMax = 5
const silenceMsMax = 30_000
const reachWithinMs = 10_000
const sendTimeoutMsMax = 60_000

/** Hands messages to a mail server, over connections that are kept and used again (RFC 5321). */
export function createSmtpMailer(options: SmtpOptions): Mailer {
  const { url, from, tls = {}, sendTimeoutMs = sendTimeoutMsMax } = options
  const pool = createTransport({ ...smtpSettings(url), tls: { ...tls, minVersion: 'TLSv1.2' } })
  return {
    async send(message) {
      const composed = compose(message, from)
      try {
        // A server that keeps sending a byte before each silence is long enough would hold the message for ever.
        await pool.sendMail({ ...composed, signal: AbortSignal.timeout(sendTimeoutMs) })
      } catch (error) {
        throw explain(error as NodemailerError)
      }
    },
    async close() {
      pool.close()
    },
  }
}

/**
 * What nodemailer is told for a URL. TLS is always verified and never optional, except on the way to a server on this
 * machine: nobody listens there, and what it shows is rarely a certificate for `localhost`.
 */
export function smtpSettings(url: string): SMTPPoolOptions & { readonly pool: true } {
  const { protocol, hostname, port, username, password } = new URL(url)
  const secure = protocol === 'smtps:'
  const isHere = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/i.test(hostname)
  return {
    pool: true,
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? (secure ? 465 : 587) : Number(port),
    secure,
    requireTLS: !secure && !isHere,
    ignoreTLS: !secure && isHere,
    ...(username !== '' && { auth: { user: decodeURIComponent(username), pass: decodeURIComponent(password) } }),
    maxConnections: connectionsMax,
    // Whether to try again is decided by the queue, which writes it down.
    maxRequeues: 0,
    connectionTimeout: reachWithinMs,
    greetingTimeout: reachWithinMs,
    dnsTimeout: reachWithinMs,
    socketTimeout: silenceMsMax,
  }
}

/**
 * A refusal is permanent when the server said so about the recipient or the message. A wrong password, a sender that it
 * does not allow or a server that takes no mail at the moment is not the message's fault, and somebody may mend it before
 * the last attempt.
 */
function explain(error: NodemailerError): MailError {
  const { code, command, responseCode } = error
  const ofMessage = command === 'RCPT TO' || command === 'DATA'
  const permanent =
    responseCode === undefined ? code === 'EENVELOPE' || code === 'EMESSAGE' : ofMessage && error.permanent === true
  return new MailError(describe(error), { permanent })
}

const wordsMax = 200

/**
 * Codes and the step at which it happened. The words of the server only from before it saw the message: filters like to
 * quote the link that they object to, and the link holds a one-time token.
 */
function describe({
  code = 'error',
  originalCode,
  responseCode,
  response = '',
  command = '',
}: NodemailerError): string {
  if (responseCode === undefined) return `SMTP ${code}${originalCode ? ` (${originalCode})` : ''}`
  if (command === 'MAIL FROM' || command === 'RCPT TO') return `SMTP ${command}: ${response.slice(0, wordsMax)}`
  const enhanced = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1]
  return `SMTP ${command}: ${[responseCode, enhanced].filter(Boolean).join(' ')}`
}
