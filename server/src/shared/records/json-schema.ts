import type { ObjectAccess } from '../access/permissions.ts'
import { dataTypeOf, isReadOnly } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'
import { BadValue } from '../catalogue/values.ts'

/** JSON Schemas of `fields` for one caller: as read, on create, on update. */
export interface FieldsSchemas {
  readonly record: object
  readonly create: object
  readonly update: object
}

export function fieldsSchemas(access: ObjectAccess): FieldsSchemas {
  const writable = access.readable.filter((field) => access.writableKeys.has(field.fieldKey))
  const mustBeSent = (field: Field) => field.required && field.behaviour?.default === undefined
  const required = writable.filter(mustBeSent).map((field) => field.fieldKey)
  return {
    record: strict(access.readable, (field) => withoutDefault(propertySchema(field, true))),
    create: {
      ...strict(writable, (field) => propertySchema(field, !field.required)),
      ...(required.length > 0 && { required }),
    },
    // A client that fills in defaults would undo with a change what it does not name.
    update: strict(writable, (field) => withoutDefault(propertySchema(field, !field.required))),
  }
}

function strict(fields: readonly Field[], schemaOf: (field: Field) => object) {
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(fields.map((field) => [field.fieldKey, schemaOf(field)])),
  }
}

function withoutDefault({ default: _, ...schema }: PropertySchema): PropertySchema {
  return schema
}

type PropertySchema = Readonly<Record<string, unknown>>

function propertySchema(field: Field, nullable: boolean): PropertySchema {
  const { default: initial, schema: shape, description = `${field.label}.`, example } = field.behaviour ?? {}
  const schema = shape
    ? ({ ...shape } as Record<string, unknown>)
    : withFittingExample(field, dataTypeOf(field).schema(field))
  const { minimum, maximum } = field.validation
  const limits = {
    ...(minimum !== undefined && { minimum }),
    ...(maximum !== undefined && { maximum }),
  }
  const type = schema['type']
  const described = {
    ...schema,
    ...(type === 'string' ? {} : limits),
    title: field.label,
    description,
    ...(initial !== undefined && { default: initial }),
    ...(example !== undefined && { examples: [example] }),
    ...(isReadOnly(field) && { readOnly: true }),
  }
  if (!nullable || type === undefined) return described
  return {
    ...described,
    type: Array.isArray(type) ? [...type, 'null'] : [type, 'null'],
    ...(Array.isArray(schema['enum']) && { enum: [...schema['enum'], null] }),
  }
}

/** The example of a type need not fulfil the limits of a field; another may, and otherwise there is none. */
function withFittingExample(field: Field, schema: Record<string, unknown>): Record<string, unknown> {
  if (Object.keys(field.validation).length === 0) return schema
  const { examples = [], ...rest } = schema as { examples?: readonly unknown[] }
  const fitting = [...examples, ...otherExamples(field, examples[0])].find((value) => isFit(field, value))
  return fitting === undefined ? rest : { ...rest, examples: [fitting] }
}

function otherExamples(field: Field, usual: unknown): unknown[] {
  const { minimum, maximum, minLength = 0, maxLength } = field.validation
  const bounds = [minimum, maximum].filter((bound) => bound !== undefined)
  if (typeof usual === 'number') return bounds
  if (typeof usual !== 'string') return []
  if (field.dataType === 'decimal') return ['1250', ...bounds.map(String)]
  const texts = ['ABC-123', 'AB-1', 'A1', 'ABC', 'abc', 'AB', 'A', '12345', '123', '1', field.label]
  return [...texts, usual.slice(0, maxLength), usual.padEnd(minLength, ' and so on')]
}

function isFit(field: Field, value: unknown): boolean {
  try {
    dataTypeOf(field).read(value, field)
    return true
  } catch (error) {
    if (error instanceof BadValue) return false
    throw error
  }
}
