import type { TSchema } from 'typebox'

interface Shape {
  readonly readOnly?: boolean
  readonly items?: Shape
  readonly properties?: Readonly<Record<string, Shape>>
}

/**
 * A value of a json field without what the service works out (`readOnly` in its schema): who sends lines again need not
 * send their totals, and what a body says of them counts for nothing.
 */
export function asWritten(schema: TSchema, value: unknown): unknown {
  return strip(schema as Shape, value)
}

function strip({ items, properties }: Shape, value: unknown): unknown {
  if (Array.isArray(value) && items) return value.map((item) => strip(items, item))
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !properties) return value
  const kept = Object.entries(value).filter(
    ([name]) => !(Object.hasOwn(properties, name) && properties[name]!.readOnly),
  )
  return Object.fromEntries(
    kept.map(([name, inner]) => [name, strip((Object.hasOwn(properties, name) && properties[name]) || {}, inner)]),
  )
}
