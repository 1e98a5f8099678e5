import { dataTypes } from '../catalogue/data-types.ts'
import { patternProblem, patternSize, patternSizeMax } from '../catalogue/patterns.ts'
import type { FieldDocument, ModelDocument, ObjectDocument } from './document.ts'

/** One thing to correct in a model: where, why, and in words. */
export interface Issue {
  readonly path: string
  readonly code: string
  readonly message: string
}

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

/** Objects that every application has beside its own, with the keys of their fields. A document may name them. */
export type NativeKeys = ReadonlyMap<string, ReadonlySet<string>>

export const fieldPath = (objectKey: string, fieldKey: string) => `objects/${objectKey}/fields/${fieldKey}`

/** Fields of all objects together. */
const fieldsMax = 10_000

/** Parts of all patterns together, written out: compiling as many takes some tenths of a second. */
const patternPartsMax = 20_000

/**
 * What no schema can say: names that clash, references that lead nowhere, options where there are none. Of a document that
 * is too large it says only that.
 */
export function problemsOf(document: ModelDocument, natives: NativeKeys = new Map()): Issue[] {
  const tooMuch = problemsOfSize(document)
  if (tooMuch.length > 0) return tooMuch
  const keys = document.objects.map((object) => object.objectKey)
  const doubled = new Set(keys.filter((key, index) => keys.indexOf(key) !== index))
  return [
    ...[...doubled].map((key) => ({
      path: `objects/${key}`,
      code: 'duplicate_key',
      message: `The object ${key} is named twice.`,
    })),
    ...keys
      .filter((key) => natives.has(key))
      .map((key) => ({
        path: `objects/${key}`,
        code: 'reserved_key',
        message: `The key ${key} is that of a native module. Roles, references and relationships may name it.`,
      })),
    ...document.objects.flatMap((object) => problemsOfObject(document, natives, object)),
    ...problemsOfRelationships(document, natives),
    ...problemsOfRoles(document, natives),
  ]
}

function problemsOfSize({ objects }: ModelDocument): Issue[] {
  const fields = objects.reduce((sum, object) => sum + object.fields.length, 0)
  // What is too large by itself is told of its field, and is not compiled.
  const parts = objects
    .flatMap((object) => object.fields.map(({ validation }) => patternSize(validation?.pattern ?? '')))
    .reduce((sum, size) => sum + (size > patternSizeMax ? 0 : size), 0)
  const found: Issue[] = []
  const add = (message: string) => found.push({ path: 'objects', code: 'model_too_large', message })
  if (fields > fieldsMax) add(`The model has ${fields} fields; ${fieldsMax} is the most.`)
  if (parts > patternPartsMax) {
    add(`The patterns of all fields have about ${parts} parts, written out; ${patternPartsMax} is the most.`)
  }
  return found
}

function problemsOfObject(document: ModelDocument, natives: NativeKeys, object: ObjectDocument): Issue[] {
  const { objectKey, nameField } = object
  const path = `objects/${objectKey}`
  const keys = object.fields.map((field) => field.fieldKey)
  const issues = object.fields.flatMap((field) => problemsOfField(document, natives, object, field))
  if (new Set(keys).size !== keys.length) {
    issues.unshift({ path, code: 'duplicate_key', message: `${objectKey} names a field twice.` })
  }
  const name = object.fields.find((field) => field.fieldKey === nameField)
  const at = { path: `${path}/nameField`, code: 'name_field_invalid' }
  if (!name) {
    issues.push({ ...at, message: `${objectKey}: the name field ${nameField} is not among its fields.` })
  } else if (!['text', 'email', 'phone', 'url', 'autoNumber'].includes(name.dataType)) {
    issues.push({ ...at, message: `${objectKey}: the name field must be a text field or an autoNumber.` })
  } else if (name.archived) {
    issues.push({ ...at, message: `${objectKey}: the name field ${nameField} is archived.` })
  }
  return issues
}

function problemsOfField(
  document: ModelDocument,
  natives: NativeKeys,
  object: ObjectDocument,
  field: FieldDocument,
): Issue[] {
  const found: [code: string, problem: string][] = []
  if (reservedFieldKeys.has(field.fieldKey)) found.push(['reserved_key', 'is a reserved name.'])
  const choice = field.dataType === 'select' || field.dataType === 'multiSelect'
  if (choice !== (field.options !== undefined)) {
    found.push(['options_invalid', `${choice ? 'needs' : 'has no'} options.`])
  }
  const values = field.options?.map((option) => option.value) ?? []
  if (new Set(values).size !== values.length) found.push(['options_invalid', 'names an option twice.'])
  found.push(
    ...problemsOfReference(document, natives, object, field),
    ...problemsOfType(field),
    ...problemsOfLimits(field),
  )
  return found.map(([code, problem]) => ({
    path: fieldPath(object.objectKey, field.fieldKey),
    code,
    message: `${object.objectKey}.${field.fieldKey} ${problem}`,
  }))
}

function problemsOfReference(
  document: ModelDocument,
  natives: NativeKeys,
  object: ObjectDocument,
  { dataType, references, archived }: FieldDocument,
): [string, string][] {
  if ((dataType === 'reference') !== (references !== undefined)) {
    return [['reference_invalid', 'is wrong about `references`: it belongs to reference fields, and they need it.']]
  }
  if (references === undefined || natives.has(references)) return []
  const target = document.objects.find((candidate) => candidate.objectKey === references)
  if (!target) return [['reference_invalid', `references ${references}, which does not exist.`]]
  const hidden = target.archived && !archived && !object.archived
  return hidden ? [['reference_invalid', `references ${references}, which is archived. Archive the field, too.`]] : []
}

function problemsOfType(field: FieldDocument): [string, string][] {
  const type = dataTypes[field.dataType]
  const found: [string, string][] = []
  if (field.searchable && !type.searchable) found.push(['type_unfit', 'is of a type that cannot be searchable.'])
  if (field.indexed && !type.sortable && !['user', 'reference'].includes(field.dataType)) {
    found.push(['type_unfit', 'is of a type that cannot be indexed.'])
  }
  if (field.unique && !(type.sortable && field.dataType !== 'boolean')) {
    found.push(['type_unfit', 'is of a type that cannot be unique.'])
  }
  if (field.required && 'readOnly' in type) {
    found.push(['type_unfit', 'is set by the service and cannot be required.'])
  }
  return found
}

function problemsOfLimits({ validation = {} }: FieldDocument): [string, string][] {
  const { minLength, maxLength, minimum, maximum, pattern } = validation
  const found: [string, string][] = []
  if (minLength !== undefined && maxLength !== undefined && minLength > maxLength) {
    found.push(['validation_invalid', 'has limits that no length meets.'])
  }
  if (minimum !== undefined && maximum !== undefined && minimum > maximum) {
    found.push(['validation_invalid', 'has limits that no value meets.'])
  }
  // Found out when the first value is written, it would be an error of the service.
  const wrong = pattern === undefined ? undefined : patternProblem(pattern)
  if (wrong) found.push(['validation_invalid', wrong])
  return found
}

function problemsOfRelationships({ objects, relationships = {} }: ModelDocument, natives: NativeKeys): Issue[] {
  const isThere = (key: string) => natives.has(key) || objects.some((one) => one.objectKey === key && !one.archived)
  return Object.entries(relationships).flatMap(([key, { from, to }]) =>
    [from, to]
      .filter((end) => !isThere(end))
      .map((end) => ({
        path: `relationships/${key}`,
        code: 'object_not_found',
        message: `Relationship ${key} names the object ${end}, which does not exist or is archived.`,
      })),
  )
}

function problemsOfRoles({ objects, roles = {} }: ModelDocument, natives: NativeKeys): Issue[] {
  const known = new Map([
    ...objects.map(({ objectKey, fields }) => [objectKey, new Set(fields.map(({ fieldKey }) => fieldKey))] as const),
    ...natives,
  ])
  const code = 'object_not_found'
  return Object.entries(roles).flatMap(([roleKey, role]) => [
    ...problemsOfActions(roleKey, role.actions ?? []),
    ...Object.entries(role.objects).flatMap(([objectKey, rights]) => {
      const fieldKeys = known.get(objectKey)
      const path = `roles/${roleKey}/objects/${objectKey}`
      if (!fieldKeys) {
        return [{ path, code, message: `Role ${roleKey} names the object ${objectKey}, which does not exist.` }]
      }
      return Object.keys(rights.fields ?? {})
        .filter((fieldKey) => !fieldKeys.has(fieldKey))
        .map((fieldKey) => ({
          path: `${path}/fields/${fieldKey}`,
          code: 'field_not_found',
          message: `Role ${roleKey} names the field ${objectKey}.${fieldKey}, which does not exist.`,
        }))
    }),
  ])
}

/** Not said by the schema: it would compare each with each. */
function problemsOfActions(roleKey: string, actions: readonly string[]): Issue[] {
  if (new Set(actions).size === actions.length) return []
  const message = `Role ${roleKey} names an action twice.`
  return [{ path: `roles/${roleKey}/actions`, code: 'duplicate_key', message }]
}
