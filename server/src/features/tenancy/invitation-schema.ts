import Type, { type Static } from 'typebox'
import { Nullable, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { NewPassword } from '../../shared/identity/passwords.ts'
import { EmailAddress, Name } from '../../shared/identity/person-schemas.ts'
import { DataRole, MemberLocations, membershipInput, OrganizationParams, Page, paging } from './schema.ts'

const invitationId = Uuid('The invitation.', '0199a1b2-0000-7000-8000-000000000004')
export const InvitationParams = Strict({ ...OrganizationParams.properties, invitationId })

const InvitationStatus = Type.Enum(['pending', 'accepted', 'revoked', 'expired'], {
  description: 'Only a pending one can be accepted. One that another took the place of is revoked.',
  examples: ['pending'],
})

export const Invitation = Strict(
  {
    organizationId: OrganizationParams.properties.organizationId,
    invitationId,
    email: Type.String({ description: 'Who is invited.', examples: ['ada@northwind.example'] }),
    displayName: Type.String({ description: 'The name, empty where none was given.', examples: ['Ada Lovelace'] }),
    userTypeKey: Type.String({ description: 'What kind of user it will be.', examples: ['staff'] }),
    isOwner: Type.Boolean({ description: 'Will the user be an owner?', examples: [false] }),
    dataRoles: Type.Array(DataRole, { description: 'The DataRoles that the user will have, by key.' }),
    locations: MemberLocations,
    status: InvitationStatus,
    createdAt: Timestamp('When it was made.'),
    sentAt: Timestamp('When its link was last sent.'),
    expiresAt: Timestamp('Until when its link works: seven days after it was sent.', '2026-09-21T09:30:00.000Z'),
    acceptedAt: Nullable(Timestamp('When it was accepted; null while it was not.')),
    acceptedUserId: Nullable(Uuid('The user who came of it; null while there is none.')),
    revokedAt: Nullable(Timestamp('When it was revoked; null where it was not.')),
  },
  { title: 'Invitation' },
)
export type Invitation = Static<typeof Invitation>

export const InvitationPage = Page(Invitation, 'InvitationPage')
export const InvitationQuery = Strict({ status: Type.Optional(InvitationStatus), ...paging })

export const InvitationCreateBody = Strict({
  email: EmailAddress('Who is invited.'),
  displayName: Type.Optional(Name('The name, if it is known; who accepts may give another one.', 'Ada Lovelace')),
  ...membershipInput,
})

export const AcceptBody = Strict({
  token: Type.String({
    minLength: 1,
    maxLength: 200,
    description: 'The one-time token of the link.',
    examples: ['pWk3mTq9…'],
  }),
  displayName: Type.Optional(
    Name('The name of the user; may be left out where the invitation has one.', 'Ada Lovelace'),
  ),
  password: NewPassword,
})
