import { fail } from '../../kernel/errors.ts'
import { parseSelection, type SearchBody, type Selection } from '../../shared/records/query.ts'
import type { RecordScope } from '../../shared/records/scope.ts'
import type { Module } from './module.ts'
import { filterFields } from './schemas.ts'

/** The arguments of a list that say which records: a search of records with a filter made of them. */
export type ListArguments = Readonly<Record<string, unknown>>

/** A filter of a field that the caller may not read would tell what is in it: there is no such argument for it. */
export function searchBodyOf(module: Module, scope: RecordScope, query: ListArguments): SearchBody {
  const conditions: { field: string; op: 'eq' | 'in'; value: unknown }[] = []
  for (const { fieldKey } of filterFields(module)) {
    const value = query[fieldKey]
    if (value === undefined) continue
    if (!scope.access.readableByKey.has(fieldKey)) throw fail('unknown_field', { field: fieldKey })
    conditions.push({ field: fieldKey, op: Array.isArray(value) ? 'in' : 'eq', value })
  }
  for (const field of ['locationId', 'ownerUserId']) {
    if (query[field] !== undefined) conditions.push({ field, op: 'eq', value: query[field] })
  }
  return {
    ...(conditions.length > 0 && { filter: { and: conditions } }),
    ...(typeof query['search'] === 'string' && { search: query['search'] }),
  }
}

export function selectionOf(module: Module, scope: RecordScope, query: ListArguments): Selection {
  return parseSelection(searchBodyOf(module, scope, query), scope)
}
