import Type, { type TSchema } from 'typebox'
import { ApiErrorResponse, AppParams, Nullable, Revision, Strict, Timestamp } from '../../kernel/schemas.ts'
import { BrowsePage, BrowsePaging } from '../../shared/browse.ts'
import { dataTypes } from '../../shared/catalogue/data-types.ts'
import type { Field } from '../../shared/catalogue/field.ts'
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
      { ...bodyFields(module), ...Placement, participants: Type.Optional(participants), ...key },
      { title: `New${name}`, description: 'Fields that are left out take their defaults.', examples: [newRow(module)] },
    ),
    Changes: Strict(
      { ...bodyFields(module), ...Placement, participants: Type.Optional(participants), ...key, expectedRevision },
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
      ...Object.fromEntries(
        module.fields.map((field) => [field.fieldKey, Type.Optional(orNull(field, valueShape(field)))]),
      ),
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

function orNull(field: ModuleField, shape: TSchema): TSchema {
  return field.required || field.dataType === 'autoNumber' ? shape : Nullable(shape)
}

/** A value of the field as it is read. */
function valueShape(field: ModuleField): TSchema {
  const { description, example } = field
  const shape = field.schema ?? dataTypes[field.dataType].schema(asField(field))
  return Type.Unsafe({ ...shape, ...boundsOf(field), description, examples: [example], ...readOnlyMark(field) })
}

function readOnlyMark({ readOnly }: ModuleField) {
  return readOnly ? { readOnly: true } : {}
}

function boundsOf({ dataType, minimum, maximum, minLength, pattern }: ModuleField) {
  const isNumber = dataType === 'integer' || dataType === 'float'
  return {
    ...(isNumber && minimum !== undefined && { minimum }),
    ...(isNumber && maximum !== undefined && { maximum }),
    ...(minLength !== undefined && { minLength }),
    ...(pattern !== undefined && { pattern: `^(?:${pattern})$` }),
  }
}

/** As much of a field's definition as the schema of its data type looks at. */
function asField({ fieldKey, dataType, options, unique, indexed, maxLength, scale }: ModuleField): Field {
  const validation = { ...(maxLength !== undefined && { maxLength }), ...(scale !== undefined && { scale }) }
  return { fieldKey, dataType, options: options ?? null, unique, indexed, validation } as Field
}

/**
 * The fields of a body. They are documented in full and read by `shared/records/input`, as the fields of every record
 * are: one place says which values a field takes. Schemas here would refuse the same values with other codes.
 */
function bodyFields({ fields }: Module): Record<string, Type.TOptional<TSchema>> {
  return Object.fromEntries(
    fields.map((field) => {
      const { description, example } = field
      const documented = { description, examples: [example], 'x-schema': bodyShape(field) }
      return [field.fieldKey, Type.Optional(Type.Unknown(documented))]
    }),
  )
}

function bodyShape(field: ModuleField): TSchema {
  const shape = orNull(field, valueShape(field))
  return field.default === undefined ? shape : Type.Unsafe({ ...shape, default: field.default })
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
            ...bodyFields(module),
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

/** What a new record needs, and its name. Ids of other records are none that an example could know. */
function newRow({ fields, nameField }: Module): Record<string, unknown> {
  const isShown = (field: ModuleField) =>
    (field.required === true || field.fieldKey === nameField || exemplary.has(field.fieldKey)) &&
    !field.readOnly &&
    field.references === undefined
  return Object.fromEntries(fields.filter(isShown).map((field) => [field.fieldKey, field.example]))
}

/** Fields that say at a glance what a module is about. */
const exemplary = new Set(['firstName', 'lastName', 'emails', 'phones', 'lines'])

/** A change that any record takes: a text that no state locks. */
function changes({ fields }: Module): Record<string, unknown> {
  const plain = fields.find((field) => field.fieldKey === 'tags') ?? fields.find(isFree)
  return plain ? { [plain.fieldKey]: plain.example } : {}
}

function isFree({ dataType, readOnly, unique, lockedIn }: ModuleField): boolean {
  return (dataType === 'text' || dataType === 'longText') && !readOnly && !unique && !lockedIn
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
