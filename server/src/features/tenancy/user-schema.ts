import Type, { type Static } from 'typebox'
import { Revision, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { EmailAddress, Name } from '../../shared/identity/person-schemas.ts'
import {
  DataRole,
  ExpectedRevision,
  MemberLocations,
  membershipInput,
  OrganizationParams,
  Page,
  paging,
  Search,
  Status,
} from './schema.ts'

const userId = Uuid('The user.', '0199a1b2-0000-7000-8000-000000000002')
export const UserParams = Strict({ ...OrganizationParams.properties, userId })

export const User = Strict(
  {
    organizationId: OrganizationParams.properties.organizationId,
    userId,
    email: Type.String({ description: 'What the user signs in with.', examples: ['ada@northwind.example'] }),
    displayName: Type.String({ description: 'The name of the user.', examples: ['Ada Lovelace'] }),
    status: Status,
    userTypeKey: Type.String({ description: "What kind of user it is, in the builder's words.", examples: ['staff'] }),
    isOwner: Type.Boolean({ description: 'May the user do everything in the organization?', examples: [false] }),
    dataRoles: Type.Array(DataRole, { description: 'The DataRoles of the user, by key.' }),
    locations: MemberLocations,
    revision: Revision,
    createdAt: Timestamp('When the user was created.'),
  },
  { title: 'User' },
)
export type User = Static<typeof User>

export const UserPage = Page(User, 'UserPage')
export const UserQuery = Strict({ status: Type.Optional(Status), search: Search, ...paging })

const email = EmailAddress('What the user signs in with. Nobody else in the organization may have it.')
const displayName = Name('The name of the user.', 'Ada Lovelace')

export const UserCreateBody = Strict({ email, displayName, ...membershipInput })

export const UserUpdateBody = Strict({
  email: Type.Optional(email),
  displayName: Type.Optional(displayName),
  status: Type.Optional(Status),
  ...membershipInput,
  expectedRevision: Type.Optional(ExpectedRevision),
})
