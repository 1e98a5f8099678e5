import { byCodePoint, compareValues } from './values.ts'
import { fieldsOf, held, type ModelField, type ModelObject, type ModelRecord } from './world.ts'

const named: Readonly<Record<string, string>> = { created: 'createdAt', updated: 'updatedAt' }

const unsortable = ['longText', 'multiSelect', 'json', 'user', 'reference']

export function sorted(
  records: readonly ModelRecord[],
  sort: readonly string[],
  object: ModelObject,
  nameField: string,
): ModelRecord[] {
  return records.toSorted(compareBy(sort, object, nameField))
}

/**
 * The order of up to three sort values. Empty values are the largest; ties are broken by the record id, in the direction of
 * the first key.
 */
export function compareBy(sort: readonly string[], object: ModelObject, nameField: string) {
  const keys = sort.map((value) => keyOf(value, object, nameField))
  const tie = keys[0]!.sign
  return (a: ModelRecord, b: ModelRecord): number => {
    for (const { field, sign } of keys) {
      const order = compareNullable(field, held(a, field.fieldKey), held(b, field.fieldKey)) * sign
      if (order !== 0) return order
    }
    return byCodePoint(a.recordId, b.recordId) * tie
  }
}

function keyOf(value: string, object: ModelObject, nameField: string) {
  const [, name = '', direction] = /^(.*)_(asc|desc)$/.exec(value) ?? []
  const own = object.fields.some((field) => field.fieldKey === name && !unsortable.includes(field.dataType))
  const fieldKey = own ? name : name === 'name' ? nameField : (named[name] ?? name)
  const field = fieldsOf(object).find((candidate) => candidate.fieldKey === fieldKey)
  if (!field) throw new Error(`The model cannot sort by ${value}.`)
  return { field, sign: direction === 'desc' ? -1 : 1 }
}

function compareNullable(field: ModelField, a: unknown, b: unknown): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1
  return compareValues(field.dataType, a, b)
}
