/**
 * The mail port: how a finished message leaves the service.
 *
 * Two adapters: `smtp` hands messages to a mail server (`PORTICO_SMTP_URL`), `file-outbox` puts them into a folder for
 * people to read, which is what development uses. Who the mail comes from belongs to the adapter; when and how often a
 * message is tried belongs to `shared/mail`.
 */
export interface MailAddress {
  /** What people read; empty where nothing is known. */
  readonly name: string
  /** `local@domain`, without anything around it. */
  readonly address: string
}

export interface Message {
  /**
   * A UUID, the same in every attempt: it becomes the left side of the Message-ID, by which receivers recognise a message
   * that reaches them twice (RFC 5322 3.6.4).
   */
  readonly id: string
  /** Milliseconds since the epoch when the message was written; its `Date` header in every attempt. */
  readonly writtenAt: number
  readonly to: MailAddress
  readonly subject: string
  readonly text: string
  readonly html: string
}

export interface Mailer {
  /**
   * Resolves when the message was taken over for good. Rejects with a `MailError` within 60 seconds, or with a permanent
   * one at once where an address, a name or the subject could forge a header.
   */
  send(message: Message): Promise<void>
  /** Ends idle connections. Safe to call twice. */
  close(): Promise<void>
}

/**
 * The message was not taken. Its `message` may be logged and kept: it never quotes what was in the mail. `permanent` means
 * that the same message would be refused again (RFC 5321 4.2.1).
 */
export class MailError extends Error {
  override readonly name = 'MailError'
  readonly permanent: boolean

  constructor(sentence: string, { permanent, cause }: { permanent: boolean; cause?: unknown }) {
    super(sentence, { cause })
    this.permanent = permanent
  }
}

/** The longest address that a mail server must take (RFC 5321 4.5.3.1.3, less the angle brackets). */
export const addressLengthMax = 254
const addressShape = /^[^\s"(),:;<>@[\\\]\p{Cc}\p{Cf}]{1,64}@[^\s"(),:;<>@[\\\]\p{Cc}\p{Cf}]+$/u
const unsafeInHeaders = /[\p{Cc}\p{Zl}\p{Zp}]/u

/** Whether mail can be sent there: one address, in the plain form, without anything that means something in a header. */
export function isMailAddress(text: string): boolean {
  return text.length <= addressLengthMax && addressShape.test(text)
}

/**
 * Refuses what could end a header and begin another one. Every adapter asks before it composes, whoever has checked
 * before. Throws a permanent `MailError` that names the part and does not repeat it.
 */
export function refuseForgedHeaders({ to, subject }: Pick<Message, 'to' | 'subject'>): void {
  const refuse = (part: string): never => {
    throw new MailError(`${part} cannot stand in a header.`, { permanent: true })
  }
  if (!isMailAddress(to.address)) refuse('The address')
  if (unsafeInHeaders.test(to.name)) refuse('The name')
  if (unsafeInHeaders.test(subject)) refuse('The subject')
}
