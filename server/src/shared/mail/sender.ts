import { isMailAddress, type MailAddress } from '../../ports/mail/port.ts'

/** `Name <local@domain>`, or the address alone. Throws an Error with words for people that do not repeat the value. */
export function readSender(text: string): MailAddress {
  const [, quoted, plain, address = text] = /^(?:"([^"\\]*)"|([^"<>\\]*?))\s*<([^<>]*)>$/.exec(text) ?? []
  const name = quoted ?? plain ?? ''
  if (!isMailAddress(address) || /\p{Cc}/u.test(name)) throw new Error('must be an address, or Name <address>')
  return { name, address }
}

/**
 * `smtps://user:password@host:port` or `smtp://…` and nothing after it, so that no parameter can turn TLS off. Throws as
 * above; the URL holds a password.
 */
export function readSmtpUrl(text: string): string {
  const url = URL.parse(text)
  const isServer = url && /^smtps?:$/.test(url.protocol) && url.hostname !== '' && /^\/?$/.test(url.pathname)
  if (!isServer || url.search !== '' || url.hash !== '' || !isDecodable(url.username + url.password)) {
    throw new Error('must be smtps://user:password@host:port or smtp://user:password@host:port, percent-encoded')
  }
  return text
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
