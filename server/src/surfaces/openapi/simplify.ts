import type { Json } from './json-schema.ts'

/**
 * Writes a schema the way that readers and code generators know best, without changing what it accepts:
 * a union of constants as an enum, the type beside an enum of strings, "or null" as a second type, a map as
 * `additionalProperties`.
 */
export function simplify(schema: Json): Json {
  return writeMap(writeEnum(writeUnion(schema)))
}

function writeUnion(schema: Json): Json {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf)) return schema
  const branches = anyOf as readonly Json[]
  const others = branches.filter((branch) => branch['type'] !== 'null')
  const nullable = others.length < branches.length
  if (others.length > 0 && others.every((one) => 'const' in one && one['type'] === others[0]!['type'])) {
    return orNull({ type: others[0]!['type'], enum: others.map((one) => one['const']), ...rest }, nullable)
  }
  const only = others.length === 1 ? others[0]! : undefined
  if (nullable && only && typeof only['type'] === 'string') return orNull({ ...only, ...rest }, true)
  return schema
}

function writeEnum(schema: Json): Json {
  const values = schema['enum']
  if (!Array.isArray(values) || 'type' in schema || !values.every((value) => typeof value === 'string')) return schema
  return { type: 'string', ...schema }
}

function orNull(schema: Json, nullable: boolean): Json {
  if (!nullable) return schema
  const { enum: values, ...rest } = schema
  return { ...rest, type: [schema['type'], 'null'], ...(Array.isArray(values) && { enum: [...values, null] }) }
}

function writeMap(schema: Json): Json {
  const { patternProperties, ...rest } = schema
  const patterns = Object.entries((patternProperties ?? {}) as Json)
  const [only] = patterns
  if (patterns.length !== 1 || only![0] !== '^.*$' || 'additionalProperties' in rest) return schema
  return { ...rest, additionalProperties: only![1] }
}
