import Type, { type Static } from 'typebox'
import { Nullable, PageSize, PlatformActor, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'
import { allScopes } from '../../kernel/scopes.ts'
import { DataRoleIds, DataRoleKeys, Locations } from '../../shared/access/references.ts'

/** Shapes of the credentials that builders issue for the servers of an organisation. */
const organizationId = Uuid('The customer organization.', '0199a1b2-0000-7000-8000-0000000000b1')
const keyId = Type.String({
  pattern: '^[0-9A-Za-z]{12}$',
  description: 'Names the credential. It is part of the token, and no secret.',
  examples: ['4fGh6JkLm8Np'],
})

export const OrganizationParams = Strict({ organizationId })
export const CredentialParams = Strict({ organizationId, keyId })

const kind = Type.Enum(['live', 'draft'], {
  description: '`live` works on everything that its scopes name, `draft` on page drafts only.',
  examples: ['live'],
})
const displayName = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]+$',
  description: 'What people call it, for instance the system that holds it.',
  examples: ['Data warehouse'],
})
const scopes = Type.Array(Type.Enum([...allScopes]), {
  uniqueItems: true,
  maxItems: allScopes.length,
  description: 'What it may be used for. A draft credential can only have `pages.draft`.',
  examples: [['records.read', 'records.write']],
})
const envelope = Strict(
  {
    dataRoleIds: Type.Array(Uuid('A DataRole of the organization.', '0199a1b2-0000-7000-8000-0000000000d1'), {
      maxItems: 100,
      description: 'DataRoles whose permissions it has.',
      examples: [['0199a1b2-0000-7000-8000-0000000000d1']],
    }),
    locations: Type.Union(
      [
        Type.Literal('all'),
        Type.Array(Uuid('A location of the organization.', '0199a1b2-0000-7000-8000-0000000000e1'), {
          maxItems: 1000,
        }),
      ],
      { description: 'Locations whose records it reaches, or `all`.', examples: ['all'] },
    ),
  },
  { description: 'Holds it to what these roles may do at these locations.' },
)
/** The same as it is ordered. */
const envelopeInput = Strict(
  { dataRoleIds: Type.Optional(DataRoleIds), dataRoleKeys: Type.Optional(DataRoleKeys), locations: Locations },
  {
    description: 'Holds it to what these roles may do at these locations. The roles by id or by key, one or the other.',
  },
)
export type OrderedEnvelope = Static<typeof envelopeInput>
const expiresAt = Timestamp('When it stops working.', '2027-09-14T09:30:00.000Z')

const statuses = ['active', 'expired', 'revoked'] as const

export const ListQuery = Strict({
  status: Type.Optional(
    Type.Enum([...statuses], { description: 'Only credentials in this state.', examples: ['active'] }),
  ),
  pageSize: Type.Optional(PageSize()),
  cursor: Type.Optional(Type.String({ description: '`nextCursor` of the page before.', examples: ['q83vEjRW'] })),
})

export const IssueBody = Strict({
  kind,
  displayName,
  scopes,
  envelope: Type.Optional(envelopeInput),
  expiresAt: Type.Optional(expiresAt),
})

export const RotateBody = Strict({
  overlapSeconds: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 604_800,
      default: 0,
      description: 'How long the old secret works beside the new one: up to 7 days.',
      examples: [3600],
    }),
  ),
})

const fields = {
  keyId,
  kind,
  displayName,
  tokenHint: Type.String({
    description: 'How its tokens begin; what follows is secret.',
    examples: ['ptc_live_4fGh6JkLm8Np_…'],
  }),
  scopes,
  envelope: Nullable(envelope),
  status: Type.Enum([...statuses], { description: 'Does it work?', examples: ['active'] }),
  createdAt: Timestamp('When it was issued.'),
  createdBy: PlatformActor('Who issued it.'),
  rotatedAt: Nullable(Timestamp('When its secret was replaced last.')),
  expiresAt: Nullable(expiresAt),
  lastUsedAt: Nullable(Timestamp('When it was used last, within a few seconds.')),
  previousSecretExpiresAt: Nullable(Timestamp('Until then the secret before the last rotation works, too.')),
  revokedAt: Nullable(Timestamp('When it was revoked.')),
}

export const Credential = Strict(fields, { title: 'Credential' })

export const CredentialList = Strict(
  {
    items: Type.Array(Credential, { description: 'Live and draft credentials, newest first.' }),
    nextCursor: Nullable(
      Type.String({ description: 'Continues the list; null on the last page.', examples: ['q83vEjRW'] }),
    ),
  },
  { title: 'CredentialList' },
)

export const IssuedCredential = Strict(
  {
    ...fields,
    token: Type.String({
      description: 'Shown this once, and kept nowhere. Send it as `Authorization: Bearer <token>`.',
      examples: ['ptc_live_4fGh6JkLm8Np_…'],
    }),
  },
  { title: 'IssuedCredential' },
)
