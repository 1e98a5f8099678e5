/**
 * What the service writes to people. Each kind of message is a pure function of its variables; names come from customers
 * and are data: they are made one line, cut and escaped. Links are absolute, and nothing is loaded from anywhere.
 */
export interface MailContent {
  readonly subject: string
  readonly text: string
  readonly html: string
}

/** An action that the recipient takes in the browser. */
interface Action {
  /** An absolute http(s) URL; it holds the one-time token. */
  readonly link: string
  /** Until when the link works, ISO 8601. */
  readonly expiresAt: string
  /** The request that does the same, for those who work without a browser: one line for each of its parts. */
  readonly request?: readonly string[]
}

export interface TenantInvitation extends Action {
  readonly organizationName: string
  readonly inviterName: string
}

export interface TenantPasswordReset extends Action {
  readonly organizationName: string
}

export interface BuilderInvitation extends Action {
  readonly accountName: string
  readonly inviterName: string
  /** The role in the account, as the API calls it. */
  readonly role: string
}

export interface PasswordChanged {
  /** Where the password belongs: an organisation, or null for a builder's own. */
  readonly organizationName: string | null
  /** ISO 8601. */
  readonly changedAt: string
}

/** Every kind of message and how it is written. */
export const messages = {
  tenant_invitation: ({ organizationName, inviterName, ...action }: TenantInvitation) =>
    render(`${line(inviterName)} invites you to ${line(organizationName)}`, [
      `${line(inviterName)} has invited you to work in ${line(organizationName)}.`,
      { label: 'Accept the invitation', ...action },
      'If you do not know what this is about, you need not do anything.',
    ]),

  tenant_password_reset: ({ organizationName, ...action }: TenantPasswordReset) =>
    render(`Choose a new password for ${line(organizationName)}`, [
      `Somebody, probably you, has asked for a new password for your access to ${line(organizationName)}.`,
      { label: 'Choose a new password', ...action },
      'If it was not you, you need not do anything: your password stays as it is.',
    ]),

  builder_invitation: ({ accountName, inviterName, role, ...action }: BuilderInvitation) =>
    render(`${line(inviterName)} invites you to the team of ${line(accountName)}`, [
      `${line(inviterName)} has invited you to the team of ${line(accountName)}, as ${line(role)}.`,
      { label: 'Accept the invitation', ...action },
      'If you do not know what this is about, you need not do anything.',
    ]),

  builder_password_reset: (action: Action) =>
    render('Choose a new password for Portico', [
      'Somebody, probably you, has asked for a new password for your Portico builder account.',
      { label: 'Choose a new password', ...action },
      'If it was not you, you need not do anything: your password stays as it is.',
    ]),

  password_changed: ({ organizationName, changedAt }: PasswordChanged) => {
    const place = organizationName === null ? 'your Portico builder account' : line(organizationName)
    return render(`Your password for ${place} was changed`, [
      `The password for ${place} was changed on ${minute(changedAt)}.`,
      'If it was you, you need not do anything. If it was not, choose a new password at once and tell whoever runs the service.',
    ])
  },
} satisfies Record<string, (variables: never) => MailContent>

export type MailKind = keyof typeof messages

const nameLengthMax = 100

/**
 * A name on one line and of bounded length. Control and format characters go: they could end a header, or turn the
 * direction of what follows them.
 */
function line(name: string): string {
  const clean = name
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim()
    .toWellFormed()
  const characters = [...clean]
  return characters.length > nameLengthMax ? `${characters.slice(0, nameLengthMax - 1).join('')}…` : clean
}

type Part = string | (Action & { readonly label: string })

function render(subject: string, parts: readonly Part[]): MailContent {
  const paragraphs = parts.flatMap((part) =>
    typeof part === 'string' ? [`<p>${escapeHtml(part)}</p>`] : linkHtml(part),
  )
  return {
    subject,
    text: `${parts.map((part) => (typeof part === 'string' ? part : linkText(part))).join('\n\n')}\n`,
    html: [
      '<!doctype html>',
      '<html lang="en">',
      `<head><meta charset="utf-8"><title>${escapeHtml(subject)}</title></head>`,
      '<body style="font-family: sans-serif; font-size: 16px; line-height: 1.5; max-width: 36em">',
      ...paragraphs,
      '</body>',
      '</html>',
      '',
    ].join('\n'),
  }
}

function linkText({ label, link, expiresAt, request = [] }: Exclude<Part, string>): string {
  const call = request.length === 0 ? '' : `Or send this request:\n${request.join('\n')}\n\n`
  return `${label}:\n${absolute(link)}\n\n${call}The link works once, until ${minute(expiresAt)}.`
}

/** With the address in full as well: some programs show no links, and some people want to see where they go. */
function linkHtml({ label, link, expiresAt, request = [] }: Exclude<Part, string>): string[] {
  const address = escapeHtml(absolute(link))
  return [
    `<p><a href="${address}">${escapeHtml(label)}</a></p>`,
    `<p>Or copy this address into a browser:<br>${address}</p>`,
    ...(request.length === 0 ? [] : [`<p>Or send this request:<br>${request.map(escapeHtml).join('<br>')}</p>`]),
    `<p>The link works once, until ${minute(expiresAt)}.</p>`,
  ]
}

/** Throws where there is no absolute http(s) URL: a relative one leads nowhere from a mail program. */
function absolute(link: string): string {
  const url = URL.parse(link)
  if (!url || !/^https?:$/.test(url.protocol)) throw new Error('A link in a message must be an absolute http(s) URL.')
  return url.href
}

/** `2026-11-27 08:26 UTC`: nobody has to guess which is the month. */
function minute(iso: string): string {
  const text = new Date(iso).toISOString()
  return `${text.slice(0, 10)} ${text.slice(11, 16)} UTC`
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character]!)
}
