import Type from 'typebox'
import { Nullable, Strict, Timestamp, Uuid } from '../../kernel/schemas.ts'

/** Who the credential is, as the service sees it (contract 2). */
export const AuthContext = Strict(
  {
    saasAppId: Uuid('The application of the credential.'),
    credential: Strict(
      {
        kind: Type.Enum(['live', 'dat'], { description: 'The kind of the credential.', examples: ['live'] }),
        keyId: Type.String({ description: 'Names the credential; not secret.', examples: ['k3V9xQ2mB7aT'] }),
        expiresAt: Nullable(Timestamp('When it expires; null if it does not.')),
      },
      { description: 'The credential itself.' },
    ),
    organization: Strict(
      {
        organizationId: Uuid('The organization.', '0199a1b2-0000-7000-8000-0000000000cc'),
        name: Type.String({ description: 'Its name.', examples: ['Northwind Traders'] }),
        slug: Type.String({ description: 'Its name in host names.', examples: ['northwind'] }),
      },
      { description: 'The organization that the credential acts in.' },
    ),
    user: Nullable(
      Strict(
        {
          userId: Uuid('The user.', '0199a1b2-0000-7000-8000-0000000000dd'),
          displayName: Type.String({ description: 'The name of the user.', examples: ['Ada Lovelace'] }),
          email: Type.String({ description: 'The address of the user.', examples: ['ada@northwind.example'] }),
          userTypeKey: Type.String({ description: 'The type of the user.', examples: ['staff'] }),
          isOwner: Type.Boolean({ description: 'Does the user own the organization?', examples: [false] }),
        },
        { description: 'The user that a delegated credential acts for; null for others.' },
      ),
    ),
    dataRoles: Type.Array(
      Strict({
        dataRoleId: Uuid('The DataRole.', '0199a1b2-0000-7000-8000-0000000000ee'),
        key: Type.String({ description: 'The key of its template.', examples: ['sales'] }),
      }),
      { description: 'The DataRoles that decide what it sees.' },
    ),
    locations: Type.Union(
      [
        Type.Literal('all', { description: 'Every location.', examples: ['all'] }),
        Type.Array(Uuid('A location.', '0199a1b2-0000-7000-8000-0000000000ff'), { description: 'These locations.' }),
      ],
      { description: 'The locations that narrow what it sees.', examples: ['all'] },
    ),
    scopes: Type.Array(Type.String(), { description: 'Its scopes.', examples: [['records.read']] }),
    contractSha256: Type.String({
      pattern: '^[0-9a-f]{64}$',
      description: 'The fingerprint of openapi.json for this credential.',
      examples: ['9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
    }),
  },
  { title: 'AuthContext' },
)
