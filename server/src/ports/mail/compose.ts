import type { SendMailOptions } from 'nodemailer'
import { type MailAddress, type Message, refuseForgedHeaders } from './port.ts'

/**
 * A message as nodemailer takes it, the same for both adapters: what a developer finds in the outbox is what a mail server
 * gets. Throws a permanent `MailError` where a part could forge a header.
 */
export function compose(message: Message, from: MailAddress) {
  refuseForgedHeaders(message)
  const { id, writtenAt, to, subject, text, html } = message
  return {
    from: { name: from.name, address: from.address },
    to: { name: to.name, address: to.address },
    subject,
    text,
    html,
    messageId: `<${id}@${from.address.slice(from.address.lastIndexOf('@') + 1)}>`,
    date: new Date(writtenAt),
    // No out-of-office replies to a machine (RFC 3834 5).
    headers: { 'Auto-Submitted': 'auto-generated' },
    // Lines of 76 characters that are still readable in a file.
    textEncoding: 'quoted-printable',
    // A message is only what it says, whatever it says.
    disableFileAccess: true,
    disableUrlAccess: true,
  } satisfies SendMailOptions
}
