import sql, { join, raw, type Sql } from 'sql-template-tag'
import { fail } from '../../kernel/errors.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import { dataTypeOf } from '../catalogue/data-types.ts'
import { type Target, targetOf } from './filter.ts'

/**
 * Sorting and keyset pages. A sort is one to three keys and, always, the record id, so the order is total. Empty values
 * are the largest, as in PostgreSQL: last when ascending, first when descending; one index serves both directions.
 */
export interface SortColumn {
  /** The key of the field: a decimal takes two columns. */
  readonly field: string
  readonly column: string
  readonly cast: string
  readonly descending: boolean
  readonly nullable: boolean
}

export interface Sort {
  /** As it was asked for, normalised: a cursor is bound to it. */
  readonly text: string
  readonly columns: readonly SortColumn[]
}

const keysMax = 3
const shape = /^([A-Za-z][A-Za-z0-9_]*)_(asc|desc)$/

const named = new Map([
  ['created', 'createdAt'],
  ['updated', 'updatedAt'],
])

/** Reads `created_desc` or a list of up to three such values. */
export function parseSort(raw: unknown, access: ObjectAccess): Sort {
  const values = raw === undefined ? ['created_desc'] : Array.isArray(raw) ? raw : [raw]
  if (values.length === 0 || values.length > keysMax) {
    throw fail('sort_invalid', { field: 'sort', message: `Expected 1 to ${keysMax} sort values.` })
  }
  const columns: SortColumn[] = []
  values.forEach((value, index) => {
    const position = Array.isArray(raw) ? `sort[${index}]` : 'sort'
    const [, name = '', direction] = (typeof value === 'string' ? shape.exec(value) : null) ?? []
    const target = direction === undefined ? undefined : sortTarget(name, access)
    if (!target) {
      throw fail('sort_invalid', {
        field: position,
        message: 'Expected created, updated, name or the key of a sortable field, with _asc or _desc.',
      })
    }
    columns.push(...sortColumns(target, direction === 'desc'))
  })
  const descending = columns[0]!.descending
  columns.push({ field: 'recordId', column: 'record_id', cast: 'uuid', descending, nullable: false })
  return { text: values.join(','), columns }
}

/** `name` is what names the record, unless a field of that key can be sorted by. */
function sortTarget(name: string, access: ObjectAccess): Target | undefined {
  const target = targetOf(named.get(name) ?? name, access)
  if (target && dataTypeOf(target.field).sortable) return target
  return name === 'name' ? targetOf(access.object.nameField.fieldKey, access) : undefined
}

function sortColumns(target: Target, descending: boolean): SortColumn[] {
  const nullable =
    target.compared !== 'created_at' && target.compared !== 'updated_at' && target.compared !== 'revision'
  const type = dataTypeOf(target.field)
  const plain = {
    field: target.field.fieldKey,
    column: target.compared,
    cast: castOf(type.column),
    descending,
    nullable,
  }
  // Decimals that share a float are told apart by their exact value.
  if (type.shadow !== 'float') return [plain]
  return [
    { ...plain, cast: 'double precision' },
    { ...plain, column: target.exact },
  ]
}

function castOf(columnType: string): string {
  return columnType.replace(/ COLLATE .*/, '').replace('(3)', '')
}

export function orderBy(sort: Sort, alias: string): Sql {
  return raw(sort.columns.map((key) => `${alias}."${key.column}" ${key.descending ? 'DESC' : 'ASC'}`).join(', '))
}

/** Select items `s0`, `s1`, … for those sort values that the row does not hold anyway. */
export function sortValues(sort: Sort, alias: string, selected: readonly string[]): Sql {
  const missing = sort.columns.map((key, index) =>
    selected.includes(key.column) ? '' : `, ${alias}."${key.column}"::text AS s${index}`,
  )
  return raw(missing.join(''))
}

/** The sort values of a row, which a cursor carries. Every value leaves `types.ts` in a form that PostgreSQL reads back. */
export function positionOf(sort: Sort, row: Readonly<Record<string, unknown>>): (string | null)[] {
  return sort.columns.map((key, index) => {
    const value = row[key.column in row ? key.column : `s${index}`]
    return value === null ? null : String(value)
  })
}

/**
 * Rows that come after the given sort values: one condition, or two whose rows follow one another. Empty values have a
 * region of their own, before or behind all others, because "greater, or empty" is no range of an index; within a region
 * the cost of a page does not grow with depth.
 */
export function regionsAfter(sort: Sort, alias: string, values: readonly (string | null)[]): Sql[] {
  const [first] = sort.columns as [SortColumn]
  if (!first.nullable) return [following(sort.columns, alias, values)]
  const column = raw(`${alias}."${first.column}"`)
  const rest = sort.columns.findIndex((key) => key.field !== first.field)
  if (values[0] === null) {
    const empty = sql`${column} IS NULL AND ${following(sort.columns.slice(rest), alias, values.slice(rest))}`
    return first.descending ? [empty, sql`${column} IS NOT NULL`] : [empty]
  }
  const filled = sort.columns.map((key) => (key.field === first.field ? { ...key, nullable: false } : key))
  const beyond = following(filled, alias, values)
  return first.descending ? [beyond] : [beyond, sql`${column} IS NULL`]
}

function following(keys: readonly SortColumn[], alias: string, values: readonly (string | null)[]): Sql {
  const [first, second] = keys as [SortColumn, SortColumn?]
  const uniform = keys.every((key) => !key.nullable && key.descending === first.descending)
  if (!uniform) {
    const conditions = chain(keys, alias, values, 0)
    const endless = values[0] === null || (first.nullable && !first.descending)
    return endless ? conditions : sql`(${bounded(first, alias, values[0]!)} AND ${conditions})`
  }
  const columns = raw(keys.map((key) => `${alias}."${key.column}"`).join(', '))
  const bounds = join(keys.map((key, index) => sql`${values[index]}::${raw(key.cast)}`))
  const beyond = sql`(${columns}) ${raw(first.descending ? '<' : '>')} (${bounds})`
  // The exact value of a decimal is not leakproof, so with it in the row only its float drives the index.
  return second?.field === first.field ? sql`(${bounded(first, alias, values[0]!)} AND ${beyond})` : beyond
}

/** Implied by the conditions beside it, and said again because only this bound can drive an index. */
function bounded(key: SortColumn, alias: string, value: string | null): Sql {
  return sql`${raw(`${alias}."${key.column}"`)} ${raw(key.descending ? '<=' : '>=')} ${value}::${raw(key.cast)}`
}

function chain(keys: readonly SortColumn[], alias: string, values: readonly (string | null)[], index: number): Sql {
  const key = keys[index]!
  const column = raw(`${alias}."${key.column}"`)
  const value = values[index]
  const bound = sql`${value}::${raw(key.cast)}`
  const beyond =
    value === null
      ? key.descending
        ? sql`${column} IS NOT NULL`
        : sql`false`
      : key.descending
        ? sql`${column} < ${bound}`
        : key.nullable
          ? sql`(${column} > ${bound} OR ${column} IS NULL)`
          : sql`${column} > ${bound}`
  if (index === keys.length - 1) return beyond
  const same = value === null ? sql`${column} IS NULL` : sql`${column} = ${bound}`
  return sql`(${beyond} OR (${same} AND ${chain(keys, alias, values, index + 1)}))`
}
