import { sees } from './envelope.ts'
import { compareValues, fold } from './values.ts'
import { fieldsOf, held, type ModelCaller, type ModelField, type ModelRecord, type World } from './world.ts'

export type Filter =
  | { readonly and: readonly Filter[] }
  | { readonly or: readonly Filter[] }
  | { readonly not: Filter }
  | { readonly related: string; readonly some: Filter }
  | { readonly field: string; readonly op: string; readonly value?: unknown }

/** Two truth values: an empty field matches nothing, and whatever is negated is the exact opposite. */
export function matches(filter: Filter, record: ModelRecord, caller: ModelCaller, world: World): boolean {
  if ('and' in filter) return filter.and.every((item) => matches(item, record, caller, world))
  if ('or' in filter) return filter.or.some((item) => matches(item, record, caller, world))
  if ('not' in filter) return !matches(filter.not, record, caller, world)
  if ('related' in filter) {
    const relative = world.records.get(String(held(record, filter.related)).toLowerCase())
    const found = relative && relative.archivedAt === null && sees(caller, relative)
    return found ? matches(filter.some, relative, caller, world) : false
  }
  const field = fieldsOf(world.objects.get(record.objectKey)!).find((candidate) => candidate.fieldKey === filter.field)
  if (!field) throw new Error(`The model has no field ${filter.field}.`)
  return compares(field, filter.op, held(record, filter.field), meaning(field, filter.value, caller, world))
}

function meaning(field: ModelField, value: unknown, caller: ModelCaller, world: World): unknown {
  if (Array.isArray(value)) return value.map((item) => meaning(field, item, caller, world))
  if (value === '$me' && field.dataType === 'user') return caller.userId
  if (value === '$now' && field.dataType === 'dateTime') return new Date(world.now).toISOString()
  if (value === '$today' && field.dataType === 'date') return new Date(world.now).toISOString().slice(0, 10)
  return value
}

function compares(field: ModelField, op: string, value: unknown, given: unknown): boolean {
  if (op === 'isNull') return value === null
  if (op === 'isNotNull') return value !== null
  if (op === 'ne') return !compares(field, 'eq', value, given)
  if (op === 'notIn') return !compares(field, 'in', value, given)
  if (value === null) return false
  const list = given as readonly unknown[]
  const order = (other: unknown) => compareValues(field.dataType, value, other)
  const text = () => [fold(value as string), fold(given as string)] as const
  switch (op) {
    case 'eq':
      return order(given) === 0
    case 'in':
      return list.some((item) => order(item) === 0)
    case 'lt':
      return order(given) < 0
    case 'lte':
      return order(given) <= 0
    case 'gt':
      return order(given) > 0
    case 'gte':
      return order(given) >= 0
    case 'between':
      return order(list[0]) >= 0 && order(list[1]) <= 0
    case 'contains':
      return text()[0].includes(text()[1])
    case 'startsWith':
      return text()[0].startsWith(text()[1])
    case 'endsWith':
      return text()[0].endsWith(text()[1])
    case 'containsAny':
      return list.some((item) => (value as unknown[]).includes(item))
    case 'containsAll':
      return list.every((item) => (value as unknown[]).includes(item))
    default:
      throw new Error(`The model has no operator ${op}.`)
  }
}
