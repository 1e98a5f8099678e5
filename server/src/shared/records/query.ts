import { fail } from '../../kernel/errors.ts'
import { pageSizeDefault } from '../../kernel/schemas.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import type { Field } from '../catalogue/field.ts'
import type { Cursors } from '../cursors.ts'
import { type Hop, hopNamed } from '../relationships/definitions.ts'
import { type Words, wordsOf } from '../search-text.ts'
import { type Condition, type FilterScope, parseFilter } from './filter.ts'
import { noSuchField, noSuchHop } from './hints.ts'
import { parseSort, type Sort } from './sort.ts'

/** A search of records as it arrives (contract 4). Its shape has been validated; names and values have not. */
export interface SearchBody {
  readonly page?: number
  readonly cursor?: string
  readonly pageSize?: number
  readonly sort?: unknown
  readonly filter?: unknown
  readonly search?: string
  readonly fields?: readonly string[]
  readonly expand?: readonly string[]
  readonly includeArchived?: boolean
  readonly includeTotal?: boolean
}

/** Which records: what a list and its count have in common. */
export interface Selection {
  readonly access: ObjectAccess
  readonly filter: Condition | undefined
  /** Undefined when nothing is searched for. */
  readonly words: Words | undefined
  readonly includeArchived: boolean
}

export interface RecordQuery extends Selection {
  readonly sort: Sort
  readonly page: number | undefined
  readonly pageSize: number
  readonly position: readonly (string | null)[] | undefined
  /** The fields to return, in the order of the definition. */
  readonly fields: readonly Field[]
  /** The fields to read: those, the one that names the record, and those whose records are expanded. */
  readonly columns: readonly Field[]
  readonly expand: readonly Expansion[]
  readonly includeTotal: boolean
  /** What a cursor of this query is bound to. */
  readonly identity: unknown
}

/** What `expand` includes: the record behind a reference, or the records at the other end of a relationship. */
export type Expansion =
  | { readonly name: string; readonly field: Field; readonly access: ObjectAccess; readonly hop?: never }
  | { readonly name: string; readonly field?: never; readonly hop: Hop }

export function parseSelection(
  body: Pick<SearchBody, 'filter' | 'search' | 'includeArchived'>,
  scope: FilterScope,
): Selection {
  const searched = body.search === undefined || body.search.trim() === '' ? undefined : body.search
  return {
    access: scope.access,
    filter: body.filter === undefined ? undefined : parseFilter(body.filter, scope),
    words: searched === undefined ? undefined : wordsOf(searched, 'search'),
    includeArchived: body.includeArchived ?? false,
  }
}

export function parseQuery(body: SearchBody, scope: FilterScope, cursors: Cursors): RecordQuery {
  const { access, caller } = scope
  if (body.page !== undefined && body.cursor !== undefined) throw fail('page_and_cursor', { field: 'cursor' })
  const selection = parseSelection(body, scope)
  const sort = parseSort(body.sort, access)
  const identity = [
    caller.organizationId,
    access.object.objectId,
    sort.text,
    body.filter ?? null,
    body.search ?? null,
    selection.includeArchived,
  ]
  const fields = chosenFields(body.fields, access)
  const expand = expansions(body.expand ?? [], scope)
  return {
    ...selection,
    sort,
    page: body.cursor === undefined ? (body.page ?? 1) : undefined,
    pageSize: body.pageSize ?? pageSizeDefault,
    position: body.cursor === undefined ? undefined : cursors.open(identity, body.cursor),
    fields,
    columns: withFields(fields, [nameFieldOf(access), ...expand.map(({ field }) => field)]),
    expand,
    includeTotal: body.includeTotal ?? false,
    identity,
  }
}

export function chosenFields(names: readonly string[] | undefined, access: ObjectAccess): readonly Field[] {
  if (names === undefined) return access.readable
  names.forEach((name, index) => {
    if (!access.readableByKey.has(name)) {
      throw fail('unknown_field', { field: `fields[${index}]`, message: noSuchField(name, access) })
    }
  })
  return access.readable.filter((field) => names.includes(field.fieldKey))
}

function nameFieldOf({ object, readableByKey }: ObjectAccess): Field | undefined {
  return readableByKey.get(object.nameField.fieldKey)
}

function withFields(fields: readonly Field[], more: readonly (Field | undefined)[]): readonly Field[] {
  const missing = new Set(more.filter((field) => field !== undefined && !fields.includes(field)) as Field[])
  return missing.size === 0 ? fields : [...fields, ...missing]
}

export function expansions(names: readonly string[], { access, profile }: FilterScope): readonly Expansion[] {
  return names.map((name, index) => {
    const position = `expand[${index}]`
    // Here and not in the schema: `uniqueItems` takes time by the square of a list, however short the list may be.
    if (names.indexOf(name) < index)
      throw fail('validation_failed', { field: position, message: 'Name each field once.' })
    const field = access.readableByKey.get(name)
    const target = field?.referenceObjectId ? profile.byObjectId.get(field.referenceObjectId) : undefined
    if (field && target) return { name, field, access: target }
    const hop = hopNamed(name, access, profile)
    if (hop) return { name, hop }
    if (!field) throw fail('unknown_field', { field: position, message: noSuchHop(name, access, profile) })
    throw fail('validation_failed', {
      field: position,
      message: 'Expected a reference to an object that you may read, or a relationship.',
    })
  })
}
