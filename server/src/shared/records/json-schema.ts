import type { ObjectAccess } from '../access/permissions.ts'
import { dataTypeOf } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'

/** JSON Schemas of `fields` for one caller: as read, on create, on update. */
export interface FieldsSchemas {
  readonly record: object
  readonly create: object
  readonly update: object
}

export function fieldsSchemas(access: ObjectAccess): FieldsSchemas {
  const writable = access.readable.filter((field) => access.writableKeys.has(field.fieldKey))
  const required = writable.filter((field) => field.required).map((field) => field.fieldKey)
  return {
    record: strict(access.readable, (field) => propertySchema(field, true)),
    create: {
      ...strict(writable, (field) => propertySchema(field, !field.required)),
      ...(required.length > 0 && { required }),
    },
    update: strict(writable, (field) => propertySchema(field, !field.required)),
  }
}

function strict(fields: readonly Field[], schemaOf: (field: Field) => object) {
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(fields.map((field) => [field.fieldKey, schemaOf(field)])),
  }
}

function propertySchema(field: Field, nullable: boolean): object {
  const schema = dataTypeOf(field).schema(field)
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
    description: `${field.label}.`,
  }
  if (!nullable || type === undefined) return described
  return {
    ...described,
    type: Array.isArray(type) ? [...type, 'null'] : [type, 'null'],
    ...(Array.isArray(schema['enum']) && { enum: [...schema['enum'], null] }),
  }
}
