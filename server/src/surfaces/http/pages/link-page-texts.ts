/** What the pages behind the links in mails ask for and say. */
export interface LinkPage {
  /** Takes the token and what was filled in. */
  readonly operationId: string
  readonly title: string
  readonly introduction: string
  readonly fields: readonly Field[]
  readonly button: string
  readonly aboutLink: string
  /** Comes in the place of the form. `data-of` names the property of the answer that stands there. */
  readonly done: { readonly title: string; readonly paragraphs: readonly string[] }
}

/** Named like the property of the body, so that the refusal of the operation finds its field. */
export type Field =
  | {
      readonly name: string
      readonly label: string
      readonly hint: string
      readonly attributes: string
      readonly hidden?: true
    }
  | { readonly together: readonly Field[] }

/** What the schema NewPassword demands; a test holds both together. */
export const newPasswordHint = 'At least 10 characters, any of them: a few words are better than one with signs in it.'
const secret = 'type="password" autocomplete="new-password" required data-secret'
const text = 'type="text" spellcheck="false"'

function tokenField(hint: string): Field {
  const attributes = `${text} autocomplete="off" autocapitalize="off" required`
  return { name: 'token', label: 'Token of the link', hint, attributes, hidden: true }
}

const behindTheMark = 'What follows “token=” in the link of the mail, or the whole link.'

function personField(hint: string): Field {
  return { name: 'displayName', label: 'Your name', hint, attributes: `${text} autocomplete="name"` }
}

function newPasswordField(name: string): Field {
  return { name, label: 'New password', hint: newPasswordHint, attributes: secret }
}

const worksOnce = 'The link works once, until the time that the mail names.'

export const builderInvitation: LinkPage = {
  operationId: 'developerPlatformTeamInvitationsAccept',
  title: 'Accept the invitation',
  introduction:
    'You have been invited to a team of builders on this Portico service, or make the first account of a new one.',
  fields: [
    tokenField(`${behindTheMark} A new installation has one in the file setup-token of its data directory.`),
    {
      together: [
        {
          name: 'email',
          label: 'Your email address',
          hint: 'You sign in with it.',
          attributes: 'type="email" autocomplete="username" required',
        },
        {
          name: 'accountName',
          label: 'Name of the account',
          hint: 'For instance that of your company; your own if you leave it empty.',
          attributes: `${text} autocomplete="organization"`,
        },
      ],
    },
    personField('May stay empty if you have signed in on this service before.'),
    {
      name: 'password',
      label: 'Password',
      hint: `If you are new here, choose one. ${newPasswordHint} If you have signed in here before, the one you have.`,
      attributes: secret,
    },
    {
      name: 'totpCode',
      label: 'Code of your second factor',
      hint: 'The six digits that your authenticator shows, or one of your recovery codes.',
      attributes: `${text} autocomplete="one-time-code" autocapitalize="off" data-asked-by="totp_required"`,
      hidden: true,
    },
  ],
  button: 'Accept the invitation',
  aboutLink: `${worksOnce} If it works no longer, ask whoever invited you for another one.`,
  done: {
    title: 'You are in the team',
    paragraphs: [
      'You work in the account <strong data-of="account.name"></strong>, in the role <strong data-of="role"></strong>.',
      'You sign in with <strong data-of="builder.email"></strong> and your password: <code>POST /v1/platform/sessions</code>.',
      `<label for="session">You are signed in already. This token is your session, for twelve hours</label>
       <span class="hint" id="session-hint">Keep it to yourself. It is shown here and nowhere else.</span>
       <input id="session" readonly data-of="token" spellcheck="false" aria-describedby="session-hint" />`,
      'What you can do with it is in the <a href="/docs" target="_blank" rel="noopener">API reference</a> (another tab), which asks for the token.',
    ],
  },
}

export const builderReset: LinkPage = {
  operationId: 'developerPlatformPasswordResetsComplete',
  title: 'Choose a new password',
  introduction: 'For your Portico builder account.',
  fields: [tokenField(behindTheMark), newPasswordField('newPassword')],
  button: 'Change the password',
  aboutLink: `${worksOnce} If it works no longer, ask for another one: <code>POST /v1/platform/password-resets</code>.`,
  done: {
    title: 'Your password was changed',
    paragraphs: [
      'All your sessions have ended. Sign in with the new password: <code>POST /v1/platform/sessions</code>.',
      'A second factor stays as it is.',
    ],
  },
}

export const tenantInvitation: LinkPage = {
  operationId: 'developerTenantInvitationsAccept',
  title: 'Accept the invitation',
  introduction: 'You have been invited to work here. Choose a password, with which you will sign in.',
  fields: [
    tokenField(behindTheMark),
    personField('May stay empty if whoever invited you has given your name.'),
    newPasswordField('password'),
  ],
  button: 'Accept the invitation',
  aboutLink: `${worksOnce} If it works no longer, ask whoever invited you for another one.`,
  done: {
    title: 'You can sign in now',
    paragraphs: [
      'Welcome, <strong data-of="displayName"></strong>.',
      'In the application that you were invited to, sign in with <strong data-of="email"></strong> and your new password. You may close this page.',
    ],
  },
}

export const tenantReset: LinkPage = {
  operationId: 'developerTenantPasswordResetsComplete',
  title: 'Choose a new password',
  introduction: 'For your access to this organization.',
  fields: [tokenField(behindTheMark), newPasswordField('newPassword')],
  button: 'Change the password',
  aboutLink: `${worksOnce} If it works no longer, ask for another one where you sign in.`,
  done: {
    title: 'Your password was changed',
    paragraphs: [
      'You have been signed out everywhere. Sign in with the new password where you always do. You may close this page.',
    ],
  },
}
