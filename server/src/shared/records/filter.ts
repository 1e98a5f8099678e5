import type { Caller } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import type { AccessProfile, ObjectAccess } from '../access/permissions.ts'
import { dataTypeOf, type Operator, operators } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'
import { BadValue, readText } from '../catalogue/values.ts'
import { comparedColumn } from '../modelling/physical-table.ts'
import { type Hop, hopNamed } from '../relationships/definitions.ts'
import { noSuchField, noSuchHop } from './hints.ts'

/**
 * The filter language (contract 4): a tree of `and`, `or`, `not`, comparisons and one-hop `related`. This file reads and
 * checks it; `conditions.ts` turns the result into SQL. Every refusal names its position. A field that the caller may not
 * read is an unknown field, so a filter is no oracle for hidden values.
 */
export type Condition =
  | { readonly kind: 'and' | 'or'; readonly conditions: readonly Condition[] }
  | { readonly kind: 'not'; readonly condition: Condition }
  | {
      readonly kind: 'compare'
      readonly target: Target
      readonly operator: Operator
      readonly values: readonly unknown[]
    }
  | { readonly kind: 'related'; readonly field: Field; readonly access: ObjectAccess; readonly condition: Condition }
  | { readonly kind: 'linked'; readonly hop: Hop; readonly condition: Condition }

/** What a comparison or a sort works on: a field of the object, or one of the names that every record has. */
export interface Target {
  readonly field: Field
  /** Unquoted columns: what is compared, and the exact value where the comparison needs a recheck. */
  readonly compared: string
  readonly exact: string
}

const depthMax = 5
const leavesMax = 50
const valuesMax = 200

export interface FilterScope {
  readonly access: ObjectAccess
  readonly profile: AccessProfile
  readonly caller: Caller
  readonly now: number
}

export function parseFilter(raw: unknown, scope: FilterScope): Condition {
  return new FilterReader(scope).read(raw, 'filter', scope.access, 1)
}

function refuse(position: string, message: string): never {
  throw fail('filter_invalid', { field: position, message })
}

class FilterReader {
  private leaves = 0
  private readonly scope: FilterScope

  constructor(scope: FilterScope) {
    this.scope = scope
  }

  read(raw: unknown, at: string, access: ObjectAccess, depth: number, hops = 0): Condition {
    if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) refuse(at, 'Expected an object.')
    if (depth > depthMax) refuse(at, `A filter is at most ${depthMax} levels deep.`)
    const keys = Object.keys(raw)
    const node = raw as Record<string, unknown>
    const only = (...allowed: string[]) => {
      const extra = keys.find((key) => !allowed.includes(key))
      if (extra !== undefined) refuse(`${at}.${extra}`, `Expected ${allowed.join(', ')} and nothing else.`)
    }
    if (Object.hasOwn(node, 'and') || Object.hasOwn(node, 'or')) {
      const kind = Object.hasOwn(node, 'and') ? 'and' : 'or'
      only(kind)
      const list = node[kind]
      if (!Array.isArray(list) || list.length === 0)
        refuse(`${at}.${kind}`, 'Expected a list of at least one condition.')
      const conditions = list.map((item, index) => this.read(item, `${at}.${kind}[${index}]`, access, depth + 1, hops))
      return { kind, conditions }
    }
    if (Object.hasOwn(node, 'not')) {
      only('not')
      return { kind: 'not', condition: this.read(node['not'], `${at}.not`, access, depth + 1, hops) }
    }
    if (Object.hasOwn(node, 'related')) {
      only('related', 'some')
      return this.related(node, at, access, depth, hops)
    }
    only('field', 'op', 'value')
    return this.comparison(node, at, access)
  }

  private related(
    node: Record<string, unknown>,
    at: string,
    access: ObjectAccess,
    depth: number,
    hops: number,
  ): Condition {
    if (hops > 0) refuse(at, '`related` reaches one hop, not further.')
    const { profile } = this.scope
    const name = node['related']
    const field = typeof name === 'string' ? access.readableByKey.get(name) : undefined
    const target = field?.referenceObjectId ? profile.byObjectId.get(field.referenceObjectId) : undefined
    const some = (object: ObjectAccess) => this.read(node['some'], `${at}.some`, object, depth + 1, 1)
    // A reference comes first: a relationship of its name that is added later changes no query.
    if (field && target) return { kind: 'related', field, access: target, condition: some(target) }
    const hop = hopNamed(name, access, profile)
    if (hop) return { kind: 'linked', hop, condition: some(hop.access) }
    if (field) refuse(`${at}.related`, 'Expected a reference field to an object that you may read, or a relationship.')
    throw fail('unknown_field', { field: `${at}.related`, message: noSuchHop(name, access, profile) })
  }

  private comparison(node: Record<string, unknown>, at: string, access: ObjectAccess): Condition {
    if (++this.leaves > leavesMax) refuse(at, `A filter has at most ${leavesMax} comparisons.`)
    const target = targetOf(node['field'], access)
    if (!target) throw fail('unknown_field', { field: `${at}.field`, message: noSuchField(node['field'], access) })
    const operator = node['op'] as Operator
    if (!operators.includes(operator)) refuse(`${at}.op`, `Expected one of ${operators.join(', ')}.`)
    if (!operatorsOf(target.field).includes(operator)) {
      refuse(`${at}.op`, `${target.field.dataType} fields take ${operatorsOf(target.field).join(', ')}.`)
    }
    return { kind: 'compare', target, operator, values: this.values(node, operator, target.field, `${at}.value`) }
  }

  private values(node: Record<string, unknown>, operator: Operator, field: Field, at: string): unknown[] {
    const value = node['value']
    switch (operator) {
      case 'isNull':
      case 'isNotNull':
        if (value !== undefined) refuse(at, `${operator} takes no value.`)
        return []
      case 'in':
      case 'notIn':
      case 'containsAny':
      case 'containsAll':
        if (!Array.isArray(value) || value.length > valuesMax)
          refuse(at, `Expected a list of at most ${valuesMax} values.`)
        return value.map((item, index) => this.value(item, field, `${at}[${index}]`))
      case 'between':
        if (!Array.isArray(value) || value.length !== 2) refuse(at, 'Expected a list of two values: from and to.')
        return value.map((item, index) => this.value(item, field, `${at}[${index}]`))
      case 'contains':
      case 'startsWith':
      case 'endsWith':
        return [this.text(value, at)]
      default:
        return [this.value(value, field, at)]
    }
  }

  private value(value: unknown, field: Field, at: string): unknown {
    if (value === null || value === undefined) refuse(at, 'Expected a value. Use isNull or isNotNull for none.')
    if (value === '$now' && field.dataType === 'dateTime') return new Date(this.scope.now).toISOString()
    if (value === '$today' && field.dataType === 'date') return new Date(this.scope.now).toISOString().slice(0, 10)
    if (value === '$me' && field.dataType === 'user') {
      return this.scope.caller.user?.userId ?? refuse(at, '$me needs a credential that acts for a user.')
    }
    const type = dataTypeOf(field)
    try {
      // Text is compared with any text; only values with a form of their own are read as the field reads them.
      if (type.shadow === 'folded' || field.dataType === 'longText') return readText(value, unbounded(field), 100_000)
      if (field.dataType === 'multiSelect') return (type.read([value], unbounded(field)) as string[])[0]
      return type.read(value, unbounded(field))
    } catch (error) {
      if (error instanceof BadValue) refuse(at, error.message)
      throw error
    }
  }

  private text(value: unknown, at: string): string {
    try {
      const text = readText(value, unbounded({ validation: {} } as Field), 1000)
      if (text === '') refuse(at, 'Expected at least one character.')
      return text
    } catch (error) {
      if (error instanceof BadValue) refuse(at, error.message)
      throw error
    }
  }
}

/** Limits of a field bind what is stored, not what it is compared with: "amount > 2000000" is a fair question. */
function unbounded(field: Field): Field {
  return { ...field, validation: {} }
}

const systemFields: ReadonlyMap<string, Target> = new Map(
  (
    [
      ['recordId', 'record_id', 'reference'],
      ['createdAt', 'created_at', 'dateTime'],
      ['updatedAt', 'updated_at', 'dateTime'],
      ['archivedAt', 'archived_at', 'dateTime'],
      ['ownerUserId', 'owner_user_id', 'user'],
      ['dataRoleId', 'data_role_id', 'reference'],
      ['locationId', 'location_id', 'reference'],
      ['revision', 'revision', 'integer'],
    ] as const
  ).map(([fieldKey, column, dataType]) => [
    fieldKey,
    { field: systemField(fieldKey, column, dataType), compared: column, exact: column },
  ]),
)

function systemField(fieldKey: string, column: string, dataType: Field['dataType']): Field {
  return {
    fieldId: fieldKey,
    fieldKey,
    label: fieldKey,
    dataType,
    column,
    required: false,
    readOnly: false,
    unique: false,
    indexed: true,
    indexState: 'ready',
    searchable: false,
    searchTag: null,
    options: null,
    validation: {},
    referenceObjectId: null,
  }
}

export const systemFieldKeys: readonly string[] = [...systemFields.keys()]

/** A readable field or a name that every record has; undefined for anything else. */
export function targetOf(name: unknown, access: ObjectAccess): Target | undefined {
  if (typeof name !== 'string') return undefined
  const field = access.readableByKey.get(name)
  return field ? { field, compared: comparedColumn(field), exact: field.column } : systemFields.get(name)
}

export function operatorsOf(field: Field): readonly Operator[] {
  return dataTypeOf(field).operators
}
