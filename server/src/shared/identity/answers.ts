import Type from 'typebox'
import { Strict } from '../../kernel/schemas.ts'

/** What builders and the users of organizations are answered alike. */
export const SignedOut = Strict(
  { signedOut: Type.Literal(true, { description: 'The session has ended.', examples: [true] }) },
  { title: 'SignedOut' },
)

export const PasswordResetRequested = Strict(
  {
    accepted: Type.Literal(true, {
      description: 'If somebody has this address, a mail is on its way; the same where nobody has.',
      examples: [true],
    }),
  },
  { title: 'PasswordResetRequested' },
)

export const PasswordChanged = Strict(
  { changed: Type.Literal(true, { description: 'The new password holds from now on.', examples: [true] }) },
  { title: 'PasswordChanged' },
)
