import { type MailContent, messages } from '../../src/shared/mail/messages.ts'
import type { MailQueue, NewMail } from '../../src/shared/mail/queue.ts'

/** Takes mail as the queue would, after the commit, and lets a test read it. */
export interface Mailbox extends MailQueue {
  readonly received: readonly ReceivedMail[]
  /** The newest message to an address; throws where there is none. */
  newestTo(address: string): ReceivedMail
}

export interface ReceivedMail extends MailContent {
  readonly to: NewMail['to']
  readonly kind: NewMail['kind']
  readonly variables: NewMail['variables']
}

export function createMailbox(): Mailbox {
  const received: ReceivedMail[] = []
  return {
    received,
    async enqueue({ now, afterCommit }, { to, kind, variables }) {
      const content = (messages[kind] as (variables: unknown) => MailContent)(variables)
      afterCommit(() => void received.push({ to, kind, variables, ...content }))
      return `${now}`
    },
    newestTo(address) {
      const mail = received.findLast(({ to }) => to.address === address)
      if (!mail) throw new Error(`No mail came for ${address}.`)
      return mail
    },
  }
}
