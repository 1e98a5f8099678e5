import { canonical } from './canonical.ts'
import { type Json, mapSchemas } from './json-schema.ts'
import { simplify } from './simplify.ts'

/** The record schemas of one object, as the caller may see and write it. */
export interface ContractObject {
  readonly objectKey: string
  readonly label: string
  readonly jsonSchema: { readonly record: object; readonly create: object; readonly update: object }
}

export type ObjectSchemaKind = keyof ContractObject['jsonSchema']

/**
 * The schemas of a document. `use` returns a schema as it stands in the document; what has a title is lifted to
 * `components.schemas` under it and referred to, so that a shape is written once however many operations speak of it.
 */
export interface SchemaSet {
  use(schema: object): Json
  /** What has been lifted so far, by name. */
  readonly components: ReadonlyMap<string, Json>
}

const refPrefix = '#/components/schemas/'

/** `reserved`: names that schemas of the service may take, and schemas of objects therefore may not. */
export function createSchemaSet(objects: readonly ContractObject[], reserved: ReadonlySet<string>): SchemaSet {
  const components = new Map<string, Json>()
  const sources = new Map<string, Json>()
  const lifted = new WeakMap<Json, Json>()
  const named = nameObjects(objects, reserved)
  return { use: convert, components }

  function convert(schema: object): Json {
    const node = schema as Json
    const kind = node['x-object-schema']
    if (typeof kind === 'string') return convertMarked(node, kind as ObjectSchemaKind)
    if (typeof node['$ref'] === 'string') return convertReference(node, node['$ref'])
    if (typeof node['title'] === 'string') return lift(componentName(node['title']), node)
    return convertKeywords(node)
  }

  /** A place for the schemas of the caller's objects; without any object its own, general schema stands. */
  function convertMarked({ 'x-object-schema': _, ...general }: Json, kind: ObjectSchemaKind): Json {
    const anyOf = [...named]
      .filter(([, one]) => one.kind === kind)
      .map(([name, one]) => lift(name, one.schema, writeOut))
    if (anyOf.length === 0) return convert(general)
    const { description } = general
    return { ...(description !== undefined && { description }), anyOf }
  }

  /** A recursive schema brings its definitions along: `{ $defs: { Filter: … }, $ref: 'Filter' }`. */
  function convertReference({ $defs, $ref, title: _, ...rest }: Json, target: unknown): Json {
    const definitions = Object.entries(($defs ?? {}) as Readonly<Record<string, Json>>)
    for (const [name, definition] of definitions) lift(name, definition)
    return {
      ...convertKeywords(rest),
      $ref: target === '#' || String(target).includes('/') ? $ref : refPrefix + target,
    }
  }

  function lift(name: string, node: Json, write = convertKeywords): Json {
    const before = lifted.get(node)
    if (before) return before
    const reference = { $ref: refPrefix + name }
    lifted.set(node, reference)
    const { title: _, $id: __, ...source } = node
    const known = sources.get(name)
    if (known && canonical(known) !== canonical(source)) throw new Error(`Two different schemas are called ${name}.`)
    if (!known) {
      sources.set(name, source)
      components.set(name, write(source))
    }
    return reference
  }

  function convertKeywords(node: Json): Json {
    return simplify(mapSchemas(node, convert))
  }

  /** In the schemas of objects a title is the label of a field, which any number of fields may have. */
  function writeOut(node: Json): Json {
    return simplify(mapSchemas(node, writeOut))
  }
}

const kinds = ['record', 'create', 'update'] as const

/** `sales_order` gives SalesOrderRecord, SalesOrderCreate, SalesOrderUpdate; keys that collide are numbered. */
function nameObjects(objects: readonly ContractObject[], reserved: ReadonlySet<string>) {
  const named = new Map<string, { readonly kind: ObjectSchemaKind; readonly schema: Json }>()
  const isTaken = (stem: string) =>
    kinds.map((kind) => stem + pascalCase(kind)).some((n) => named.has(n) || reserved.has(n))
  const sorted = [...objects].sort((a, b) => (a.objectKey < b.objectKey ? -1 : 1))
  for (const { objectKey, label, jsonSchema } of sorted) {
    const base = pascalCase(objectKey)
    let stem = base
    for (let n = 2; isTaken(stem); n++) stem = `${base}${n}`
    for (const kind of kinds) {
      const { title: _, $id: __, ...schema } = jsonSchema[kind] as Json
      named.set(stem + pascalCase(kind), { kind, schema: { description: `${label}: ${meaning[kind]}.`, ...schema } })
    }
  }
  return named
}

const meaning: Readonly<Record<ObjectSchemaKind, string>> = {
  record: 'what a record carries',
  create: 'what a new record takes',
  update: 'what a change takes',
}

function pascalCase(key: string): string {
  return key.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, first: string) => first.toUpperCase())
}

function componentName(title: string): string {
  return title.replace(/[^A-Za-z0-9._-]+/g, '')
}
