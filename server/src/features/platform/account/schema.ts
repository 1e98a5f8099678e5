import Type, { type Static } from 'typebox'
import { Nullable, PageSize, Revision, Strict, Timestamp, Uuid } from '../../../kernel/schemas.ts'
import { allPlatformScopes, builderRoles } from '../../../kernel/scopes.ts'
import { NewPassword, Password } from '../../../shared/identity/passwords.ts'
import { EmailAddress, Name } from '../../../shared/identity/person-schemas.ts'

const accountId = Uuid('The account.', '0199a1b2-0000-7000-8000-0000000000a1')
const builderId = Uuid('The person.', '0199a1b2-0000-7000-8000-0000000000b1')
const invitationId = Uuid('The invitation.', '0199a1b2-0000-7000-8000-0000000000d1')
const email = EmailAddress('What the person signs in with.', 'ada@acme.example')
const displayName = Name('The name of the person.', 'Ada Lovelace')
const accountName = Name('The name of the account.', 'Acme')
/** What is shown is what was written, perhaps before these rules held. */
const shown = {
  email: Type.String({ description: 'What the person signs in with.', examples: ['ada@acme.example'] }),
  displayName: Type.String({ description: 'The name of the person.', examples: ['Ada Lovelace'] }),
  name: Type.String({ description: 'The name of the account.', examples: ['Acme'] }),
}
const totpEnabled = Type.Boolean({
  description: 'Does signing in take a code of a second factor?',
  examples: [true],
})
export const Role = Type.Enum([...builderRoles], {
  description: 'What the person may do in the account: see the scopes of each role in the contract.',
  examples: ['developer'],
})

/** The six digits of an authenticator, or one of the recovery codes. */
const Code = Type.String({
  pattern: '^([0-9]{6}|[0-9a-z]{5}-[0-9a-z]{5})$',
  description: 'The six digits that the authenticator shows, or a recovery code. Each is good once.',
  examples: ['492039'],
})

/** 256 bits in base64url (shared/identity/mint.ts keeps their hash). */
const LinkToken = Type.String({
  minLength: 1,
  maxLength: 200,
  description: 'The one-time token of the link.',
  examples: ['q3J5c0Zk9m2x…'],
})

export const NoParams = Strict({})

export const Session = Strict(
  {
    sessionId: Type.String({
      description: 'Names the session. It is the key id of its token, and opens nothing.',
      examples: ['7Hk2mPq9XwZ4'],
    }),
    builderId,
    label: Type.String({ description: 'What the session was called when it began.', examples: ['laptop'] }),
    userAgent: Type.String({ description: 'What the client said of itself.', examples: ['curl/8.16.0'] }),
    address: Type.String({ description: 'Where the session began.', examples: ['192.0.2.7'] }),
    createdAt: Timestamp('When it began.'),
    lastUsedAt: Nullable(Timestamp('When it was last used, to the nearest few seconds.')),
    expiresAt: Timestamp('When it ends by itself.'),
    current: Type.Boolean({ description: 'Is it the session of this request?', examples: [true] }),
  },
  { title: 'BuilderSession', description: 'A session of a member.' },
)
export type Session = Static<typeof Session>

const Builder = Strict(
  { builderId, email: shown.email, displayName: shown.displayName, totpEnabled },
  { description: 'The person.' },
)

const AccountName = Strict({ accountId, name: shown.name }, { description: 'The account that the session is in.' })

export const SignInBody = Strict({
  email,
  password: Password,
  totpCode: Type.Optional(Code),
  accountId: Type.Optional(accountId),
  label: Type.Optional(
    Type.String({
      maxLength: 100,
      pattern: '^[^\\p{Cc}\\p{Cs}]*$',
      description: 'What to call the session in lists.',
      examples: ['laptop'],
    }),
  ),
})

export const SignedIn = Strict(
  {
    token: Type.String({
      description: 'Send it as `Authorization: Bearer <token>`. It is shown here and nowhere else.',
      examples: ['ptc_bld_…'],
    }),
    session: Session,
    account: AccountName,
    builder: Builder,
    role: Role,
    accounts: Type.Array(Strict({ accountId, name: shown.name, role: Role }), {
      description: 'Every account of which the person is a member, the oldest membership first.',
    }),
  },
  { title: 'SignedIn' },
)
export type SignedIn = Static<typeof SignedIn>

export const SessionParams = Strict({
  sessionId: Type.String({
    pattern: '^([0-9A-Za-z]{12}|current)$',
    description: 'The session, or `current` for that of the request.',
    examples: ['current'],
  }),
})

export const SessionQuery = Strict({
  scope: Type.Optional(
    Type.Enum(['own', 'account'], {
      description:
        'Whose sessions: `own`, or `account` for those of the whole team, which owners and admins may ask for.',
      examples: ['own'],
    }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: 4000, description: 'The nextCursor of the page before.', examples: ['mS3Zb1…'] }),
  ),
  pageSize: Type.Optional(PageSize()),
})

export const SessionPage = Strict(
  {
    items: Type.Array(Session, { description: 'Sessions that hold, the newest first.' }),
    nextCursor: Nullable(
      Type.String({ description: 'Continues the list; null on the last page.', examples: ['mS3Zb1…'] }),
    ),
  },
  { title: 'BuilderSessionPage' },
)

export const PasswordResetBody = Strict({ email })
export const CompletePasswordResetBody = Strict({ token: LinkToken, newPassword: NewPassword })

export const AcceptBody = Strict({
  token: LinkToken,
  displayName: Type.Optional(displayName),
  password: Password,
  totpCode: Type.Optional(Code),
  email: Type.Optional(email),
  accountName: Type.Optional(accountName),
})

export const Me = Strict(
  {
    builder: Builder,
    account: AccountName,
    role: Role,
    scopes: Type.Array(
      Type.Enum([...allPlatformScopes], { description: 'A scope of the role.', examples: ['account.read'] }),
      { description: 'What the role lets the person do in this account.' },
    ),
    totpEnabled,
  },
  { title: 'Me' },
)

export const UpdateMeBody = Strict({ displayName })
export const ChangePasswordBody = Strict({ currentPassword: Password, newPassword: NewPassword })

export const EnrollTotpBody = Strict({ password: Password })
export const EnrolledTotp = Strict(
  {
    secret: Type.String({
      description: 'The shared secret in base32 (RFC 4648), for authenticators that are filled by hand.',
      examples: ['JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP'],
    }),
    otpauthUri: Type.String({
      description: 'The same as a URI, for a QR code.',
      examples: ['otpauth://totp/Portico:ada%40acme.example?issuer=Portico&secret=…'],
    }),
  },
  { title: 'EnrolledTotp' },
)
export const ConfirmTotpBody = Strict({
  code: Type.String({
    pattern: '^[0-9]{6}$',
    description: 'The six digits that the authenticator shows now.',
    examples: ['492039'],
  }),
})
export const ConfirmedTotp = Strict(
  {
    recoveryCodes: Type.Array(
      Type.String({ description: 'Stands in for one code of the authenticator, once.', examples: ['k3f9q-x2m7p'] }),
      { description: 'For the day the authenticator is lost. They are shown here and nowhere else.' },
    ),
  },
  { title: 'ConfirmedTotp' },
)
export const RemoveTotpBody = Strict({ password: Password, code: Code })

export const Account = Strict(
  {
    accountId,
    name: shown.name,
    billingEmail: Nullable(Type.String({ description: 'Where invoices go.', examples: ['billing@acme.example'] })),
    planKey: Type.String({ description: 'The plan of the account.', examples: ['free'] }),
    revision: Revision,
    createdAt: Timestamp('When the account was made.'),
  },
  { title: 'Account' },
)
export type Account = Static<typeof Account>

export const UpdateAccountBody = Strict({
  name: Type.Optional(accountName),
  billingEmail: Type.Optional(Nullable(EmailAddress('Where invoices go; null for nowhere.', 'billing@acme.example'))),
  expectedRevision: Type.Optional(Revision),
})

export const Member = Strict(
  {
    builderId,
    email: shown.email,
    displayName: shown.displayName,
    role: Role,
    joinedAt: Timestamp('When the person joined the account.'),
    totpEnabled,
    lastSeenAt: Nullable(Timestamp('When a session of theirs in this account was last used or began.')),
  },
  { title: 'Member' },
)
export type Member = Static<typeof Member>

export const Invitation = Strict(
  {
    invitationId,
    email: EmailAddress('Who is invited.', 'grace@acme.example'),
    role: Role,
    createdAt: Timestamp('When the invitation was sent.'),
    expiresAt: Timestamp('Until when its link works.'),
  },
  { title: 'TeamInvitation' },
)
export type Invitation = Static<typeof Invitation>

export const Team = Strict(
  {
    members: Type.Array(Member, { description: 'Everybody in the account, the oldest membership first.' }),
    invitations: Type.Array(Invitation, { description: 'Invitations that can be accepted, the newest first.' }),
  },
  { title: 'Team' },
)

export const MemberParams = Strict({ builderId })
export const UpdateMemberBody = Strict({ role: Role })
export const InviteBody = Strict({ email: EmailAddress('Who is to be invited.', 'grace@acme.example'), role: Role })
export const InvitationParams = Strict({ invitationId })
