import Type from 'typebox'
import { AppParams, Strict } from '../../kernel/schemas.ts'
import { dataTypes, operators } from '../../shared/catalogue/data-types.ts'

const objectKey = Type.String({ description: 'The stable key of the object.', examples: ['deal'] })
const schemaRevision = Type.Integer({
  description: 'Rises with every change of the definition.',
  examples: [3],
})
const kind = Type.Enum(['custom', 'native'], {
  description: 'Made by the application, or built in.',
  examples: ['custom'],
})
const flag = (description: string, example = true) => Type.Boolean({ description, examples: [example] })

export const ObjectParams = Strict({ ...AppParams, objectKey })

const operationNames = ['search', 'count', 'get', 'history', 'create', 'update', 'archive', 'restore', 'batch'] as const

const ObjectFields = {
  objectKey,
  label: Type.String({ description: 'What people call one record.', examples: ['Deal'] }),
  pluralLabel: Type.String({ description: 'What people call many.', examples: ['Deals'] }),
  kind,
  schemaRevision,
  operations: Type.Array(Type.Enum([...operationNames]), {
    description: 'What the caller may do with records of this object, as far as roles decide.',
    examples: [['search', 'get']],
  }),
  access: Strict(
    {
      read: flag('May the caller read records?'),
      create: flag('May the caller create records?'),
      update: flag('May the caller update records?'),
      archive: flag('May the caller archive and restore records?', false),
    },
    {
      description: "The caller's object permissions.",
      examples: [{ read: true, create: true, update: true, archive: false }],
    },
  ),
}

export const ObjectSummary = Strict(ObjectFields, { title: 'ObjectSummary' })

export const ObjectList = Strict(
  { objects: Type.Array(ObjectSummary, { description: 'Objects that the caller may read, by key.' }) },
  { title: 'ObjectList' },
)

const FieldSchema = Strict(
  {
    fieldKey: Type.String({ description: 'The key of the field in `fields`.', examples: ['amount'] }),
    label: Type.String({ description: 'What people call it.', examples: ['Amount'] }),
    dataType: Type.Enum(Object.keys(dataTypes), { description: 'The type of its values.', examples: ['decimal'] }),
    required: flag('Must every record have a value?', false),
    unique: flag('May no two live records share a value?', false),
    readOnly: flag('Is it set by the service?', false),
    filterable: flag('May a filter name it?'),
    sortable: flag('May a sort name it?'),
    searchable: flag('Does `search` find its words?', false),
    operators: Type.Array(Type.Enum([...operators]), {
      description: 'The filter operators that it takes.',
      examples: [['eq', 'gt', 'lt']],
    }),
    options: Type.Union(
      [
        Type.Array(
          Strict({
            value: Type.String({ description: 'The stored value.', examples: ['won'] }),
            label: Type.String({ description: 'What people see.', examples: ['Won'] }),
          }),
        ),
        Type.Null(),
      ],
      { description: 'The choices of a select or multiSelect.', examples: [null] },
    ),
    validation: Type.Object(
      {},
      { additionalProperties: true, description: 'Limits of its values.', examples: [{ minimum: 0, scale: 2 }] },
    ),
    reference: Type.Union(
      [
        Strict({ objectKey: Type.String({ description: 'The object referred to.', examples: ['company'] }) }),
        Type.Null(),
      ],
      { description: 'Where a reference leads, if the caller may read that object.', examples: [null] },
    ),
    access: Strict(
      { read: flag('May the caller read it?'), write: flag('May the caller write it?') },
      { description: "The caller's rights to the field.", examples: [{ read: true, write: true }] },
    ),
    indexState: Type.Enum(['none', 'building', 'ready', 'failed'], {
      description: 'Is it fast to filter and sort by? `none`: not indexed.',
      examples: ['ready'],
    }),
  },
  { title: 'FieldSchema' },
)

export const ObjectSchema = Strict(
  {
    ...ObjectFields,
    fields: Type.Array(FieldSchema, { description: 'The fields that the caller may read.' }),
    relationships: Type.Array(
      Strict({
        relationshipKey: Type.String({
          description:
            'Names the hop in `related` and `expand`. `inverse:<key>` follows a relationship from its `to` end.',
          examples: ['company'],
        }),
        label: Type.String({ description: 'What people call it, seen from here.', examples: ['Company'] }),
        objectKey: Type.String({ description: 'The object at the other end.', examples: ['company'] }),
        kind: Type.Enum(['reference', 'relationship'], {
          description:
            'reference: a field holds the id of the other record. relationship: links, under `/relationships`.',
          examples: ['reference'],
        }),
        cardinality: Type.Optional(
          Type.Enum(['one-to-many', 'many-to-many'], {
            description: 'Of a relationship, seen from its `from` end.',
            examples: ['many-to-many'],
          }),
        ),
      }),
      { description: 'Where one hop leads.' },
    ),
    searchState: Type.Enum(['building', 'ready'], {
      description:
        'Does `search` know all its searchable fields? `building`: fields became searchable, or ceased to be, and records are still gone through.',
      examples: ['ready'],
    }),
    sortValues: Type.Array(Type.String(), {
      description: 'Every value that `sort` takes.',
      examples: [['created_asc', 'created_desc']],
    }),
    jsonSchema: Strict(
      {
        record: Type.Object({}, { additionalProperties: true, description: 'Of `fields` as read.', examples: [{}] }),
        create: Type.Object({}, { additionalProperties: true, description: 'Of `fields` on create.', examples: [{}] }),
        update: Type.Object({}, { additionalProperties: true, description: 'Of `fields` on update.', examples: [{}] }),
      },
      { description: 'JSON Schema (draft 2020-12) of `fields` for this caller.' },
    ),
  },
  { title: 'ObjectSchema' },
)
