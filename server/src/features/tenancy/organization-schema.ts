import Type from 'typebox'
import { Nullable, Revision, Strict, Timestamp, Total, Uuid } from '../../kernel/schemas.ts'
import { keyPattern } from '../../shared/access/references.ts'
import { EmailAddress, Name } from '../../shared/identity/person-schemas.ts'
import { DataRole, ExpectedRevision, OrganizationParams, Page, paging, Search, Status } from './schema.ts'

export const ApplicationParams = Strict({ saasAppId: Uuid('The application. It must be of the account.') })

const locationKey = Type.String({
  pattern: keyPattern,
  description: 'The key of the location in its organization.',
  examples: ['north'],
})
export const LocationParams = Strict({ ...OrganizationParams.properties, locationKey })
export const LocationBody = Strict({ name: Name('What people call the location.', 'Northern branch') })

export const Location = Strict(
  {
    locationId: Uuid('The location.', '0199a1b2-0000-7000-8000-000000000005'),
    locationKey,
    name: Type.String({ description: 'What people call it.', examples: ['Northern branch'] }),
  },
  { title: 'Location' },
)

const facts = {
  organizationId: Uuid('The organization.'),
  saasAppId: Uuid('The application that it belongs to.', '0199a1b2-0000-7000-8000-0000000000a1'),
  name: Type.String({ description: 'What people call it.', examples: ['Northwind'] }),
  slug: Type.String({ description: 'The first label of its host name. It stays.', examples: ['northwind'] }),
  tenantOrigin: Type.String({
    description: 'Where its users are at home: its own domain, or its slug below the host of the service.',
    examples: ['https://northwind.portico.example'],
  }),
  billingEmail: Nullable(
    Type.String({ description: 'Where bills go; null where nothing is set.', examples: ['billing@northwind.example'] }),
  ),
  status: Status,
  customDomain: Nullable(
    Type.String({
      description: 'A host name of its own, served once it is verified; null where it has none.',
      examples: ['crm.northwind.example'],
    }),
  ),
  customDomainVerifiedAt: Nullable(
    Timestamp("When it was verified that the domain is the organization's; null before. Another domain begins anew."),
  ),
  domainVerification: Nullable(
    Strict(
      {
        recordName: Type.String({
          description: 'The name of a TXT record in the DNS.',
          examples: ['_portico.crm.northwind.example'],
        }),
        recordValue: Type.String({
          description: 'A value that it must have, beside any others.',
          examples: ['portico-verification=b0zq0mZ4iUQ8nWl3mGZ3h5oE0dB8w2Zk0mVbXv7s1xY'],
        }),
      },
      { description: 'What to publish before the domain can be verified; null where there is nothing to verify.' },
    ),
  ),
  revision: Revision,
  createdAt: Timestamp('When it was provisioned.'),
}

export const OrganizationItem = Strict(facts, { title: 'OrganizationItem' })

export const Organization = Strict(
  {
    ...facts,
    dataRoles: Type.Array(DataRole, { description: 'One for each DataRole template of the application.' }),
    locations: Type.Array(Location, { description: 'Its locations, by key.' }),
    counts: Strict(
      { activeUsers: Total, inactiveUsers: Total, openInvitations: Total },
      { description: 'Users by status, and invitations that can still be accepted.' },
    ),
  },
  { title: 'Organization' },
)

export const OrganizationPage = Page(OrganizationItem, 'OrganizationPage')
export const OrganizationQuery = Strict({ status: Type.Optional(Status), search: Search, ...paging })

const billingEmail = EmailAddress('Where bills go.', 'billing@northwind.example')
const customDomain = Type.String({
  // 253 octets are a name (RFC 1035 2.3.4); that of the record which verifies the domain is 9 longer.
  maxLength: 244,
  // RFC 1123 2.1: labels of letters, digits and hyphens, and a top level domain that is no number.
  pattern: '^([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\\.)+[a-zA-Z]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$',
  description:
    'A host name of its own, in ASCII (xn-- where it has other letters), without a port and a dot at its end. Not the host of the service or below it. It is served once it is verified.',
  examples: ['crm.northwind.example'],
})

export const OrganizationCreateBody = Strict({
  name: Name('What people call it.', 'Northwind'),
  slug: Type.String({
    // No hyphens in the third and fourth place: that is how names in other letters begin (RFC 5891 4.2.3.1).
    pattern: '^(?!..--)[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$',
    description:
      'The first label of its host name: 2 to 63 lower-case letters, digits and hyphens. Nobody else may have it, in any application.',
    examples: ['northwind'],
  }),
  billingEmail: Type.Optional(billingEmail),
  customDomain: Type.Optional(customDomain),
  locations: Type.Optional(
    Type.Array(Strict({ locationKey, name: LocationBody.properties.name }), {
      maxItems: 200,
      description: 'Locations beside those of the location templates; one with the key of a template takes its place.',
    }),
  ),
  owner: Type.Optional(
    Strict(
      {
        email: EmailAddress('The address that is invited.'),
        displayName: Name('The name of the owner.', 'Ada Lovelace'),
      },
      { description: 'Who is invited as the first owner, with every location.' },
    ),
  ),
})

export const OrganizationUpdateBody = Strict({
  name: Type.Optional(Name('What people call it.', 'Northwind')),
  billingEmail: Type.Optional(Nullable(billingEmail)),
  status: Type.Optional(Status),
  customDomain: Type.Optional(Nullable(customDomain)),
  expectedRevision: Type.Optional(ExpectedRevision),
})
