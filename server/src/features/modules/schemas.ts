import Type, { type TSchema } from 'typebox'
import { ApiErrorResponse, AppParams, Nullable, Revision, Strict, Timestamp } from '../../kernel/schemas.ts'
import { BrowsePage, BrowsePaging } from '../../shared/browse.ts'
import {
  dataRoleId,
  expectedRevision,
  externalKey,
  locationId,
  ownerUserId,
  Placement,
  participants,
  recordId,
  search,
} from '../../shared/records/shapes.ts'
import { bodyFields, changes, newRow, rowField, valueShape } from './field-shapes.ts'
import type { Module, ModuleField } from './module.ts'

/** Shapes of the operations of a module, made from its descriptor. Titles follow its label: `Calendar event`. */
export const ModuleParams = Strict(AppParams)
export const RowParams = Strict({ ...AppParams, recordId })

export type Shapes = ReturnType<typeof shapesOf>

export function shapesOf(module: Module) {
  const name = module.label.replaceAll(/(?:^|\s)(\w)/g, (_, first: string) => first.toUpperCase())
  const Row = rowShape(module, name)
  return {
    Row,
    ListQuery: Strict({ ...filtersOf(module), sort: sortOf(module), ...BrowsePaging }),
    CountQuery: Strict(filtersOf(module)),
    List: BrowsePage(Row, `${name}List`),
    NewRow: Strict(
      { ...bodyFields(module, name, 'new row'), ...Placement, participants: Type.Optional(participants), ...key },
      { title: `New${name}`, description: 'Fields that are left out take their defaults.', examples: [newRow(module)] },
    ),
    Changes: Strict(
      {
        ...bodyFields(module, name, 'change'),
        ...Placement,
        participants: Type.Optional(participants),
        ...key,
        expectedRevision,
      },
      { title: `${name}Changes`, description: 'What to set; null clears.', examples: [changes(module)] },
    ),
    Batch: batchShape(module, name),
    BatchResults: Strict(
      {
        results: Type.Array(
          Strict({
            index: Type.Integer({ minimum: 0, description: 'The position of the item.', examples: [0] }),
            status: Type.Integer({ description: 'The status that it would have had alone.', examples: [201] }),
            record: Type.Optional(Row),
            error: Type.Optional(ApiErrorResponse),
          }),
          { description: 'One result for each item, in order.' },
        ),
      },
      { title: `${name}BatchResults` },
    ),
  }
}

const key = { externalKey: Type.Optional(Nullable(externalKey)) }

export const Assignment = Strict(
  { ...Placement, participants: Type.Optional(participants), expectedRevision },
  {
    title: 'Assignment',
    description: 'Whose the record is, where, and who takes part; what is not named stays.',
    examples: [{ locationId: null, participants: [] }],
  },
)

function rowShape(module: Module, title: string) {
  return Strict(
    {
      recordId,
      ...Object.fromEntries(module.fields.map((field) => [field.fieldKey, Type.Optional(rowField(field, title))])),
      ownerUserId: Nullable(ownerUserId),
      dataRoleId: Nullable(dataRoleId),
      locationId: Nullable(locationId),
      externalKey: Nullable(externalKey),
      createdAt: Timestamp('When it was created.'),
      updatedAt: Timestamp('When it last changed.'),
      archivedAt: Nullable(Timestamp('When it was archived; null while it is live.')),
      revision: Revision,
    },
    { title, description: `${module.description} Fields that the caller may not read are absent.` },
  )
}

function batchShape(module: Module, name: string) {
  return Strict(
    {
      atomic: Type.Optional(Type.Boolean({ description: 'All or nothing?', default: false, examples: [true] })),
      items: Type.Array(
        Strict(
          {
            operation: Type.Enum(['create', 'update', 'archive', 'upsert'], {
              description: 'What to do.',
              examples: ['create'],
            }),
            recordId: Type.Optional(recordId),
            ...bodyFields(module, name, 'change'),
            ...Placement,
            participants: Type.Optional(participants),
            ...key,
            expectedRevision,
          },
          { title: `${name}BatchItem` },
        ),
        { minItems: 1, maxItems: 200, description: 'At most 200 items, done in this order.' },
      ),
    },
    { title: `${name}Batch`, examples: [{ items: [{ operation: 'create', ...newRow(module) }] }] },
  )
}

/** What narrows a list and its count. Those of contacts are the specification's (4.3). */
function filtersOf(module: Module) {
  const optional = (schema: TSchema) => Type.Optional(schema)
  return {
    search: Type.Optional(search),
    ...Object.fromEntries(filterFields(module).map((field) => [field.fieldKey, optional(filterShape(field))])),
    locationId: Type.Optional(locationId),
    ownerUserId: Type.Optional(ownerUserId),
  }
}

/** The fields that lists are narrowed by: the state, and of contacts their kind and type. */
export function filterFields({
  key,
  fields,
  states,
}: Pick<Module, 'key' | 'fields' | 'states'>): readonly ModuleField[] {
  const names = key === 'contacts' ? ['contactType', 'contactTypeId'] : states ? [states.field] : []
  return names.map((name) => fields.find((field) => field.fieldKey === name)!)
}

function filterShape(field: ModuleField): TSchema {
  if (field.fieldKey === 'contactType') return valueShape(field)
  const items = valueShape(field)
  return Type.Array(items, {
    minItems: 1,
    maxItems: 50,
    description: `Only those with one of these values. ${field.description} Repeatable.`,
    examples: [[field.example]],
  })
}

function sortOf({ nameField }: Module) {
  return Type.Optional(
    Type.Array(Type.String({ maxLength: 60, description: 'One sort value.', examples: ['created_desc'] }), {
      minItems: 1,
      maxItems: 3,
      description:
        'created, updated, name or the key of a sortable field, with _asc or _desc. Repeatable up to three times, the first leads. Default created_desc.',
      examples: [[`${nameField}_asc`]],
    }),
  )
}
