import { RE2JS } from 're2js'
import Type, { type Static } from 'typebox'
import { Strict } from '../../kernel/schemas.ts'
import { type DataTypeKey, dataTypes } from '../catalogue/data-types.ts'

/**
 * A model document: objects, fields and what roles may do with them, as people write it (the demo, examples, the command
 * `npm run model`). Applying one is additive; see `apply.ts`.
 */
const Key = (pattern: string) => Type.String({ pattern })
const Label = Type.String({ minLength: 1, maxLength: 200 })

const FieldDocument = Strict({
  fieldKey: Key('^[a-z][A-Za-z0-9_]{0,49}$'),
  label: Label,
  dataType: Type.Unsafe<DataTypeKey>(Type.Enum(Object.keys(dataTypes))),
  required: Type.Optional(Type.Boolean()),
  unique: Type.Optional(Type.Boolean()),
  /** Fast to filter and sort by. */
  indexed: Type.Optional(Type.Boolean()),
  /** Found by `search`. */
  searchable: Type.Optional(Type.Boolean()),
  options: Type.Optional(
    Type.Array(Strict({ value: Type.String({ minLength: 1, maxLength: 100 }), label: Label }), {
      minItems: 1,
      maxItems: 500,
    }),
  ),
  validation: Type.Optional(
    Strict({
      minLength: Type.Optional(Type.Integer({ minimum: 0 })),
      maxLength: Type.Optional(Type.Integer({ minimum: 1 })),
      pattern: Type.Optional(Type.String({ maxLength: 500 })),
      minimum: Type.Optional(Type.Number()),
      maximum: Type.Optional(Type.Number()),
      scale: Type.Optional(Type.Integer({ minimum: 0, maximum: 18 })),
    }),
  ),
  /** The object key that a reference points to. */
  references: Type.Optional(Type.String()),
})

const PermissionDocument = Strict({
  read: Type.Boolean(),
  create: Type.Optional(Type.Boolean()),
  update: Type.Optional(Type.Boolean()),
  archive: Type.Optional(Type.Boolean()),
  /** By field key; a field that is not named follows the object. */
  fields: Type.Optional(Type.Record(Type.String(), Strict({ read: Type.Boolean(), write: Type.Boolean() }))),
})

export const ModelDocument = Strict({
  objects: Type.Array(
    Strict({
      objectKey: Key('^[a-z][a-z0-9-]{0,49}$'),
      label: Label,
      pluralLabel: Label,
      /** The text field that names a record. */
      nameField: Type.String(),
      fields: Type.Array(FieldDocument, { minItems: 1, maxItems: 300 }),
    }),
  ),
  /** By role template key, then by object key. */
  roles: Type.Optional(
    Type.Record(
      Type.String({ pattern: '^[a-z][a-z0-9_-]{0,49}$' }),
      Strict({ label: Label, objects: Type.Record(Type.String(), PermissionDocument) }),
      // Without this a key that does not match the pattern is not looked at.
      { additionalProperties: false },
    ),
  ),
})

export type ModelDocument = Static<typeof ModelDocument>
export type ObjectDocument = ModelDocument['objects'][number]
export type FieldDocument = Static<typeof FieldDocument>

/** Names that records carry themselves, and names that JavaScript objects are born with. */
const reservedFieldKeys = new Set([
  'recordId',
  'objectKey',
  'displayName',
  'fields',
  'ownerUserId',
  'dataRoleId',
  'locationId',
  'externalKey',
  'participants',
  'createdAt',
  'createdBy',
  'updatedAt',
  'updatedBy',
  'archivedAt',
  'revision',
  'access',
  'created',
  'updated',
  'constructor',
  'prototype',
])

/** What no schema can say: names that clash, references that lead nowhere, options where there are none. */
export function problemsOf(document: ModelDocument, existingObjectKeys: ReadonlySet<string>): string[] {
  const problems: string[] = []
  const objectKeys = document.objects.map((object) => object.objectKey)
  const known = new Set([...existingObjectKeys, ...objectKeys])
  for (const key of new Set(objectKeys.filter((key, index) => objectKeys.indexOf(key) !== index))) {
    problems.push(`The object ${key} is named twice.`)
  }
  for (const object of document.objects) {
    const at = (field: FieldDocument) => `${object.objectKey}.${field.fieldKey}`
    const keys = object.fields.map((field) => field.fieldKey)
    if (new Set(keys).size !== keys.length) problems.push(`${object.objectKey} names a field twice.`)
    for (const field of object.fields) {
      if (reservedFieldKeys.has(field.fieldKey)) problems.push(`${at(field)} is a reserved name.`)
      const choice = field.dataType === 'select' || field.dataType === 'multiSelect'
      if (choice !== (field.options !== undefined))
        problems.push(`${at(field)} ${choice ? 'needs' : 'has no'} options.`)
      const values = field.options?.map((option) => option.value) ?? []
      if (new Set(values).size !== values.length) problems.push(`${at(field)} names an option twice.`)
      if ((field.dataType === 'reference') !== (field.references !== undefined)) {
        problems.push(`${at(field)}: \`references\` belongs to reference fields, and they need it.`)
      }
      if (field.references !== undefined && !known.has(field.references)) {
        problems.push(`${at(field)} references ${field.references}, which does not exist.`)
      }
      problems.push(
        ...[...problemsOfType(field), ...problemsOfLimits(field)].map((problem) => `${at(field)} ${problem}`),
      )
    }
    const name = object.fields.find((field) => field.fieldKey === object.nameField)
    if (!name && !existingObjectKeys.has(object.objectKey)) {
      problems.push(`${object.objectKey}: the name field ${object.nameField} is not among its fields.`)
    }
    if (name && !['text', 'email', 'phone', 'url', 'autoNumber'].includes(name.dataType)) {
      problems.push(`${object.objectKey}: the name field must be a text field or an autoNumber.`)
    }
  }
  return problems
}

function problemsOfType(field: FieldDocument): string[] {
  const type = dataTypes[field.dataType]
  const problems: string[] = []
  if (field.searchable && !type.searchable) problems.push('is of a type that cannot be searchable.')
  if (field.indexed && !type.sortable && !['user', 'reference'].includes(field.dataType)) {
    problems.push('is of a type that cannot be indexed.')
  }
  if (field.unique && !(type.sortable && field.dataType !== 'boolean'))
    problems.push('is of a type that cannot be unique.')
  if (field.required && 'readOnly' in type) problems.push('is set by the service and cannot be required.')
  return problems
}

function problemsOfLimits({ validation = {} }: FieldDocument): string[] {
  const { minLength, maxLength, minimum, maximum, pattern } = validation
  const problems: string[] = []
  if (minLength !== undefined && maxLength !== undefined && minLength > maxLength) {
    problems.push('has limits that no length meets.')
  }
  if (minimum !== undefined && maximum !== undefined && minimum > maximum) {
    problems.push('has limits that no value meets.')
  }
  // Found out when the first value is written, it would be an error of the service.
  if (pattern !== undefined && !isPattern(pattern)) problems.push('has a pattern that is not valid RE2 syntax.')
  return problems
}

function isPattern(pattern: string): boolean {
  try {
    RE2JS.compile(pattern)
    return true
  } catch {
    return false
  }
}
