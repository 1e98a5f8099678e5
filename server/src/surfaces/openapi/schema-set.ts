import type { ObjectAction } from '../../kernel/operation.ts'
import { canonical } from './canonical.ts'
import { filterSchemas } from './filter-schemas.ts'
import { type Json, mapSchemas } from './json-schema.ts'
import { allows, type ContractObject, exemplary, markActions, markedExample } from './objects.ts'
import { simplify } from './simplify.ts'

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

  /** `object`: whose record the schema is a part of, where it is of one object only. */
  function convert(schema: object, object?: ContractObject): Json {
    const node = schema as Json
    // Read by the handler, and only documented here: fields of native modules.
    if (typeof node['x-schema'] === 'object') return convert(node['x-schema'] as Json, object)
    const kind = node['x-object-schema']
    if (typeof kind === 'string') return convertFields(node, kind, object)
    if (Array.isArray(node['x-filter-operators'])) return convertFilter(node, node['x-filter-operators'])
    if (typeof node['$ref'] === 'string') return convertReference(node, node['$ref'])
    if (typeof node['title'] !== 'string') return convertKeywords(node, object)
    const name = componentName(node['title'])
    return node['x-object-record'] === true && named.length > 0 ? liftRecords(name, node) : lift(name, node)
  }

  /** A place for the fields of the caller's objects; without any object its own, general schema stands. */
  function convertFields({ 'x-object-schema': _, ...general }: Json, mark: string, object?: ContractObject): Json {
    const place = fieldsPlaces[mark]!
    const references = named
      .filter((one) => (object ? one.object === object : allows(one.object, place.actions)))
      .map((one) => lift(one.stem + place.suffix, one.schemas[place.suffix], writeOut))
    const { description } = general
    if (references.length === 0) return convert(general)
    const described = description !== undefined && { description }
    return references.length === 1 ? { ...described, ...references[0] } : { ...described, anyOf: references }
  }

  /** The record of an object is told by its `objectKey`, so that a client that read it knows the types of its fields. */
  function liftRecords(name: string, node: Json): Json {
    const properties = node['properties'] as Readonly<Record<string, Json>>
    const records = named.map(({ object, stem }) => {
      const { objectKey } = object
      const key = { type: 'string', const: objectKey, description: 'The key of the object.' }
      const record = {
        ...node,
        description: `${object.label}: a record.`,
        properties: { ...properties, objectKey: key },
      }
      return [objectKey, lift(`${stem}Record`, record, (source) => convertKeywords(source, object))] as const
    })
    const mapping = Object.fromEntries(records.map(([objectKey, reference]) => [objectKey, reference['$ref']]))
    return lift(
      name,
      {
        description: node['description'],
        oneOf: records.map(([, reference]) => reference),
        discriminator: { propertyName: 'objectKey', mapping },
      },
      (source) => source,
    )
  }

  function convertFilter({ description }: Json, operators: readonly unknown[]): Json {
    for (const [name, schema] of Object.entries(filterSchemas(operators))) {
      lift(name, name === 'Filter' ? { ...schema, examples: [exampleOf('filter')] } : schema, (source) => source)
    }
    return { description, $ref: `${refPrefix}Filter` }
  }

  function exampleOf(mark: string, object = exemplary(objects, markActions[mark])): unknown {
    return markedExample(mark, object)
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

  function lift(name: string, node: Json, write: (source: Json) => Json = convertKeywords): Json {
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

  function convertKeywords(
    { 'x-object-example': mark, 'x-object-record': _, ...node }: Json,
    object?: ContractObject,
  ): Json {
    const converted = simplify(mapSchemas(node, (inner) => convert(inner, object)))
    return typeof mark === 'string' ? { ...converted, examples: [exampleOf(mark, object)] } : converted
  }

  /** In the schemas of objects a title is the label of a field, which any number of fields may have. */
  function writeOut(node: Json): Json {
    return simplify(mapSchemas(node, writeOut))
  }
}

/** Where fields of objects stand: which schema of each, and of which objects. */
const fieldsPlaces: Readonly<Record<string, { readonly suffix: Suffix; readonly actions?: readonly ObjectAction[] }>> =
  {
    record: { suffix: 'Fields' },
    create: { suffix: 'Create', actions: ['create'] },
    update: { suffix: 'Update', actions: ['update'] },
    upsert: { suffix: 'Update', actions: ['create', 'update'] },
  }

type Suffix = 'Fields' | 'Create' | 'Update'

interface NamedObject {
  readonly object: ContractObject
  readonly stem: string
  readonly schemas: Readonly<Record<Suffix, Json>>
}

/** `sales_order` gives SalesOrderRecord, …Fields, …Create and …Update; keys that collide are numbered. */
function nameObjects(objects: readonly ContractObject[], reserved: ReadonlySet<string>): readonly NamedObject[] {
  const stems = new Set<string>()
  const isTaken = (stem: string) =>
    stems.has(stem) || ['Record', 'Fields', 'Create', 'Update'].some((suffix) => reserved.has(stem + suffix))
  const sorted = [...objects].sort((a, b) => (a.objectKey < b.objectKey ? -1 : 1))
  return sorted.map((object) => {
    const base = pascalCase(object.objectKey)
    let stem = base
    for (let n = 2; isTaken(stem); n++) stem = `${base}${n}`
    stems.add(stem)
    const schemaOf = (source: object, meaning: string): Json => {
      const { title: _, $id: __, ...schema } = source as Json
      return { description: `${object.label}: ${meaning}.`, ...schema }
    }
    const { record, create, update } = object.jsonSchema
    return {
      object,
      stem,
      schemas: {
        Fields: schemaOf(record, 'the fields of a record'),
        Create: schemaOf(create, 'the fields that a new record takes'),
        Update: schemaOf(update, 'the fields that a change takes'),
      },
    }
  })
}

function pascalCase(key: string): string {
  return key.replace(/(?:^|[^A-Za-z0-9]+)([A-Za-z0-9])/g, (_, first: string) => first.toUpperCase())
}

function componentName(title: string): string {
  return title.replace(/[^A-Za-z0-9._-]+/g, '')
}
