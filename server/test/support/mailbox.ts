import type { Mail, MailSender } from '../../src/shared/mail-sender.ts'

/** Takes mail as the queue would, after the commit, and lets a test read it. */
export interface Mailbox extends MailSender {
  readonly received: readonly Mail[]
  /** The newest message to an address; throws where there is none. */
  newestTo(address: string): Mail
}

export function createMailbox(): Mailbox {
  const received: Mail[] = []
  return {
    received,
    send: async ({ afterCommit }, mail) => afterCommit(() => void received.push(mail)),
    newestTo(address) {
      const mail = received.findLast(({ to }) => to.address === address)
      if (!mail) throw new Error(`No mail came for ${address}.`)
      return mail
    },
  }
}
