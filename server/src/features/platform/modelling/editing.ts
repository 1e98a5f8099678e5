import { fail } from '../../../kernel/errors.ts'
import type { FieldDocument, ModelDocument, ObjectDocument, RoleDocument } from '../../../shared/modelling/document.ts'
import { normalised, normalisedField, normalisedObject, own } from '../../../shared/modelling/normalise.ts'

/** Edits of model documents, one part at a time. Pure: each returns the document that comes of it. */
export type PartKind = 'roles' | 'relationships' | 'locations'

export function objectOf({ objects }: ModelDocument, objectKey: string): ObjectDocument | undefined {
  return objects.find((object) => object.objectKey === objectKey)
}

export function fieldOf(document: ModelDocument, objectKey: string, fieldKey: string): FieldDocument | undefined {
  return objectOf(document, objectKey)?.fields.find((field) => field.fieldKey === fieldKey)
}

/** Replaces the object, or adds it; its fields stay unless it brings others. */
export function withObject(
  document: ModelDocument,
  objectKey: string,
  given: Omit<ObjectDocument, 'objectKey' | 'fields'> & { readonly fields?: ObjectDocument['fields'] },
): ModelDocument {
  const fields = given.fields ?? objectOf(document, objectKey)?.fields ?? []
  const object = normalisedObject({ objectKey, ...given, fields })
  return { ...document, objects: put(document.objects, object, (one) => one.objectKey === objectKey) }
}

/** The rights of roles to it go with it. */
export function withoutObject(document: ModelDocument, objectKey: string): ModelDocument {
  if (!objectOf(document, objectKey)) throw fail('object_not_found')
  const objects = document.objects.filter((object) => object.objectKey !== objectKey)
  return withRights({ ...document, objects }, (rights) => without(rights, objectKey))
}

/** Replaces the field, or adds it behind the others. */
export function withField(
  document: ModelDocument,
  objectKey: string,
  fieldKey: string,
  given: Omit<FieldDocument, 'fieldKey'>,
): ModelDocument {
  const object = objectOf(document, objectKey)
  if (!object) throw fail('object_not_found')
  const field = normalisedField({ fieldKey, ...given })
  const fields = put(object.fields, field, (one) => one.fieldKey === fieldKey)
  return { ...document, objects: put(document.objects, { ...object, fields }, (one) => one === object) }
}

export function withoutField(document: ModelDocument, objectKey: string, fieldKey: string): ModelDocument {
  const object = objectOf(document, objectKey)
  if (!object) throw fail('object_not_found')
  if (!fieldOf(document, objectKey, fieldKey)) throw fail('field_not_found')
  const fields = object.fields.filter((field) => field.fieldKey !== fieldKey)
  const objects = put(document.objects, { ...object, fields }, (one) => one === object)
  return withRights({ ...document, objects }, (rights) => {
    const right = own(rights, objectKey)
    return right?.fields ? { ...rights, [objectKey]: { ...right, fields: without(right.fields, fieldKey) } } : rights
  })
}

export function withPart(document: ModelDocument, kind: PartKind, key: string, part: object): ModelDocument {
  return normalised({ ...document, [kind]: { ...document[kind], [key]: part } })
}

export function withoutPart(document: ModelDocument, kind: PartKind, key: string): ModelDocument {
  if (!Object.hasOwn(document[kind] ?? {}, key)) throw fail('model_part_not_found')
  return { ...document, [kind]: without(document[kind]!, key) }
}

function put<T>(list: readonly T[], item: T, isIt: (one: T) => boolean): T[] {
  return list.some(isIt) ? list.map((one) => (isIt(one) ? item : one)) : [...list, item]
}

function without<T>(record: Readonly<Record<string, T>>, key: string): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => name !== key))
}

function withRights(
  document: ModelDocument,
  change: (rights: RoleDocument['objects']) => RoleDocument['objects'],
): ModelDocument {
  const roles = Object.entries(document.roles ?? {}).map(([key, role]) => [
    key,
    { ...role, objects: change(role.objects) },
  ])
  return normalised({ ...document, roles: Object.fromEntries(roles) })
}
