import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { isMailAddress, type MailAddress } from '../../ports/mail/port.ts'
import type { Secrets } from '../secrets.ts'
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
   * the message. Throws `validation_failed` for the field `email` where no mail can be sent there.
   */
  enqueue(occasion: MailOccasion, mail: NewMail): Promise<string>
}

/** The letter box. `wake` is told after each commit that left something in it. */
export function createMailQueue({ secrets, wake }: { secrets: Pick<Secrets, 'seal'>; wake: () => void }): MailQueue {
  return {
    async enqueue({ tx, now, afterCommit }, mail) {
      if (!isMailAddress(mail.to.address)) {
        throw fail('validation_failed', { field: 'email', message: 'Mail cannot be sent to this address.' })
      }
      const mailId = uuidv7(now)
      const { organizationId, accountId, kind } = mail
      const owner = organizationId === undefined ? { accountId: accountId! } : { organizationId }
      const sealed = await sealMail(secrets, mailId, { toName: mail.to.name, ...write(mail) })
      await insertMail(tx, { ...owner, mailId, kind, recipient: mail.to.address, sealed, now })
      afterCommit(wake)
      return mailId
    },
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
