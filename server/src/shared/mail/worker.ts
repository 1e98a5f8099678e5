import type { Clock } from '../../kernel/clock.ts'
import { MailError, type Mailer } from '../../ports/mail/port.ts'
import type { Database } from '../database/database.ts'
import type { Log } from '../log.ts'
import type { Secrets } from '../secrets.ts'
import { openMail } from './queue.ts'
import { type ClaimedMail, claimMail, markFailed, markSent, putBack } from './store.ts'

export interface MailWorker {
  /** Looks for messages now. Resolves when those that were due have been sent or put back; nobody has to wait for that. */
  wake(): Promise<void>
  /** Takes no more messages and waits for those under way, ten seconds at most; the next worker sends what is left. */
  close(): Promise<void>
}

interface Parts {
  readonly database: Database
  readonly mailer: Mailer
  readonly secrets: Pick<Secrets, 'open'>
  readonly clock: Clock
  readonly log: Log
}

const minuteMs = 60_000
/** For messages that another process left, and for second attempts: whoever enqueues wakes the worker. */
const lookEveryMs = 15_000
/** As many as a mailer has connections. */
const atOnceMax = 5
/** A mailer takes a minute at most: a message that is still out after five has lost its worker. */
export const leaseMs = 5 * minuteMs
export const attemptsMax = 10
/** After the first attempt, the second and so on; the last one holds for all that follow. 32 hours in all. */
const retryAfterMs = [1, 5, 30, 120, 360].map((minutes) => minutes * minuteMs)
const closeWithinMs = 10_000
const linkExpired = 'The link in it works no more.'

/**
 * Sends what is in `portico.mail_message`, at least once: a message whose worker dies between the mail server's answer and
 * the row that says so is sent again, under the same Message-ID. No transaction is open while it talks to the mail server.
 * Any number of workers may share one database.
 */
export function createMailWorker({ database, mailer, secrets, clock, log }: Parts): MailWorker {
  const sending = new Set<Promise<void>>()
  let looking: Promise<void> | undefined
  let again = false
  let closed = false
  const timer = setInterval(() => void wake(), lookEveryMs).unref()

  async function wake(): Promise<void> {
    again = true
    looking ??= look().finally(() => {
      looking = undefined
      // Woken in the moment between the last look and now.
      if (again && !closed) void wake()
    })
    await looking
    await Promise.all(sending)
  }

  /** One at a time for each worker; a wake during a look makes it look once more. */
  async function look(): Promise<void> {
    while (again && !closed) {
      again = false
      try {
        await takeAll()
      } catch (error) {
        log.warn({ err: error }, 'Mail could not be read from the database; looking again soon.')
      }
    }
  }

  async function takeAll(): Promise<void> {
    while (!closed) {
      if (sending.size === atOnceMax) await Promise.race(sending)
      const count = atOnceMax - sending.size
      const claimed = await claimMail(database, { now: clock.now(), leaseMs, attemptsMax, count })
      for (const mail of claimed) start(mail)
      if (claimed.length === 0) return
    }
  }

  function start(mail: ClaimedMail): void {
    const done = deliver(mail)
      // The lease brings it back.
      .catch((error) => log.warn({ err: error, mailId: mail.mailId }, 'What became of a message could not be written.'))
      .finally(() => sending.delete(done))
    sending.add(done)
  }

  async function deliver(mail: ClaimedMail): Promise<void> {
    const { mailId, kind, attempts, expiresAt } = mail
    if (expiresAt !== null && Date.parse(expiresAt) <= clock.now()) return giveUp(mail, linkExpired)
    try {
      await send(mail)
    } catch (error) {
      return failed(mail, error)
    }
    await markSent(database, mail, clock.now())
    log.info({ mailId, kind, attempts }, 'A message was sent.')
  }

  async function send({ mailId, recipient, sealed, createdAt }: ClaimedMail): Promise<void> {
    const { toName, ...content } = await openMail(secrets, mailId, sealed)
    const to = { name: toName, address: recipient }
    await mailer.send({ id: mailId, writtenAt: Date.parse(createdAt), to, ...content })
  }

  async function failed(mail: ClaimedMail, error: unknown): Promise<void> {
    const { mailId, kind, attempts } = mail
    // Other errors may quote what they were about, so only the mailer's own words are kept.
    const refusal = error instanceof MailError ? error : undefined
    const reason = refusal?.message ?? 'The message could not be unsealed or handed over; the log says why.'
    const cause = refusal ? {} : { err: error }
    if (refusal?.permanent || attempts >= attemptsMax) return giveUp(mail, reason, cause)
    const waitMs = retryAfterMs[Math.min(attempts, retryAfterMs.length) - 1]!
    await putBack(database, mail, clock.now() + waitMs, reason)
    log.warn({ mailId, kind, attempts, reason, ...cause }, 'A message could not be sent; trying again later.')
  }

  async function giveUp(mail: ClaimedMail, reason: string, cause: { readonly err?: unknown } = {}): Promise<void> {
    const { mailId, kind, attempts } = mail
    await markFailed(database, mail, clock.now(), reason)
    log.error({ mailId, kind, attempts, reason, ...cause }, 'A message was given up.')
  }

  return {
    wake,
    async close() {
      closed = true
      clearInterval(timer)
      let late: NodeJS.Timeout | undefined
      const deadline = new Promise<void>((resolve) => {
        late = setTimeout(resolve, closeWithinMs).unref()
      })
      await Promise.race([Promise.all([looking, ...sending]), deadline])
      clearTimeout(late)
    },
  }
}
