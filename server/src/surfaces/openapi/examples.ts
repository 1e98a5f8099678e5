import type { Json } from './json-schema.ts'
import { type ContractObject, fieldsExample, markedExample } from './objects.ts'

export interface ExampleOptions {
  /** A request names what is required (or everything, where nothing is); a response shows everything. */
  readonly use: 'request' | 'response'
  /** What examples that depend on an object speak of. */
  readonly object: ContractObject | undefined
}

type Definitions = Readonly<Record<string, Json>>

/**
 * An example that the schema accepts, made from the `examples` on its way down. It reads the schema as it was declared,
 * with the marks that stand for the objects of the caller. A recursive schema ends where it meets itself, with undefined.
 */
export function exampleOf(schema: object, options: ExampleOptions): unknown {
  return new ExampleWriter(options).write(schema as Json, {}, [])
}

class ExampleWriter {
  private readonly options: ExampleOptions

  constructor(options: ExampleOptions) {
    this.options = options
  }

  write(schema: Json, around: Definitions, trail: readonly string[]): unknown {
    const mark = schema['x-object-example']
    if (typeof mark === 'string') return markedExample(mark, this.options.object)
    const fields = schema['x-object-schema']
    if (typeof fields === 'string') return fieldsExample(fields, this.options.object)
    if (Array.isArray(schema['examples']) && schema['examples'].length > 0) return schema['examples'][0]
    for (const keyword of ['default', 'const'] as const) if (keyword in schema) return schema[keyword]
    if (Array.isArray(schema['enum'])) return schema['enum'][0]

    const definitions = { ...around, ...(schema['$defs'] as Definitions | undefined) }
    if (typeof schema['$ref'] === 'string') return this.referred(schema['$ref'], definitions, trail)
    return this.composed(schema, (inner) => this.write(inner as Json, definitions, trail))
  }

  private referred(name: string, definitions: Definitions, trail: readonly string[]): unknown {
    const target = definitions[name]
    return target && !trail.includes(name) ? this.write(target, definitions, [...trail, name]) : undefined
  }

  private composed(schema: Json, below: (inner: unknown) => unknown): unknown {
    for (const keyword of ['anyOf', 'oneOf'] as const) {
      const branches = schema[keyword] as readonly Json[] | undefined
      if (branches) return below(branches.find((branch) => branch['type'] !== 'null') ?? branches[0])
    }
    if (Array.isArray(schema['allOf'])) return Object.assign({}, ...schema['allOf'].map(below)) as unknown
    switch (Array.isArray(schema['type']) ? schema['type'][0] : schema['type']) {
      case 'object':
        return this.object(schema, below)
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

  private object(schema: Json, below: (inner: unknown) => unknown): Json {
    const { use, object } = this.options
    const properties = (schema['properties'] ?? {}) as Json
    const required = (schema['required'] ?? []) as readonly string[]
    const names = use === 'request' && required.length > 0 ? required : Object.keys(properties)
    const valueFor = (name: string) =>
      name === 'objectKey' && object !== undefined ? object.objectKey : below(properties[name])
    return Object.fromEntries(names.filter((name) => name in properties).map((name) => [name, valueFor(name)]))
  }
}
