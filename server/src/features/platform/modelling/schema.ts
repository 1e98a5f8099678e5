import Type from 'typebox'
import { Nullable, PageSize, PlatformActor, Strict, Timestamp, Uuid } from '../../../kernel/schemas.ts'
import { changeKinds } from '../../../shared/modelling/changes.ts'
import {
  FieldDocument,
  FieldKey,
  FieldProperties,
  LocationDocument,
  ModelDocument,
  ObjectKey,
  ObjectProperties,
  PartKey,
  RelationshipDocument,
  RoleDocument,
} from '../../../shared/modelling/document.ts'

const saasAppId = Uuid('The application. It must be one of the account.', '0199a1b2-0000-7000-8000-0000000000a1')
const releaseNumber = Type.String({
  pattern: '^[1-9][0-9]{0,9}$',
  description: 'The number of the release, from 1.',
  examples: ['3'],
})
export const partKindNames = ['roles', 'relationships', 'locations'] as const
const partKind = Type.Enum([...partKindNames], { description: 'What the part is.', examples: ['roles'] })

export const ApplicationParams = Strict({ saasAppId })
export const ObjectParams = Strict({ saasAppId, objectKey: ObjectKey })
export const FieldParams = Strict({ saasAppId, objectKey: ObjectKey, fieldKey: FieldKey })
export const PartParams = Strict({ saasAppId, partKind, partKey: PartKey })
export const ReleaseParams = Strict({ saasAppId, releaseNumber })

const expectedRevision = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description:
      'The revision of the draft that the change is meant for, 0 where there is none; with another one it is refused.',
    examples: [4],
  }),
)
const note = Type.Optional(
  Type.String({
    maxLength: 2000,
    pattern: '^[^\\u0000\\p{Cs}]*$',
    description: 'What the release is for.',
    examples: ['Deals have an amount.'],
  }),
)

export const RevisionQuery = Strict({ expectedRevision })
export const DraftBody = Strict({
  document: ModelDocument,
  basedOnRelease: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 2_147_483_647,
      description: 'The release that the document was made from, as it came with it; the newest unless said otherwise.',
      examples: [3],
    }),
  ),
  expectedRevision,
})

export const ObjectBody = Strict({
  object: Strict(
    {
      ...ObjectProperties,
      fields: Type.Optional(
        Type.Array(FieldDocument, { maxItems: 300, description: 'All its fields, in order; without it they stay.' }),
      ),
    },
    { description: 'The object. What is left out is off.' },
  ),
  expectedRevision,
})

export const FieldBody = Strict({
  field: Strict(FieldProperties, { description: 'The field. What is left out is off.' }),
  expectedRevision,
})

/** What `part` must be is decided by the kind in the path. */
export const PartBody = Strict({
  part: Type.Object(
    {},
    {
      additionalProperties: true,
      description:
        'A role (`label`, `objects`, `actions`), a relationship (`label`, `inverseLabel`, `cardinality`, `from`, `to`, ' +
        '`deleteRule`) or a location template (`label`), as in the model document.',
      examples: [{ label: 'Sales', objects: { deal: { read: true, create: true, update: true } } }],
    },
  ),
  expectedRevision,
})

export const partBodies = {
  roles: Strict({ part: RoleDocument, expectedRevision }),
  relationships: Strict({ part: RelationshipDocument, expectedRevision }),
  locations: Strict({ part: LocationDocument, expectedRevision }),
} as const

export const PublishBody = Strict({
  note,
  expectedRevision,
  confirmDataLoss: Type.Optional(
    Type.Boolean({
      description: 'Drops what was archived before and is removed now, with its data.',
      examples: [false],
    }),
  ),
})

export const RollbackBody = Strict({ note })

export const Draft = Strict(
  {
    document: ModelDocument,
    revision: Type.Integer({
      minimum: 0,
      description:
        'Counts the changes of the draft, releases that are published meanwhile included; 0: there is none, and the document is the published one.',
      examples: [4],
    }),
    basedOnRelease: Type.Integer({
      minimum: 0,
      description: 'The newest release that is in it; 0 before the first.',
      examples: [3],
    }),
    updatedAt: Nullable(Timestamp('When it last changed.')),
    updatedBy: Nullable(PlatformActor('Who last changed it; null where there is none.')),
  },
  { title: 'ModelDraft' },
)

const path = Type.String({
  description: 'Where in the model. What is refused when it is published names it as `field` in `details`.',
  examples: ['objects/deal/fields/amount'],
})

export const Validity = Strict(
  {
    valid: Type.Boolean({ description: 'Could it be published as it is?', examples: [false] }),
    issues: Type.Array(
      Strict({
        path,
        code: Type.String({
          description: 'What is wrong, or what stands against it.',
          examples: ['reference_invalid'],
        }),
        message: Type.String({
          description: 'The same in words, with the number of records where data stands against it.',
          examples: ['deal.company references company, which does not exist.'],
        }),
      }),
      { description: 'What to correct.' },
    ),
  },
  { title: 'ModelValidity' },
)

const State = (description: string, example: object) =>
  Nullable(Type.Object({}, { additionalProperties: true, description, examples: [example] }))

const Change = Strict(
  {
    kind: Type.Enum([...changeKinds], { description: 'What happens to what.', examples: ['field_changed'] }),
    path,
    before: State('As it was: whole where it is removed, else the properties that change.', { label: 'Sum' }),
    after: State('As it becomes: whole where it is added, else the properties that change.', { label: 'Amount' }),
    breaking: Type.Boolean({
      description: 'Might a client that worked until now be refused, or miss something?',
      examples: [false],
    }),
    rowsAtStake: Nullable(
      Type.Integer({
        minimum: 0,
        description: 'Rows of all organizations that the change would lose, or that stand against it.',
        examples: [0],
      }),
    ),
  },
  { title: 'ModelChange' },
)

const changes = Type.Array(Change, { description: 'Every change, in the order in which they are carried out.' })
const summary = Type.String({
  description: 'The changes in words, a line each.',
  examples: ['field deal.amount added'],
})

export const Diff = Strict(
  {
    changes,
    summary,
    destructive: Type.Boolean({ description: 'Would data be lost for good?', examples: [false] }),
  },
  { title: 'ModelDiff' },
)

const releaseFacts = {
  releaseNumber: Type.Integer({ minimum: 1, description: 'Counts the releases of the application.', examples: [3] }),
  note: Type.String({ description: 'What it is for.', examples: ['Deals have an amount.'] }),
  summary,
  rolledBackTo: Nullable(
    Type.Integer({ minimum: 1, description: 'The release whose model it took up again.', examples: [1] }),
  ),
  publishedAt: Timestamp('When it was published.'),
  publishedBy: PlatformActor('Who published it; the system as `terminal`: `npm run model`, or the demo.'),
}

export const ReleaseItem = Strict(releaseFacts, { title: 'ModelReleaseItem' })
export const Release = Strict({ ...releaseFacts, changes, document: ModelDocument }, { title: 'ModelRelease' })

export const ReleaseQuery = Strict({
  cursor: Type.Optional(Type.String({ description: 'The `nextCursor` of the page before.', examples: ['AbC…'] })),
  pageSize: Type.Optional(PageSize()),
})

export const ReleasePage = Strict(
  {
    items: Type.Array(ReleaseItem, { description: 'Newest first.' }),
    nextCursor: Nullable(Type.String({ description: 'Continues the list; null at its end.', examples: ['AbC…'] })),
  },
  { title: 'ModelReleasePage' },
)
