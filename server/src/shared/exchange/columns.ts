import { type ErrorDetail, errorTable, type Failure, fail } from '../../kernel/errors.ts'
import { Nullable, Strict } from '../../kernel/schemas.ts'
import { assertValid } from '../../kernel/validation.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import { isReadOnly } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'
import { noSuchField } from '../records/hints.ts'
import { dataRoleId, externalKey, locationId, ownerUserId, recordId } from '../records/shapes.ts'
import type { UpdateBody } from '../records/work.ts'
import { unescapedCell, valueOfCell } from './cells.ts'
import type { ImportOptions } from './schema.ts'

/** What the columns of a file, or the properties of its lines, mean for a record. */
export type Target =
  | { readonly name: string; readonly field: Field }
  | { readonly name: EnvelopeName; readonly field?: undefined }

const envelope = { externalKey, ownerUserId, dataRoleId, locationId, recordId }
export type EnvelopeName = keyof typeof envelope
const envelopeShape = Strict(
  Object.fromEntries(Object.entries(envelope).map(([name, shape]) => [name, Nullable(shape)])),
  { required: [] },
)

/** What a row asks for; `recordId` stands in it only where that is what an upsert goes by. */
export interface RowBody extends UpdateBody {
  readonly recordId?: string
}

/** Columns that exports have, and that the service sets. */
const setByService: ReadonlySet<string> = new Set(['recordId', 'createdAt', 'updatedAt', 'archivedAt', 'revision'])

/**
 * `left out`: there is such a thing, and nobody writes it. Undefined: there is none, as far as the caller may know. What shows
 * the first of a list is read into the list, unless that is among the `named` itself: files of contacts have a column for one
 * address, and exports have both.
 */
function targetNamed(
  name: string,
  access: ObjectAccess,
  named: ReadonlySet<string>,
  key: string | undefined,
): Target | 'left out' | undefined {
  if (Object.hasOwn(envelope, name) && (name !== 'recordId' || key === 'recordId'))
    return { name: name as EnvelopeName }
  const field = access.readableByKey.get(name)
  if (!field) return setByService.has(name) ? 'left out' : undefined
  if (!isReadOnly(field)) return { name, field }
  const list = field.behaviour?.readInto
  const into = list === undefined || named.has(list) ? undefined : access.readableByKey.get(list)
  return into ? { name: into.fieldKey, field: into } : 'left out'
}

const mappingSays = '`mapping` says what becomes of which column; those that it does not name are not read.'

/** Throws for a mapping that leads to what is not there, to what nobody writes, twice to the same, or to no key. */
export function requireMapping(
  { mapping, ...rest }: Pick<ImportOptions, 'mapping' | 'mode' | 'key'>,
  access: ObjectAccess,
): void {
  const key = upsertKeyOf(rest)
  const details: ErrorDetail[] = []
  const named = new Set<string>()
  for (const [column, name] of Object.entries(mapping ?? {})) {
    const refuse = (code: string, message: string) => details.push({ field: `mapping.${column}`, code, message })
    const target = targetNamed(name, access, new Set(Object.values(mapping ?? {})), key)
    if (target === undefined) refuse('unknown_field', noSuchField(name, access))
    else if (target === 'left out') refuse('field_read_only', 'The service sets this field.')
    else if (named.has(name)) refuse('validation_failed', 'Another column leads to the same field.')
    named.add(name)
  }
  if (mapping && key !== undefined && !named.has(key)) {
    const message = `No column leads to ${key}, which the upsert finds records by.`
    details.push({ field: 'mapping', code: 'validation_failed', message })
  }
  const [first] = details
  if (first) throw fail(first.code as 'unknown_field', { details: details.slice(0, 20) })
}

/** What an upsert finds records by; undefined where everything is inserted. */
export function upsertKeyOf({ mode, key = 'externalKey' }: Pick<ImportOptions, 'mode' | 'key'>): string | undefined {
  return mode === 'upsert' ? key : undefined
}

/** What each column of the header means; undefined for those that are not read. Throws `import_columns_invalid`. */
export function columnsOf(
  header: readonly string[],
  { mapping, ...rest }: Pick<ImportOptions, 'mapping' | 'mode' | 'key'>,
  access: ObjectAccess,
): readonly (Target | undefined)[] {
  const details: ErrorDetail[] = []
  const refuse = (field: string, message: string) =>
    details.push({ field: field === '' ? 'header' : field, code: 'import_columns_invalid', message })
  const key = upsertKeyOf(rest)
  const seen = new Set<string>()
  const nameOf = nameBy(mapping)
  const named = new Set(header.flatMap((column) => nameOf(column) ?? []))
  const targets = header.map((column) => {
    const name = nameOf(column)
    if (name === undefined) return undefined
    if (seen.has(column)) refuse(column, 'There are two columns of this name.')
    seen.add(column)
    const target = targetNamed(name, access, named, key)
    if (target === undefined) refuse(column, `${noSuchField(name, access)} ${mappingSays}`)
    return target === 'left out' ? undefined : target
  })
  for (const column of Object.keys(mapping ?? {})) {
    if (!header.includes(column)) refuse(column, 'The file has no such column.')
  }
  if (key !== undefined && !named.has(key)) {
    refuse(key, 'The file has no such column, which the upsert finds records by.')
  }
  if (details.length > 0) throw fail('import_columns_invalid', { details: details.slice(0, 20) })
  return targets
}

/** A row as the body of a record: what a client would have sent. Throws what is wrong with it. */
export function bodyOfCells(
  cells: readonly string[],
  targets: readonly (Target | undefined)[],
  { emptyCells }: Pick<ImportOptions, 'emptyCells'>,
): RowBody {
  if (cells.length !== targets.length) {
    const message = `Expected ${targets.length} cells, as in the header; there are ${cells.length}.`
    throw fail('validation_failed', { field: 'row', message })
  }
  const named: [Target, unknown][] = []
  for (const [index, target] of targets.entries()) {
    const cell = cells[index]!
    if (!target) continue
    if (cell !== '') named.push([target, target.field ? valueOfCell(cell, target.field) : unescapedCell(cell)])
    else if (emptyCells === 'clear') named.push([target, null])
  }
  return bodyOf(named)
}

/** The same of a line of JSON. */
export function bodyOfLine(
  line: Readonly<Record<string, unknown>>,
  { mapping, ...rest }: Pick<ImportOptions, 'mapping' | 'mode' | 'key'>,
  access: ObjectAccess,
): RowBody {
  const nameOf = nameBy(mapping)
  const names = new Set(Object.keys(line).flatMap((property) => nameOf(property) ?? []))
  const named: [Target, unknown][] = []
  for (const [property, value] of Object.entries(line)) {
    const name = nameOf(property)
    if (name === undefined) continue
    const target = targetNamed(name, access, names, upsertKeyOf(rest))
    if (target === undefined) throw fail('unknown_field', { field: property, message: noSuchField(name, access) })
    if (target === 'left out') continue
    const isOneOfList = target.field && target.name !== name && typeof value === 'string'
    named.push([target, isOneOfList ? valueOfCell(value, target.field) : value])
  }
  return bodyOf(named)
}

/** What a column or a property is called in the object; undefined for one that a mapping leaves out. */
function nameBy(mapping: ImportOptions['mapping']): (column: string) => string | undefined {
  if (mapping === undefined) return (column) => column
  return (column) => (Object.hasOwn(mapping, column) ? mapping[column] : undefined)
}

function bodyOf(named: readonly (readonly [Target, unknown])[]): RowBody {
  const fields: Record<string, unknown> = {}
  const rest: Record<string, unknown> = {}
  for (const [{ name, field }, value] of named) (field ? fields : rest)[name] = value
  assertValid(envelopeShape, rest)
  if (rest['recordId'] === null) delete rest['recordId']
  return { ...rest, fields }
}

/** A problem of a row as it is told: which row, and which field of it. */
export function errorLine(
  row: number,
  { code, message, details }: Pick<Failure, 'code' | 'message' | 'details'>,
): string {
  const told = (details ?? []).map((detail) => ({
    ...detail,
    field: detail.field.replace(/^fields\./, ''),
    // A keyword of JSON Schema is no code that a program could look up.
    code: Object.hasOwn(errorTable, detail.code) ? detail.code : code,
  }))
  const [first] = told
  const line = first
    ? { row, field: first.field, code: first.code, message: first.message }
    : { row, field: null, code, message }
  return `${JSON.stringify(told.length > 1 ? { ...line, details: told } : line)}\n`
}
