import Type from 'typebox'
import { Nullable, PageSize, Strict, Uuid } from '../../kernel/schemas.ts'
import { DataRoleIds, DataRoleKeys, keyPattern, Locations } from '../../shared/access/references.ts'

/** Shapes that organizations, users and invitations share. */

export const Status = Type.Enum(['active', 'inactive'], {
  description: 'Who is inactive is refused everywhere, from the next request on.',
  examples: ['active'],
})

export const ExpectedRevision = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'The revision that the change is meant for; with another one it is refused.',
  examples: [1],
})

export const OrganizationParams = Strict({
  organizationId: Uuid('The organization. It must be of an application of the account.'),
})

export const DataRole = Strict({
  dataRoleId: Uuid('The DataRole of the organization.', '0199a1b2-0000-7000-8000-000000000003'),
  key: Type.String({ description: 'The key of its template.', examples: ['sales'] }),
  label: Type.String({ description: 'What people call it.', examples: ['Sales'] }),
})

const locationId = Uuid('A location of the organization.', '0199a1b2-0000-7000-8000-000000000005')

/** Locations as a member has them. */
export const MemberLocations = Type.Union(
  [
    Type.Enum(['all'], { description: 'Every location, also those to come.', examples: ['all'] }),
    Type.Array(locationId, { maxItems: 1000, description: 'These locations.' }),
  ],
  { description: 'Where the member works.', examples: ['all'] },
)

/** What a member may be told to be, on creation and in changes. */
export const membershipInput = {
  userTypeKey: Type.Optional(
    Type.String({
      pattern: keyPattern,
      description: "What kind of user it is, in the builder's words; `member` unless said otherwise.",
      examples: ['staff'],
    }),
  ),
  isOwner: Type.Optional(
    Type.Boolean({
      description: 'Owners may do everything in the organization. Nobody is one unless said so.',
      examples: [false],
    }),
  ),
  dataRoleIds: Type.Optional(DataRoleIds),
  dataRoleKeys: Type.Optional(DataRoleKeys),
  locations: Type.Optional(Locations),
}

export const paging = {
  cursor: Type.Optional(
    Type.String({ maxLength: 4000, description: 'The nextCursor of the page before.', examples: ['mS3Zb1…'] }),
  ),
  pageSize: Type.Optional(PageSize()),
}

export const Search = Type.Optional(
  Type.String({
    maxLength: 200,
    pattern: '^[^\\p{Cc}\\p{Cs}]*$',
    description: 'Only those in which this text occurs, without regard to case.',
    examples: ['north'],
  }),
)

/** A page of a list. */
export function Page<T extends Type.TSchema>(item: T, title: string) {
  return Strict(
    {
      items: Type.Array(item, { description: 'The rows of the page.' }),
      nextCursor: Nullable(
        Type.String({ description: 'Continues after these; null at the end.', examples: ['mS3Zb1…'] }),
      ),
    },
    { title },
  )
}
