import type { ChangeView } from './changes.ts'
import {
  FieldDocument,
  LocationDocument,
  ModelDocument,
  ObjectDocument,
  RelationshipDocument,
  RoleDocument,
} from './document.ts'

/** `jsonb` keeps properties in an order of its own. What people read has the order of the schema, and keys by alphabet. */
export function orderedDocument(document: ModelDocument): ModelDocument {
  return ordered(ModelDocument, document) as ModelDocument
}

const schemas: Readonly<Record<string, object>> = {
  object: ObjectDocument,
  field: FieldDocument,
  relationship: RelationshipDocument,
  role: RoleDocument,
  location: LocationDocument,
}

export function orderedChange(change: ChangeView): ChangeView {
  const schema = schemas[change.kind.split('_')[0]!]!
  const state = (value: ChangeView['before']) => ordered(schema, value) as ChangeView['before']
  return { ...change, before: state(change.before), after: state(change.after) }
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}

function ordered(of: object, value: unknown): unknown {
  const { properties = {}, patternProperties = {}, items = {} } = of as Schema
  if (Array.isArray(value)) return value.map((item) => ordered(items, item))
  if (typeof value !== 'object' || value === null) return value
  const state = value as Readonly<Record<string, unknown>>
  const [values = {}] = Object.values(patternProperties)
  const names = [
    ...Object.keys(properties).filter((name) => Object.hasOwn(state, name)),
    ...Object.keys(state)
      .filter((name) => !Object.hasOwn(properties, name))
      .sort(),
  ]
  const schemaOf = (name: string) => (Object.hasOwn(properties, name) ? properties[name]! : values)
  return Object.fromEntries(names.map((name) => [name, ordered(schemaOf(name), state[name])]))
}
