import Type, { type Static, type TObject } from 'typebox'
import { Nullable, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'

/**
 * The nine lifecycle events of specification 6.2: what they mean, whom they are about, and the shape of their data. The
 * specification fixes the data of `membership.role_changed` (6.3); that of the others is decided here.
 */
export const lifecycleEventVersion = '2026-09-14'

interface LifecycleEventType {
  /** One line for people who choose what to subscribe to. */
  readonly description: string
  /** The kind of thing that the event is about, and the property of its data that names it. */
  readonly subject: {
    readonly type: 'organization' | 'user' | 'membership' | 'invitation'
    readonly idProperty: string
  }
  readonly data: TObject
  readonly example: object
}

const example = {
  organizationId: '0199a1b2-0000-7000-8000-000000000001',
  userId: '0199a1b2-0000-7000-8000-000000000002',
  dataRoleId: '0199a1b2-0000-7000-8000-000000000003',
  invitationId: '0199a1b2-0000-7000-8000-000000000004',
}

const organizationId = Uuid('The organization.', example.organizationId)
const userId = Uuid('The user.', example.userId)
const email = (description: string) => Type.String({ description, examples: ['ada@northwind.example'] })
const status = (of: string) =>
  Type.Enum(['active', 'inactive'], { description: `Whether the ${of} is active.`, examples: ['active'] })
const userTypeKey = Type.String({
  description: "What kind of user it is, in the builder's words.",
  examples: ['staff'],
})

const organization = Strict({
  organizationId,
  name: Type.String({ description: 'The name of the organization.', examples: ['Northwind'] }),
  slug: Type.String({ description: 'The first label of its host name.', examples: ['northwind'] }),
  billingEmail: Nullable(email('Where bills go; null where nothing is set.')),
  status: status('organization'),
  customDomain: Nullable(
    Type.String({
      description: 'A host name of its own, served once it is verified; null where it has none.',
      examples: ['crm.northwind.example'],
    }),
  ),
  customDomainVerifiedAt: Nullable(Timestamp('When the domain was verified; null before.')),
})
const organizationExample = {
  organizationId: example.organizationId,
  name: 'Northwind',
  slug: 'northwind',
  billingEmail: 'billing@northwind.example',
  status: 'active',
  customDomain: 'crm.northwind.example',
  customDomainVerifiedAt: '2026-09-14T09:30:00.000Z',
}

const user = Strict({
  organizationId,
  userId,
  email: email('The address of the user.'),
  displayName: Type.String({ description: 'The name of the user.', examples: ['Ada Lovelace'] }),
  userTypeKey,
  isOwner: Type.Boolean({ description: 'Does the user own the organization?', examples: [false] }),
  status: status('user'),
})
const userExample = {
  organizationId: example.organizationId,
  userId: example.userId,
  email: 'ada@northwind.example',
  displayName: 'Ada Lovelace',
  userTypeKey: 'staff',
  isOwner: false,
  status: 'active',
}

const membership = Strict({
  organizationId,
  userId,
  userTypeKey,
  dataRoles: Type.Array(Strict({ dataRoleId: Uuid('The DataRole.', example.dataRoleId) }), {
    description: 'Every DataRole that the user has now.',
  }),
})
const membershipExample = {
  organizationId: example.organizationId,
  userId: example.userId,
  userTypeKey: 'staff',
  dataRoles: [{ dataRoleId: example.dataRoleId }],
}

const aboutOrganization = { type: 'organization', idProperty: 'organizationId' } as const
const aboutUser = { type: 'user', idProperty: 'userId' } as const
const aboutMembership = { type: 'membership', idProperty: 'userId' } as const

export const lifecycleEvents = {
  'organization.created': {
    description: 'An organization was provisioned.',
    subject: aboutOrganization,
    data: organization,
    example: organizationExample,
  },
  'organization.updated': {
    description:
      'The name, billing email, status or domain of an organization changed; also when it was reactivated or its domain verified.',
    subject: aboutOrganization,
    data: organization,
    example: organizationExample,
  },
  'organization.deactivated': {
    description: 'An organization became inactive.',
    subject: aboutOrganization,
    data: organization,
    example: { ...organizationExample, status: 'inactive' },
  },
  'user.created': {
    description: 'A user was created in an organization.',
    subject: aboutUser,
    data: user,
    example: userExample,
  },
  'user.updated': {
    description: 'The profile, type, ownership or active state of a user changed; also when it was reactivated.',
    subject: aboutUser,
    data: user,
    example: userExample,
  },
  'user.deactivated': {
    description: 'A user became inactive.',
    subject: aboutUser,
    data: user,
    example: { ...userExample, status: 'inactive' },
  },
  'membership.created': {
    description: 'A user became a member of an organization.',
    subject: aboutMembership,
    data: membership,
    example: membershipExample,
  },
  'membership.role_changed': {
    description: 'The user type, ownership or DataRoles of a member changed.',
    subject: aboutMembership,
    data: membership,
    example: membershipExample,
  },
  'invitation.accepted': {
    description: 'An invitation was accepted, and its user exists now.',
    subject: { type: 'invitation', idProperty: 'invitationId' },
    data: Strict({
      organizationId,
      invitationId: Uuid('The invitation.', example.invitationId),
      userId: Uuid('The user who accepted it.', example.userId),
      email: email('The address that was invited.'),
    }),
    example: {
      organizationId: example.organizationId,
      invitationId: example.invitationId,
      userId: example.userId,
      email: 'ada@northwind.example',
    },
  },
} as const satisfies Readonly<Record<string, LifecycleEventType>>

export type LifecycleEventKey = keyof typeof lifecycleEvents
export type LifecycleData<K extends LifecycleEventKey> = Static<(typeof lifecycleEvents)[K]['data']>
