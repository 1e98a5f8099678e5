import sql, { join, raw, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import { visible } from '../access/envelope.ts'
import { dataTypeOf } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'
import { foldedExpression } from '../modelling/physical-table.ts'
import { columnsOfHop } from '../relationships/definitions.ts'
import { escapeLike } from '../search-text.ts'
import type { Condition, Target } from './filter.ts'

/**
 * Conditions as SQL. The language has two truth values: a comparison with an empty field is false, `ne` and `notIn` are the
 * exact opposites of `eq` and `in`, `not` is the exact opposite of what it holds. SQL has three; `IS NOT TRUE` and
 * `IS DISTINCT FROM` close the gap at the few places where it shows.
 */
export function conditionSql(condition: Condition, alias: string, caller: Caller): Sql {
  switch (condition.kind) {
    case 'and':
    case 'or':
      return sql`(${join(
        condition.conditions.map((item) => conditionSql(item, alias, caller)),
        condition.kind === 'and' ? ' AND ' : ' OR ',
      )})`
    case 'not':
      return sql`(${conditionSql(condition.condition, alias, caller)} IS NOT TRUE)`
    case 'related':
      // Only what the caller sees can be found: an invisible relative is no relative.
      return sql`EXISTS (SELECT FROM ${raw(condition.access.object.table)} r
        WHERE ${visible(caller, 'r')} AND r.record_id = ${column(alias, condition.field.column)} AND r.archived_at IS NULL
          AND ${conditionSql(condition.condition, 'r', caller)})`
    case 'linked': {
      // An archived record is related to nothing while it is; its links wait for it to be restored.
      const { near, far } = columnsOfHop(condition.hop)
      const { access, definition } = condition.hop
      return sql`(${column(alias, 'archived_at')} IS NULL AND EXISTS (SELECT FROM portico.record_relationship l
        JOIN ${raw(access.object.table)} r ON r.record_id = l.${raw(far)}
        WHERE l.organization_id = ${caller.organizationId} AND l.definition_id = ${definition.definitionId}
          AND l.${raw(near)} = ${column(alias, 'record_id')} AND ${visible(caller, 'r')} AND r.archived_at IS NULL
          AND ${conditionSql(condition.condition, 'r', caller)}))`
    }
    case 'compare':
      return comparison(condition, alias)
  }
}

function column(alias: string, name: string): Sql {
  return raw(`${alias}."${name}"`)
}

function comparison({ target, operator, values }: Extract<Condition, { kind: 'compare' }>, alias: string): Sql {
  const { field } = target
  const left = compared(target, alias)
  const [first, second] = values
  switch (operator) {
    case 'isNull':
      return sql`${column(alias, target.exact)} IS NULL`
    case 'isNotNull':
      return sql`${column(alias, target.exact)} IS NOT NULL`
    case 'contains':
      return sql`${left} LIKE ${folded(`%${escapeLike(first as string)}%`)}`
    case 'startsWith':
      return sql`${left} LIKE ${folded(`${escapeLike(first as string)}%`)}`
    case 'endsWith':
      return sql`${left} LIKE ${folded(`%${escapeLike(first as string)}`)}`
    case 'containsAny':
      return sql`${left} && ${values as string[]}::text[]`
    case 'containsAll':
      return sql`${left} @> ${values as string[]}::text[]`
    case 'ne':
      return sql`(${equals(target, alias, first)} IS NOT TRUE)`
    case 'eq':
      return equals(target, alias, first)
    case 'in':
      return isIn(target, alias, values)
    case 'notIn':
      return sql`(${isIn(target, alias, values)} IS NOT TRUE)`
    case 'between':
      return sql`(${ordered(target, alias, '>=', first)} AND ${ordered(target, alias, '<=', second)})`
    case 'lt':
      return ordered(target, alias, '<', first)
    case 'lte':
      return ordered(target, alias, '<=', first)
    case 'gt':
      return ordered(target, alias, '>', first)
    case 'gte':
      return ordered(target, alias, '>=', first)
    default:
      throw new Error(`${operator satisfies never} has no SQL for ${field.fieldKey}.`)
  }
}

/** Long text has no folded column beside it: it is folded while it is compared. */
function compared(target: Target, alias: string): Sql {
  if (target.field.dataType === 'longText') return raw(foldedExpression(`${alias}."${target.exact}"`))
  return column(alias, target.compared)
}

function folded(text: string): Sql {
  const [before, after] = foldedExpression('\0').split('\0') as [string, string]
  return sql`${raw(before)}${text}::text${raw(after)}`
}

function isFolded(field: Field): boolean {
  return dataTypeOf(field).shadow === 'folded' || field.dataType === 'longText'
}

function isFloatBesideExact(field: Field): boolean {
  return dataTypeOf(field).shadow === 'float'
}

/** The type that a parameter is cast to, so that PostgreSQL never guesses. */
function castOf(field: Field): Sql {
  return raw(
    dataTypeOf(field)
      .column.replace(/ COLLATE .*/, '')
      .replace('(3)', ''),
  )
}

function equals(target: Target, alias: string, value: unknown): Sql {
  if (isFolded(target.field)) return sql`${compared(target, alias)} = ${folded(value as string)}`
  const exact = sql`${column(alias, target.exact)} = ${value}::${castOf(target.field)}`
  if (!isFloatBesideExact(target.field)) return exact
  return sql`(${column(alias, target.compared)} = ${value}::double precision AND ${exact})`
}

function isIn(target: Target, alias: string, values: readonly unknown[]): Sql {
  const list = values as string[]
  if (isFolded(target.field)) {
    // One parameter, however long the list: the text of the statement stays short and the same.
    const folding = raw(foldedExpression('v'))
    return sql`${compared(target, alias)} = ANY (ARRAY(SELECT ${folding} FROM unnest(${list}::text[]) AS v))`
  }
  const exact = sql`${column(alias, target.exact)} = ANY (${list}::${castOf(target.field)}[])`
  if (!isFloatBesideExact(target.field)) return exact
  return sql`(${column(alias, target.compared)} = ANY (${list}::double precision[]) AND ${exact})`
}

function ordered(target: Target, alias: string, operator: '<' | '<=' | '>' | '>=', value: unknown): Sql {
  if (isFolded(target.field)) return sql`${compared(target, alias)} ${raw(operator)} ${folded(value as string)}`
  const exact = sql`${column(alias, target.exact)} ${raw(operator)} ${value}::${castOf(target.field)}`
  if (!isFloatBesideExact(target.field)) return exact
  // Rounding to float8 keeps the order, so the loose bound on the float admits every row that the exact one does.
  const loose = raw(operator.startsWith('<') ? '<=' : '>=')
  return sql`(${column(alias, target.compared)} ${loose} ${value}::double precision AND ${exact})`
}
