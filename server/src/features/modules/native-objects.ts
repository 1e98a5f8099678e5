import type { Behaviours, FieldBehaviour, ObjectBehaviour } from '../../shared/catalogue/behaviour.ts'
import { type NativeField, type NativeObject, versioned } from '../../shared/modelling/native-objects.ts'
import { modules } from './descriptors.ts'
import type { Module, ModuleField } from './module.ts'

/** The native modules as objects of every application, and what these do beside keeping values. */
export const nativeObjects = versioned(
  modules.map(objectOf),
  modules.flatMap((module) => module.relationships.map((relationship) => ({ ...relationship, from: module.key }))),
)

export const behaviours: Behaviours = new Map(modules.map((module) => [module.key, behaviourOf(module)]))

function objectOf({ key, label, pluralLabel, nameField, fields }: Module): NativeObject {
  return { objectKey: key, label, pluralLabel, nameField, fields: fields.map(fieldOf) }
}

function fieldOf(field: ModuleField): NativeField {
  const { fieldKey, label, dataType, required, readOnly, unique, indexed, searchable, options, references } = field
  const { minLength, maxLength, pattern, minimum, maximum, scale } = field
  const limits = Object.entries({ minLength, maxLength, pattern, minimum, maximum, scale })
  const given = { required, readOnly, unique, indexed, searchable, references, options: options && [...options] }
  return {
    ...{ fieldKey, label, dataType },
    ...(withoutUndefined(Object.entries(given)) as Partial<NativeField>),
    validation: withoutUndefined(limits),
  }
}

function withoutUndefined(entries: readonly [string, unknown][]): Record<string, never> {
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Record<string, never>
}

function behaviourOf(module: Module): ObjectBehaviour {
  const { fields, derive, subtitleFields, alsoFoundBy = () => [], clearedOnRestore = [] } = module
  const byKey = new Map(fields.map((field) => [field.fieldKey, fieldBehaviourOf(field)]))
  return { fields: byKey, derive, subtitleFields, alsoFoundBy, clearedOnRestore }
}

function fieldBehaviourOf({ description, example, schema, readInto, default: initial }: ModuleField): FieldBehaviour {
  return {
    description,
    example,
    ...(schema && { schema }),
    ...(readInto && { readInto }),
    ...(initial !== undefined && { default: initial }),
  }
}
