import type { FieldDocument, ModelDocument, ObjectDocument, RoleDocument } from './document.ts'

/**
 * A document in the one form in which documents are compared and kept: what is false or empty is left out, since it means
 * the same as what is absent.
 */
export function normalised(document: ModelDocument): Required<ModelDocument> {
  const { objects, relationships = {}, roles = {}, locations = {} } = document
  return {
    objects: objects.map(normalisedObject),
    relationships,
    roles: Object.fromEntries(Object.entries(roles).map(([key, role]) => [key, normalisedRole(role)])),
    locations,
  }
}

export function normalisedObject({ archived, ...object }: ObjectDocument): ObjectDocument {
  return { ...object, ...(archived && { archived }), fields: object.fields.map(normalisedField) }
}

export function normalisedField(field: FieldDocument): FieldDocument {
  const {
    fieldKey,
    label,
    dataType,
    required,
    unique,
    indexed,
    searchable,
    options,
    validation,
    references,
    archived,
  } = field
  return {
    ...{ fieldKey, label, dataType },
    ...(required && { required }),
    ...(unique && { unique }),
    ...(indexed && { indexed }),
    ...(searchable && { searchable }),
    ...(options && { options }),
    ...(validation && Object.keys(validation).length > 0 && { validation }),
    ...(references !== undefined && { references }),
    ...(archived && { archived }),
  }
}

export function normalisedRole({ label, objects, actions = [] }: RoleDocument): RoleDocument {
  const rights = Object.entries(objects).map(([objectKey, { read, create, update, archive, fields = {} }]) => [
    objectKey,
    {
      read,
      ...(create && { create }),
      ...(update && { update }),
      ...(archive && { archive }),
      ...(Object.keys(fields).length > 0 && { fields }),
    },
  ])
  return {
    label,
    objects: Object.fromEntries(rights) as RoleDocument['objects'],
    ...(actions.length > 0 && { actions: actions.toSorted() }),
  }
}

/** What a record says of a key itself: `constructor` is a key like any other, and every JavaScript object answers to it. */
export function own<T>(record: Readonly<Record<string, T>> | undefined, key: string): T | undefined {
  return record && Object.hasOwn(record, key) ? record[key] : undefined
}
