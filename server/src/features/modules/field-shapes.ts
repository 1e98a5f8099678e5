import Type, { type TSchema } from 'typebox'
import { Nullable } from '../../kernel/schemas.ts'
import { dataTypes } from '../../shared/catalogue/data-types.ts'
import type { Field } from '../../shared/catalogue/field.ts'
import { asWritten } from '../../shared/catalogue/written.ts'
import type { Module, ModuleField } from './module.ts'

/** Shapes of the fields of a module, as they are read and as they are written, and examples of whole bodies. */

function orNull(field: ModuleField, shape: TSchema): TSchema {
  return field.required || field.dataType === 'autoNumber' ? shape : Nullable(shape)
}

/** A field of a row. `name` is that of the module: lists and structures are called by both, and written once. */
export function rowField(field: ModuleField, name: string): TSchema {
  return orNull(field, valueShape(field, name))
}

/** A value of the field as it is read. */
export function valueShape(field: ModuleField, name?: string): TSchema {
  const { description, example } = field
  const title = name !== undefined &&
    field.schema && { title: name + field.fieldKey.replace(/^./, (c) => c.toUpperCase()) }
  const shape = field.schema ?? dataTypes[field.dataType].schema(asField(field))
  return Type.Unsafe({
    ...shape,
    ...title,
    ...boundsOf(field),
    description,
    examples: [example],
    ...readOnlyMark(field),
  })
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
 * are: one place says which values a field takes. Schemas here would refuse the same values with other codes. Defaults are
 * told of new rows alone: a client that fills them in would undo with a change what it does not name.
 */
export function bodyFields(
  { fields }: Module,
  name: string,
  of: 'new row' | 'change',
): Record<string, Type.TOptional<TSchema>> {
  return Object.fromEntries(
    fields.map((field) => {
      const { description } = field
      const documented = {
        description,
        examples: [written(field)],
        'x-schema': of === 'new row' ? newShape(field, name) : rowField(field, name),
      }
      return [field.fieldKey, Type.Optional(Type.Unknown(documented))]
    }),
  )
}

function newShape(field: ModuleField, name: string): TSchema {
  const shape = rowField(field, name)
  return field.default === undefined ? shape : Type.Unsafe({ ...shape, default: field.default })
}

/** What a new record needs, and its name. Ids of other records are none that an example could know. */
export function newRow({ fields, nameField }: Module): Record<string, unknown> {
  const isShown = (field: ModuleField) =>
    (field.required === true || field.fieldKey === nameField || exemplary.has(field.fieldKey)) &&
    !field.readOnly &&
    field.references === undefined
  return Object.fromEntries(fields.filter(isShown).map((field) => [field.fieldKey, written(field)]))
}

/** Fields that say at a glance what a module is about. */
const exemplary = new Set(['firstName', 'lastName', 'emails', 'phones', 'lines'])

/** A change that any record takes: a text that no state locks. */
export function changes({ fields }: Module): Record<string, unknown> {
  const plain = fields.find((field) => field.fieldKey === 'tags') ?? fields.find(isFree)
  return plain ? { [plain.fieldKey]: written(plain) } : {}
}

function isFree({ dataType, readOnly, unique, lockedIn }: ModuleField): boolean {
  return (dataType === 'text' || dataType === 'longText') && !readOnly && !unique && !lockedIn
}

/** The example of a field without what the service works out inside of it. */
function written({ example, schema }: ModuleField): unknown {
  return schema ? asWritten(schema, example) : example
}
