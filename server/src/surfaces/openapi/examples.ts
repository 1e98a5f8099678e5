import type { Json } from './json-schema.ts'
import type { SchemaSet } from './schema-set.ts'

/**
 * An example that the schema accepts, made from the `examples` on its way down. A request names what is required (or
 * everything, where nothing is); a response shows everything. `trail` holds the components on the way: a recursive
 * schema ends where it meets itself, with undefined.
 */
export function exampleOf(
  schema: Json,
  use: 'request' | 'response',
  set: SchemaSet,
  trail: readonly string[] = [],
): unknown {
  if (Array.isArray(schema['examples']) && schema['examples'].length > 0) return schema['examples'][0]
  for (const keyword of ['default', 'const'] as const) if (keyword in schema) return schema[keyword]
  if (Array.isArray(schema['enum'])) return schema['enum'][0]
  const below = (inner: unknown) => exampleOf(inner as Json, use, set, trail)

  if (typeof schema['$ref'] === 'string') {
    const name = schema['$ref'].split('/').at(-1)!
    const component = set.components.get(name)
    return component && !trail.includes(name) ? exampleOf(component, use, set, [...trail, name]) : undefined
  }
  for (const keyword of ['anyOf', 'oneOf'] as const) {
    const branches = schema[keyword] as readonly Json[] | undefined
    if (branches) return below(branches.find((branch) => branch['type'] !== 'null') ?? branches[0])
  }
  if (Array.isArray(schema['allOf'])) return Object.assign({}, ...schema['allOf'].map(below)) as unknown
  switch (Array.isArray(schema['type']) ? schema['type'][0] : schema['type']) {
    case 'object':
      return objectExample(schema, use, below)
    case 'array':
      return schema['items'] ? [below(schema['items'])].filter((item) => item !== undefined) : []
    case 'string':
      return 'text'
    case 'integer':
    case 'number':
      return (schema['minimum'] as number | undefined) ?? 1
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return {}
  }
}

function objectExample(schema: Json, use: 'request' | 'response', below: (inner: unknown) => unknown): Json {
  const properties = (schema['properties'] ?? {}) as Json
  const required = (schema['required'] ?? []) as readonly string[]
  const names = use === 'request' && required.length > 0 ? required : Object.keys(properties)
  return Object.fromEntries(names.filter((name) => name in properties).map((name) => [name, below(properties[name])]))
}
