import Type, { type Static } from 'typebox'
import { Strict } from '../../kernel/schemas.ts'
import { type DataTypeKey, dataTypes } from '../catalogue/data-types.ts'

/**
 * A model document: what an application consists of, as people write it (the demo, examples, the command `npm run model`)
 * and as the platform keeps drafts and releases. `problems.ts` says what no schema can; `publish.ts` brings an application
 * to a document.
 */
const objectKeyPattern = '^[a-z][a-z0-9-]{0,49}$'
const roleKeyPattern = '^[a-z][a-z0-9_-]{0,49}$'

export const ObjectKey = Type.String({
  pattern: objectKeyPattern,
  description: 'The stable key of an object: lower case, digits and hyphens.',
  examples: ['deal'],
})
export const FieldKey = Type.String({
  pattern: '^[a-z][A-Za-z0-9_]{0,49}$',
  description: 'The stable key of a field.',
  examples: ['amount'],
})
export const PartKey = Type.String({
  pattern: roleKeyPattern,
  description: 'The stable key of a role, a relationship or a location template.',
  examples: ['sales'],
})

const Label = (description: string, example: string) =>
  Type.String({ minLength: 1, maxLength: 200, description, examples: [example] })
const Flag = (description: string, example = true) => Type.Optional(Type.Boolean({ description, examples: [example] }))
const Archived = Flag('Hidden from the API, with its data kept; false or absent brings it back.', false)

/** A record by key; a key that does not match is refused instead of not being looked at. */
function Keyed<T extends Type.TSchema>(
  pattern: string,
  value: T,
  maxProperties: number,
  description: string,
  example: object,
) {
  return Type.Record(Type.String({ pattern }), value, {
    additionalProperties: false,
    maxProperties,
    description,
    examples: [example],
  })
}

export const FieldProperties = {
  label: Label('What people call the field.', 'Amount'),
  dataType: Type.Unsafe<DataTypeKey>(
    Type.Enum(Object.keys(dataTypes), {
      description: 'The type of its values. It cannot change once it is published.',
      examples: ['decimal'],
    }),
  ),
  required: Flag('Must every record have a value?'),
  unique: Flag('May no two live records of an organization share a value?', false),
  indexed: Flag('Fast to filter and sort by.'),
  searchable: Flag('Found by `search`.', false),
  options: Type.Optional(
    Type.Array(
      Strict({
        value: Type.String({ minLength: 1, maxLength: 100, description: 'The stored value.', examples: ['won'] }),
        label: Label('What people see.', 'Won'),
      }),
      {
        minItems: 1,
        maxItems: 500,
        description: 'The choices of a select or multiSelect.',
        examples: [[{ value: 'won', label: 'Won' }]],
      },
    ),
  ),
  validation: Type.Optional(
    Strict(
      {
        minLength: Type.Optional(Type.Integer({ minimum: 0, description: 'Fewest characters.', examples: [3] })),
        maxLength: Type.Optional(Type.Integer({ minimum: 1, description: 'Most characters.', examples: [80] })),
        pattern: Type.Optional(
          Type.String({
            maxLength: 500,
            description: 'What the whole value must match (RE2 syntax).',
            examples: ['[A-Z]+-[0-9]+'],
          }),
        ),
        minimum: Type.Optional(Type.Number({ description: 'The smallest value.', examples: [0] })),
        maximum: Type.Optional(Type.Number({ description: 'The largest value.', examples: [100] })),
        scale: Type.Optional(
          Type.Integer({
            minimum: 0,
            maximum: 18,
            description: 'Most digits after the point of a decimal.',
            examples: [2],
          }),
        ),
      },
      {
        description: 'Limits of its values. They hold for what is written from then on; records keep what they have.',
        examples: [{ minimum: 0, scale: 2 }],
      },
    ),
  ),
  references: Type.Optional(
    Type.String({ description: 'The object key that a reference leads to.', examples: ['company'] }),
  ),
  archived: Archived,
}

export const FieldDocument = Strict({ fieldKey: FieldKey, ...FieldProperties }, { title: 'ModelField' })

export const ObjectProperties = {
  label: Label('What people call one record.', 'Deal'),
  pluralLabel: Label('What people call many.', 'Deals'),
  nameField: Type.String({ description: 'The text or autoNumber field that names a record.', examples: ['name'] }),
  archived: Archived,
}

export const ObjectDocument = Strict(
  {
    objectKey: ObjectKey,
    ...ObjectProperties,
    fields: Type.Array(FieldDocument, { maxItems: 300, description: 'Its fields, in order.' }),
  },
  { title: 'ModelObject' },
)

const ObjectRights = Strict(
  {
    read: Type.Boolean({ description: 'Read records.', examples: [true] }),
    create: Flag('Create records.'),
    update: Flag('Update records.'),
    archive: Flag('Archive and restore records.', false),
    fields: Type.Optional(
      Type.Record(
        Type.String(),
        Strict({
          read: Type.Boolean({ description: 'Read the field.', examples: [true] }),
          write: Type.Boolean({ description: 'Write the field.', examples: [false] }),
        }),
        {
          maxProperties: 500,
          description: 'By field key; a field that is not named follows the object.',
          examples: [{ amount: { read: true, write: false } }],
        },
      ),
    ),
  },
  { title: 'ModelObjectRights' },
)

export const RoleDocument = Strict(
  {
    label: Label('What people call the role.', 'Sales'),
    objects: Type.Record(Type.String(), ObjectRights, {
      maxProperties: 600,
      description: 'What the role may do, by object key. What it does not name does not exist for it.',
      examples: [{ deal: { read: true, create: true } }],
    }),
    actions: Type.Optional(
      Type.Array(Type.String({ pattern: objectKeyPattern }), {
        maxItems: 500,
        description: 'Keys of the actions that the role may invoke.',
        examples: [['close-deal']],
      }),
    ),
  },
  {
    title: 'ModelRole',
    description: 'A DataRole template: every organization of the application has a DataRole of it.',
  },
)

export const RelationshipDocument = Strict(
  {
    label: Label('What people call it, seen from `from`.', 'Attendees'),
    inverseLabel: Label('What people call it, seen from `to`.', 'Meetings'),
    cardinality: Type.Enum(['one-to-many', 'many-to-many'], {
      description: 'one-to-many: a record of `to` is related to at most one record of `from`.',
      examples: ['many-to-many'],
    }),
    from: Type.String({ description: 'The object key at one end.', examples: ['meeting'] }),
    to: Type.String({ description: 'The object key at the other end; may be the same.', examples: ['contact'] }),
    deleteRule: Type.Enum(['unlink', 'restrict', 'archive'], {
      description:
        'When a record of `from` is archived: `unlink` ends the relationships, `restrict` refuses while there are any, ' +
        '`archive` archives the related records too.',
      examples: ['unlink'],
    }),
  },
  { title: 'ModelRelationship' },
)

export const LocationDocument = Strict(
  { label: Label('What people call the location.', 'North') },
  {
    title: 'ModelLocation',
    description: 'A location template: every organization of the application gets a location of it.',
  },
)

export const ModelDocument = Strict(
  {
    objects: Type.Array(ObjectDocument, { maxItems: 500, description: 'The objects of the application.' }),
    relationships: Type.Optional(
      Keyed(objectKeyPattern, RelationshipDocument, 500, 'Relationships between objects, by key.', {
        attendees: {
          label: 'Attendees',
          inverseLabel: 'Meetings',
          cardinality: 'many-to-many',
          from: 'meeting',
          to: 'contact',
          deleteRule: 'unlink',
        },
      }),
    ),
    roles: Type.Optional(
      Keyed(roleKeyPattern, RoleDocument, 200, 'DataRole templates, by key.', {
        sales: { label: 'Sales', objects: { deal: { read: true, create: true, update: true } } },
      }),
    ),
    locations: Type.Optional(
      Keyed(roleKeyPattern, LocationDocument, 1000, 'Location templates, by key.', { north: { label: 'North' } }),
    ),
  },
  { title: 'ModelDocument', description: 'A whole model.' },
)

export type ModelDocument = Static<typeof ModelDocument>
export type ObjectDocument = Static<typeof ObjectDocument>
export type FieldDocument = Static<typeof FieldDocument>
export type RoleDocument = Static<typeof RoleDocument>
export type RelationshipDocument = Static<typeof RelationshipDocument>
export type LocationDocument = Static<typeof LocationDocument>
