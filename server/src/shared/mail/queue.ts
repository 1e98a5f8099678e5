import { Failure, fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { isMailAddress, type MailAddress } from '../../ports/mail/port.ts'
import type { Secrets } from '../secrets.ts'
import { mailLimits, mailPriorities, mailPurposes } from './limits.ts'
import { type MailContent, type MailKind, messages } from './messages.ts'
import { insertMail, type MailOwner } from './store.ts'

/** A message to be written: whose it is, to whom, of which kind, and what that kind needs to know. */
export type NewMail = MailOwner & {
  readonly to: MailAddress
} & { [K in MailKind]: { readonly kind: K; readonly variables: Parameters<(typeof messages)[K]>[0] } }[MailKind]

/** Where it happens; the context of a handler is one. */
export interface MailOccasion {
  readonly tx: Tx
  readonly now: number
  afterCommit(work: () => void): void
}

export interface MailQueue {
  /**
   * Writes a message in the transaction of the change that causes it: it is sent when that commits, and never was when it
   * does not. A bound transaction may write for the organisation or the account that it is bound to. Returns the id of
   * the message. Throws `validation_failed` for the field `email` where no mail can be sent there, and
   * `mail_limit_reached` where enough was (limits.ts); a notice is left out then, and undefined is returned.
   */
  enqueue(occasion: MailOccasion, mail: NewMail): Promise<string | undefined>
}

/** The letter box. `wake` is told after each commit that left something in it. */
export function createMailQueue({ secrets, wake }: { secrets: Pick<Secrets, 'seal'>; wake: () => void }): MailQueue {
  return {
    async enqueue({ tx, now, afterCommit }, mail) {
      if (!isMailAddress(mail.to.address)) {
        throw fail('validation_failed', { field: 'email', message: 'Mail cannot be sent to this address.' })
      }
      const mailId = uuidv7(now)
      const { organizationId, accountId, kind, variables } = mail
      const purpose = mailPurposes[kind]
      const owner = organizationId === undefined ? { accountId: accountId! } : { organizationId }
      const sealed = await sealMail(secrets, mailId, { toName: mail.to.name, ...write(mail) })
      const kept = { mailId, kind, recipient: mail.to.address, sealed, now, priority: mailPriorities[purpose] }
      const expiresAt = 'expiresAt' in variables ? variables.expiresAt : null
      const counted = { purpose, limits: mailLimits[purpose] }
      const freeAt = await insertMail(tx, { ...owner, ...kept, expiresAt }, counted)
      if (freeAt !== null) {
        // What was done is done, and told often enough.
        if (purpose === 'notice') return undefined
        throw fail('mail_limit_reached', { retryAfterSeconds: (Date.parse(freeAt) - now) / 1000 })
      }
      afterCommit(wake)
      return mailId
    },
  }
}

/**
 * For answers that must not tell who is known: where a limit of mail is reached, the transaction that would have sent one is
 * undone, and nobody learns of it.
 */
export async function withinMailLimits(transaction: Promise<void>): Promise<void> {
  try {
    await transaction
  } catch (error) {
    if (!(error instanceof Failure && error.code === 'mail_limit_reached')) throw error
  }
}

/** The compiler cannot see that kind and variables belong together. */
function write({ kind, variables }: NewMail): MailContent {
  return (messages[kind] as (variables: unknown) => MailContent)(variables)
}

/** What is sealed of a message. */
export interface SealedContent extends MailContent {
  readonly toName: string
}

/** Bound to the row: a sealed content that was moved to another row does not open. */
const contextOf = (mailId: string) => ['mail', mailId]

function sealMail(secrets: Pick<Secrets, 'seal'>, mailId: string, content: SealedContent): Promise<Buffer> {
  return secrets.seal(JSON.stringify(content), contextOf(mailId))
}

/** The reverse, for the worker. Rejects where the key is out of reach or the content is not that of this message. */
export async function openMail(
  secrets: Pick<Secrets, 'open'>,
  mailId: string,
  sealed: Uint8Array,
): Promise<SealedContent> {
  return JSON.parse((await secrets.open(sealed, contextOf(mailId))).toString('utf8'))
}
