import Type from 'typebox'
import { Nullable, PageSize, Revision, Strict, Timestamp, Uuid } from '../../../kernel/schemas.ts'

export const NoParams = Strict({})

export const ApplicationParams = Strict({
  saasAppId: Uuid('The application. It must be one of the account.', '0199a1b2-0000-7000-8000-0000000000a1'),
})

/** One line with something on it: no control characters, and no halves of surrogate pairs, which cannot be stored. */
const name = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^[^\\p{Cc}\\p{Cs}]*[^\\p{Cc}\\p{Cs}\\s][^\\p{Cc}\\p{Cs}]*$',
  description: 'What people call it.',
  examples: ['Acme CRM'],
})
const description = Type.String({
  maxLength: 2000,
  pattern: '^[^\\u0000\\p{Cs}]*$',
  description: 'What it is for.',
  examples: ['Sales and support of Acme.'],
})
const appKey = Type.String({
  pattern: '^[a-z][a-z0-9-]{0,49}$',
  description: 'Names it within the account; it stays.',
  examples: ['acme-crm'],
})

export const ExpectedRevision = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'The revision that the change is meant for; with another one it is refused.',
    examples: [1],
  }),
)

export const Application = Strict(
  {
    saasAppId: Uuid('The application.', '0199a1b2-0000-7000-8000-0000000000a1'),
    appKey,
    name,
    description,
    releaseNumber: Type.Integer({
      minimum: 0,
      description: 'The newest release of its model; 0 before the first.',
      examples: [3],
    }),
    archivedAt: Nullable(Timestamp('When it was archived; null while it is in use.')),
    revision: Revision,
    createdAt: Timestamp('When it was made.'),
  },
  { title: 'Application' },
)

export const ApplicationQuery = Strict({
  archived: Type.Optional(
    Type.Boolean({ description: 'true lists those that are archived, in place of those in use.', examples: [true] }),
  ),
  cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the page before.', examples: ['AbC…'] })),
  pageSize: Type.Optional(PageSize()),
})

export const ApplicationPage = Strict(
  {
    items: Type.Array(Application, { description: 'By key.' }),
    nextCursor: Nullable(Type.String({ description: 'Continues the list; null at its end.', examples: ['AbC…'] })),
  },
  { title: 'ApplicationPage' },
)

export const CreateBody = Strict({ appKey, name, description: Type.Optional(description) })

export const UpdateBody = Strict({
  name: Type.Optional(name),
  description: Type.Optional(description),
  archived: Type.Optional(
    Type.Boolean({
      description: 'false restores an archived application, true archives it as DELETE does.',
      examples: [false],
    }),
  ),
  expectedRevision: ExpectedRevision,
})

export const RevisionQuery = Strict({ expectedRevision: ExpectedRevision })
