/** A JSON value with names, read only. */
export type Json = Readonly<Record<string, unknown>>

type KeywordKind = 'schema' | 'schemas' | 'namedSchemas'

/** Keywords under which further schemas stand. Everything else (`examples`, `default`, `enum` …) holds plain values. */
const keywords: Readonly<Record<string, KeywordKind>> = {
  items: 'schema',
  additionalProperties: 'schema',
  unevaluatedProperties: 'schema',
  propertyNames: 'schema',
  contains: 'schema',
  not: 'schema',
  anyOf: 'schemas',
  allOf: 'schemas',
  oneOf: 'schemas',
  prefixItems: 'schemas',
  properties: 'namedSchemas',
  patternProperties: 'namedSchemas',
  dependentSchemas: 'namedSchemas',
}

/** Copies a schema with each of its direct subschemas replaced. A property may be called `title` or `examples`. */
export function mapSchemas(node: Json, replace: (schema: Json) => unknown): Json {
  const copy: Record<string, unknown> = {}
  for (const [keyword, value] of Object.entries(node)) {
    copy[keyword] = mapKeyword(keywords[keyword], value, replace)
  }
  return copy
}

function mapKeyword(kind: KeywordKind | undefined, value: unknown, replace: (schema: Json) => unknown): unknown {
  if (kind === undefined || typeof value !== 'object' || value === null) return value
  if (kind === 'schema') return replace(value as Json)
  if (kind === 'schemas') return (value as readonly Json[]).map(replace)
  return Object.fromEntries(
    Object.entries(value as Readonly<Record<string, Json>>).map(([name, s]) => [name, replace(s)]),
  )
}

/** Every title in a value, at any depth. */
export function titlesOf(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value !== 'object' || value === null) return found
  for (const [name, inner] of Object.entries(value)) {
    if (name === 'title' && typeof inner === 'string') found.add(inner)
    else titlesOf(inner, found)
  }
  return found
}
