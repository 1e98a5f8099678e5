import type { ObjectAction } from '../../kernel/operation.ts'
import type { Json } from './json-schema.ts'

/** One object as the caller may see and write it. */
export interface ContractObject {
  readonly objectKey: string
  readonly label: string
  readonly create: boolean
  readonly update: boolean
  readonly archive: boolean
  /** JSON Schemas of `fields`. */
  readonly jsonSchema: { readonly record: object; readonly create: object; readonly update: object }
  /** The field that names a record; undefined where the caller may not read it. */
  readonly nameField: string | undefined
  /** Reference fields that `expand` takes. */
  readonly expandable: readonly string[]
  readonly uniqueFields: readonly string[]
}

/** May the caller do one of these with the object? Reading goes without saying: objects that it may not read are absent. */
export function allows(object: ContractObject, actions: readonly ObjectAction[] | undefined): boolean {
  return actions === undefined || actions.some((action) => object[action])
}

/**
 * The object that examples speak of: one whose new record needs no id of something else, and that shows most, a select
 * and a reference. Of equals the first by key, so that one caller always sees the same examples.
 */
export function exemplary(
  objects: readonly ContractObject[],
  actions?: readonly ObjectAction[],
): ContractObject | undefined {
  const ranked = objects
    .filter((object) => allows(object, actions))
    .map((object) => ({ object, rank: rankOf(object) }))
    .sort((a, b) => b.rank - a.rank || (a.object.objectKey < b.object.objectKey ? -1 : 1))
  return ranked[0]?.object
}

function rankOf(object: ContractObject): number {
  const hasSelect = Object.values(propertiesOf(object, 'record')).some(isSelect)
  const create = propertiesOf(object, 'create')
  const free = freeKeys(object, create)
  const isFree = requiredOf(object).every((key) => free.includes(key))
  const canWrite = object.create || object.update
  return (isFree ? 8 : 0) + (canWrite ? 4 : 0) + (hasSelect ? 2 : 0) + (object.expandable.length > 0 ? 1 : 0)
}

type FieldsKind = keyof ContractObject['jsonSchema']

function propertiesOf(object: ContractObject, kind: FieldsKind): Readonly<Record<string, Json>> {
  return ((object.jsonSchema[kind] as Json)['properties'] ?? {}) as Readonly<Record<string, Json>>
}

function requiredOf(object: ContractObject): readonly string[] {
  return ((object.jsonSchema.create as Json)['required'] ?? []) as readonly string[]
}

function isSelect(property: Json): boolean {
  return optionsOf(property).length > 0
}

/** Ids name users and records, which an example cannot know. */
function isId(property: Json): boolean {
  return property['format'] === 'uuid'
}

function optionsOf(property: Json): unknown[] {
  return ((property['enum'] ?? []) as unknown[]).filter((value) => value !== null)
}

function exampleValue(property: Json): unknown {
  return (property['examples'] as readonly unknown[] | undefined)?.[0] ?? optionsOf(property)[0]
}

function valuesOf(properties: Readonly<Record<string, Json>>, keys: readonly string[]): Json {
  const shown = keys.map((key) => [key, exampleValue(properties[key]!)] as const)
  return Object.fromEntries(shown.filter(([, value]) => value !== undefined))
}

/** Examples of `fields`: everything as it is read; what is required and a little more of a new record; one change. */
const fieldsExamples = {
  record(object: ContractObject): Json {
    const properties = propertiesOf(object, 'record')
    return valuesOf(properties, Object.keys(properties))
  },
  create(object: ContractObject): Json {
    const properties = propertiesOf(object, 'create')
    const required = requiredOf(object)
    const free = freeKeys(object, properties)
    const more = [free.find((key) => key === object.nameField), free.find((key) => isSelect(properties[key]!))]
    const keys = new Set([...required, ...more.filter((key) => key !== undefined)])
    return valuesOf(properties, keys.size > 0 ? [...keys] : free.slice(0, 1))
  },
  update(object: ContractObject): Json {
    const properties = propertiesOf(object, 'update')
    const free = freeKeys(object, properties)
    const select = free.find((key) => isSelect(properties[key]!))
    return select === undefined
      ? valuesOf(properties, free.slice(0, 1))
      : { [select]: optionsOf(properties[select]!).at(-1) }
  },
  upsert(object: ContractObject): Json {
    return object.create ? fieldsExamples.create(object) : fieldsExamples.update(object)
  },
}

/** Fields that any record may take a value of, without an id and without meeting the value of another. */
function freeKeys({ uniqueFields }: ContractObject, properties: Readonly<Record<string, Json>>): string[] {
  return Object.keys(properties).filter(
    (key) => !isId(properties[key]!) && !uniqueFields.includes(key) && exampleValue(properties[key]!) !== undefined,
  )
}

export function fieldsExample(kind: string, object: ContractObject | undefined): Json {
  return object ? fieldsExamples[kind as keyof typeof fieldsExamples](object) : {}
}

const recent = { field: 'createdAt', op: 'gte', value: '2026-01-01T00:00:00.000Z' }

function filterExample(object: ContractObject | undefined): Json {
  const properties = object ? propertiesOf(object, 'record') : {}
  const select = Object.keys(properties).find((key) => isSelect(properties[key]!))
  if (select === undefined) return recent
  return { and: [{ field: select, op: 'eq', value: optionsOf(properties[select]!)[0] }, recent] }
}

/** A record is called by its naming field, whatever the type of that. */
function displayNameExample(object: ContractObject | undefined): string | null {
  const field = object?.nameField === undefined ? undefined : propertiesOf(object, 'record')[object.nameField]
  const value = field && exampleValue(field)
  return value === undefined || value === null ? null : String(value)
}

function batchItem(object: ContractObject): Json {
  if (object.create) return { operation: 'create', fields: fieldsExamples.create(object) }
  const recordId = '0199a1b2-0000-7000-8000-0000000000aa'
  if (object.update) return { operation: 'update', recordId, fields: fieldsExamples.update(object) }
  return { operation: 'archive', recordId }
}

/** What the mark `x-object-example` of a schema stands for: an example that speaks of an object of the caller. */
const marks: Readonly<Record<string, (object: ContractObject | undefined) => unknown>> = {
  create: (object) => ({ fields: fieldsExample('create', object), externalKey: 'crm-1042' }),
  update: (object) => ({ fields: fieldsExample('update', object), expectedRevision: 1 }),
  upsert: (object) => ({ fields: fieldsExample('upsert', object) }),
  batch: (object) => ({ items: [object ? batchItem(object) : { operation: 'create', fields: {} }] }),
  filter: filterExample,
  search: (object) => ({
    filter: filterExample(object),
    sort: 'created_desc',
    pageSize: 50,
    ...(object && object.expandable.length > 0 && { expand: object.expandable.slice(0, 1) }),
    includeTotal: true,
  }),
  objectKeys: (object) => (object ? [object.objectKey] : ['contacts']),
  fieldKeys: (object) => (object ? Object.keys(propertiesOf(object, 'record')).slice(0, 2) : []),
  expand: (object) => object?.expandable.slice(0, 1) ?? [],
  expanded: (object) => Object.fromEntries((object?.expandable.slice(0, 1) ?? []).map((key) => [key, null])),
  displayName: displayNameExample,
}

/** Rights that an object needs to stand in the example of a mark. */
export const markActions: Readonly<Record<string, readonly ObjectAction[]>> = {
  create: ['create'],
  update: ['update'],
  upsert: ['create', 'update'],
  batch: ['create', 'update', 'archive'],
}

export function markedExample(mark: string, object: ContractObject | undefined): unknown {
  const make = marks[mark]
  if (!make) throw new Error(`There is no example called ${mark}.`)
  return make(object)
}
