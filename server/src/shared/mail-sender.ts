import type { Tx } from '../kernel/transaction.ts'

/** A message to one person, rendered. */
export interface Mail {
  readonly to: { readonly name: string; readonly address: string }
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** Puts mail into the queue in the transaction of the change that it is about. It leaves after the commit, or never. */
export interface MailSender {
  send(
    occasion: { readonly tx: Tx; readonly now: number; afterCommit(work: () => void): void },
    mail: Mail,
  ): Promise<void>
}
