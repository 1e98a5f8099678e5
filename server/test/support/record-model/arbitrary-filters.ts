import fc from 'fast-check'
import { type ValueScope, valuesOf } from './arbitrary-values.ts'
import type { Filter } from './filter.ts'
import { fieldsOf, held, type ModelField, type ModelObject, type ModelRecord, type World } from './world.ts'

export interface FilterScope extends Omit<ValueScope, 'relatives' | 'textMax'> {
  readonly world: World
  /** Does the caller act for a user, so that $me has a meaning? */
  readonly hasUser: boolean
  /** What the schema says that a field takes. */
  operatorsOf(object: ModelObject, field: ModelField): readonly string[]
}

const leavesMax = 50
const textual = ['text', 'longText', 'email', 'phone', 'url']

/** Filter trees of up to five levels over one object; `related` once on the way down. */
export function filtersOver(object: ModelObject, scope: FilterScope): fc.Arbitrary<Filter> {
  const leaves = new Map([...scope.world.objects.values()].map((each) => [each.objectKey, leavesOver(each, scope)]))
  const tree = (of: ModelObject, depth: number, hops: number): fc.Arbitrary<Filter> => {
    const leaf = leaves.get(of.objectKey)!
    if (depth === 5) return leaf
    const below = fc.constant(undefined).chain(() => tree(of, depth + 1, hops))
    const several = fc.array(below, { minLength: 1, maxLength: 3 })
    const references = hops > 0 ? [] : of.fields.filter((field) => field.references !== undefined)
    return fc.oneof(
      { weight: 4, arbitrary: leaf },
      { weight: 2, arbitrary: several.map((and) => ({ and })) },
      { weight: 2, arbitrary: several.map((or) => ({ or })) },
      { weight: 1, arbitrary: below.map((not) => ({ not })) },
      ...references.map((field) => ({
        weight: 1,
        arbitrary: fc
          .constant(undefined)
          .chain(() => tree(scope.world.objects.get(field.references!)!, depth + 1, 1))
          .map((some) => ({ related: field.fieldKey, some })),
      })),
    )
  }
  return tree(object, 1, 0).filter((filter) => countLeaves(filter) <= leavesMax)
}

function countLeaves(filter: Filter): number {
  if ('and' in filter) return filter.and.reduce((sum, item) => sum + countLeaves(item), 0)
  if ('or' in filter) return filter.or.reduce((sum, item) => sum + countLeaves(item), 0)
  if ('not' in filter) return countLeaves(filter.not)
  return 'related' in filter ? countLeaves(filter.some) : 1
}

function leavesOver(object: ModelObject, scope: FilterScope): fc.Arbitrary<Filter> {
  const records = [...scope.world.records.values()].filter((record) => record.objectKey === object.objectKey)
  // The operator first: those that few types take would hardly ever be asked for.
  const fields = fieldsOf(object)
  const operators = new Set(fields.flatMap((field) => scope.operatorsOf(object, field)))
  const perOperator = [...operators].map((op) => {
    const takers = fields.filter((field) => scope.operatorsOf(object, field).includes(op))
    return fc.oneof(
      ...takers.map((field) =>
        operand(field, op, records, scope).map((value) => ({
          field: field.fieldKey,
          op,
          ...(value !== undefined && { value }),
        })),
      ),
    )
  })
  return fc.oneof(...perOperator)
}

function operand(
  field: ModelField,
  op: string,
  records: readonly ModelRecord[],
  scope: FilterScope,
): fc.Arbitrary<unknown> {
  const value = literals(field, records, scope)
  switch (op) {
    case 'isNull':
    case 'isNotNull':
      return fc.constant(undefined)
    case 'in':
    case 'notIn':
      return fc.oneof(
        { weight: 9, arbitrary: fc.array(value, { maxLength: 5 }) },
        fc.array(value, { minLength: 200, maxLength: 200 }),
      )
    case 'between':
      return fc.tuple(value, value)
    case 'containsAny':
    case 'containsAll':
      return fc.subarray([...field.options!])
    case 'contains':
    case 'startsWith':
    case 'endsWith':
      return value.chain((whole) => partOf(whole as string, op)).filter((part) => part !== '' && part.length <= 1000)
    default:
      return value
  }
}

/** Values to compare with: mostly values that records have, in another spelling where the type has several. */
function literals(field: ModelField, records: readonly ModelRecord[], scope: FilterScope): fc.Arbitrary<unknown> {
  const existing = [...new Set(records.map((record) => held(record, field.fieldKey)))].filter((value) => value !== null)
  const relatives = [...scope.world.records.keys(), '0199a1b2-0000-7000-8000-0000000000aa']
  const fresh =
    field.options === undefined || field.dataType === 'select'
      ? valuesOf(field, { ...scope, relatives, textMax: 1000 })
      : fc.constantFrom(...field.options)
  const spelt = existing.length === 0 ? fresh : fc.constantFrom(...existing).chain((value) => spellings(field, value))
  const special = [
    ...(field.dataType === 'user' && scope.hasUser ? ['$me'] : []),
    ...(field.dataType === 'dateTime' ? ['$now'] : []),
    ...(field.dataType === 'date' ? ['$today'] : []),
  ]
  return fc.oneof(
    { weight: 6, arbitrary: spelt },
    { weight: 2, arbitrary: fresh },
    ...special.map((value) => ({ weight: 2, arbitrary: fc.constant(value) })),
  )
}

function spellings(field: ModelField, value: unknown): fc.Arbitrary<unknown> {
  if (typeof value !== 'string') return fc.constant(value)
  if (textual.includes(field.dataType)) {
    const spelt = [value, value.toUpperCase(), value.toLowerCase(), value.normalize('NFD')]
    return fc.constantFrom(...spelt.filter((text) => text.length <= 100_000))
  }
  if (field.dataType === 'user' || field.dataType === 'reference') {
    return fc.constantFrom(value, value.toUpperCase())
  }
  return fc.constant(value)
}

/** A beginning, an end or a middle, cut between code points. */
function partOf(whole: string, op: string): fc.Arbitrary<string> {
  const points = [...whole]
  return fc.tuple(fc.nat(points.length), fc.nat(points.length)).map(([a, b]) => {
    if (op === 'startsWith') return points.slice(0, a).join('')
    if (op === 'endsWith') return points.slice(a).join('')
    return points.slice(Math.min(a, b), Math.max(a, b)).join('')
  })
}
