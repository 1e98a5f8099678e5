/**
 * Finds what is too much before it is looked at closely: naming every problem of a list of a million items takes seconds,
 * and all that there is to say of it is that it has too many. Looks no deeper than the limits of the schema allow.
 */
export interface Excess {
  /** A JSON pointer. */
  readonly path: string
  readonly code: 'maxItems' | 'maxProperties' | 'unknown_field'
  readonly message: string
}

type Schema = Readonly<Record<string, unknown>>

/** Unknown fields of one object that are still named one by one. */
const unknownMax = 50

export function findExcess(of: object, value: unknown, path = ''): Excess | undefined {
  const schema = of as Schema
  for (const branch of (schema['anyOf'] as Schema[] | undefined) ?? []) {
    const excess = findExcess(branch, value, path)
    if (excess) return excess
  }
  if (Array.isArray(value) && schema['type'] === 'array') return excessItems(schema, value, path)
  if (typeof value === 'object' && value !== null && schema['type'] === 'object') {
    return excessProperties(schema, value as Record<string, unknown>, path)
  }
  return undefined
}

function excessItems(schema: Schema, value: readonly unknown[], path: string): Excess | undefined {
  const most = schema['maxItems'] as number | undefined
  if (most !== undefined && value.length > most) {
    return { path, code: 'maxItems', message: `Expected at most ${most} items.` }
  }
  const items = schema['items'] as Schema | undefined
  if (!items) return undefined
  for (const [index, item] of value.entries()) {
    const excess = findExcess(items, item, `${path}/${index}`)
    if (excess) return excess
  }
  return undefined
}

function excessProperties(schema: Schema, value: Record<string, unknown>, path: string): Excess | undefined {
  const properties = (schema['properties'] as Record<string, Schema> | undefined) ?? {}
  const names = Object.keys(value)
  const most = schema['maxProperties'] as number | undefined
  if (most !== undefined && names.length > most) {
    return { path, code: 'maxProperties', message: `Expected at most ${most} properties.` }
  }
  // The values of a record: which of its keys fit the pattern is for the schema to say.
  const [values] = Object.values((schema['patternProperties'] as Record<string, Schema> | undefined) ?? {})
  if (values) {
    for (const name of names) {
      const excess = findExcess(values, value[name], `${path}/${escaped(name)}`)
      if (excess) return excess
    }
    return undefined
  }
  if (schema['additionalProperties'] === false && names.length > Object.keys(properties).length + unknownMax) {
    const unknown = names.find((name) => !Object.hasOwn(properties, name))!
    return { path: `${path}/${escaped(unknown)}`, code: 'unknown_field', message: 'There is no such field.' }
  }
  for (const [name, property] of Object.entries(properties)) {
    const excess = Object.hasOwn(value, name) ? findExcess(property, value[name], `${path}/${name}`) : undefined
    if (excess) return excess
  }
  return undefined
}

/** RFC 6901. */
const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1')
