import type { ObjectAccess } from '../../shared/access/permissions.ts'
import { findRecords } from '../../shared/records/read-store.ts'
import type { RecordRow } from '../../shared/records/record.ts'
import type { RecordContext } from '../../shared/records/scope.ts'
import { textsOf } from '../../shared/records/search-document.ts'
import { digitsPattern, foldForSearch } from '../../shared/search-text.ts'
import { snippetOf } from './snippet.ts'
import type { Found, Question } from './store.ts'

/** A record that was found, as its own table has it now and as the caller may read it. */
export interface Read {
  readonly found: Found
  readonly access: ObjectAccess
  readonly row: RecordRow
}

/**
 * Reads what was found from the tables of the objects, one statement for each object: there the caller is authorised
 * again. What it no longer sees, or was archived meanwhile, is left out.
 */
export async function readFound(
  { tx, caller }: Pick<RecordContext, 'tx' | 'caller'>,
  { accesses }: Question,
  found: readonly Found[],
): Promise<Read[]> {
  const rows = await Promise.all(
    accesses.map(async (access) => {
      const ids = found.filter(({ objectId }) => objectId === access.object.objectId).map(({ recordId }) => recordId)
      return ids.length === 0 ? [] : findRecords(tx, caller, access, ids)
    }),
  )
  const byId = new Map(
    accesses.flatMap((access, index) => rows[index]!.map((row) => [row.record_id, { access, row }] as const)),
  )
  return found.flatMap((one) => {
    const read = byId.get(one.recordId)
    return read && read.row.archived_at === null ? [{ found: one, ...read }] : []
  })
}

/** What every answer says of a record. */
export function summaryOf({ access, row }: Read) {
  return {
    moduleKey: access.object.objectKey,
    recordId: row.record_id,
    title: titleOf(access, row),
    subtitle: subtitleOf(access, row),
  }
}

const scores = [1, 0.9, 0.8, 0.7, 0.5]

export function hitOf(read: Read, query: string | undefined) {
  const { tier, similarity } = read.found
  const score = tier === null ? null : (scores[tier - 1] ?? Math.round(40 * (similarity ?? 0)) / 100)
  return {
    ...summaryOf(read),
    snippet: query === undefined ? null : snippetFor(read, query),
    score,
    updatedAt: read.row.updated_at,
  }
}

function snippetFor({ access, row }: Read, query: string): string | null {
  const { object, readable } = access
  const texts = readable
    .filter((field) => field !== object.nameField)
    .flatMap((field) => textsOf(object, field, row[field.column]))
  const words = foldForSearch(query).split(' ')
  return snippetOf(texts, words, digitsPattern(query)?.slice(1, -1))
}

function titleOf({ object, readableByKey }: ObjectAccess, row: RecordRow): string | null {
  const { nameField } = object
  const name = readableByKey.has(nameField.fieldKey) ? row[nameField.column] : null
  return name === null || name === undefined ? null : String(name)
}

const subtitleMax = 160

/**
 * The first of the fields that the module names for this, or of the other searchable fields of a custom object, that the
 * caller may read and that has a value.
 */
function subtitleOf({ object, readable, readableByKey }: ObjectAccess, row: RecordRow): string | null {
  const named = object.behaviour?.subtitleFields?.flatMap((key) => readableByKey.get(key) ?? [])
  const fields = named ?? readable.filter((field) => field.searchTag !== null && field.dataType !== 'longText')
  for (const field of fields) {
    const value = row[field.column]
    if (field === object.nameField || value === null || value === undefined || typeof value === 'object') continue
    const text = field.options?.find((option) => option.value === value)?.label ?? String(value)
    const line = text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim()
    if (line !== '') return line.length > subtitleMax ? `${line.slice(0, subtitleMax - 1).toWellFormed()}…` : line
  }
  return null
}
