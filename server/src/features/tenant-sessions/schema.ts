import Type from 'typebox'
import { Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { NewPassword, Password } from '../../shared/identity/passwords.ts'
import { EmailAddress } from '../../shared/identity/person-schemas.ts'

const Email = EmailAddress('The email address of the user, in upper or lower case.')

export const SignIn = Strict({ email: Email, password: Password }, { title: 'TenantSignIn' })

/** Who is signed in on a tenant host, as the service sees it. */
export const Session = Strict(
  {
    saasAppId: Uuid('The application of the organization.'),
    organization: Strict(
      {
        organizationId: Uuid('The organization.', '0199a1b2-0000-7000-8000-0000000000cc'),
        name: Type.String({ description: 'Its name.', examples: ['Northwind Traders'] }),
        slug: Type.String({ description: 'Its name in host names.', examples: ['northwind'] }),
      },
      { description: 'The organization whose host this is.' },
    ),
    user: Strict(
      {
        userId: Uuid('The user.', '0199a1b2-0000-7000-8000-0000000000dd'),
        displayName: Type.String({ description: 'The name of the user.', examples: ['Ada Lovelace'] }),
        email: Type.String({ description: 'The address of the user.', examples: ['ada@northwind.example'] }),
        userTypeKey: Type.String({ description: 'The type of the user.', examples: ['staff'] }),
        isOwner: Type.Boolean({ description: 'Does the user own the organization?', examples: [false] }),
      },
      { description: 'The user who is signed in.' },
    ),
    dataRoles: Type.Array(
      Strict({
        dataRoleId: Uuid('The DataRole.', '0199a1b2-0000-7000-8000-0000000000ee'),
        key: Type.String({ description: 'The key of its template.', examples: ['sales'] }),
      }),
      { description: 'The DataRoles that decide what the user sees.' },
    ),
    locations: Type.Union(
      [
        Type.Literal('all', { description: 'Every location.', examples: ['all'] }),
        Type.Array(Uuid('A location.', '0199a1b2-0000-7000-8000-0000000000ff'), { description: 'These locations.' }),
      ],
      { description: 'The locations that narrow what the user sees.', examples: ['all'] },
    ),
    expiresAt: Timestamp('When the session ends, whatever happens.'),
  },
  { title: 'TenantSession' },
)

export const PasswordChange = Strict(
  { currentPassword: Password, newPassword: NewPassword },
  { title: 'TenantPasswordChange' },
)

export const PasswordResetRequest = Strict({ email: Email }, { title: 'TenantPasswordResetRequest' })

export const PasswordReset = Strict(
  {
    token: Type.String({
      minLength: 1,
      maxLength: 200,
      description: 'The token of the link in the mail.',
      examples: ['u4Ck8x0iUq3n5Vb1Jm7sQe2dT9yLwRzAaPfGhKoXcE0'],
    }),
    newPassword: NewPassword,
  },
  { title: 'TenantPasswordReset' },
)
