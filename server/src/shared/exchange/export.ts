import { stringify } from 'csv-stringify/sync'
import { Failure, fail } from '../../kernel/errors.ts'
import type { Field } from '../catalogue/field.ts'
import type { Cursors } from '../cursors.ts'
import { isTimeout } from '../database/failures.ts'
import { type Work, type WorkContext, type WorkEnd, workKind } from '../operations/kind.ts'
import { parseQuery, type RecordQuery } from '../records/query.ts'
import { countSelected, findPage } from '../records/read-store.ts'
import { flatRow, type RecordRow } from '../records/record.ts'
import type { RecordScope } from '../records/scope.ts'
import { cellOf } from './cells.ts'
import { type Exchanged, exchangeScope } from './exchange.ts'
import type { ExportOptions } from './schema.ts'

/** What an export was asked for. */
export interface ExportInput extends Exchanged {
  readonly options: ExportOptions
}

interface ExportCheckpoint {
  /** The fields of the file, from its beginning to its end. */
  readonly fieldKeys: readonly string[]
  /** Behind what was written; null before the first row. */
  readonly cursor: string | null
  /** Rows when it began; null where they could not be counted. */
  readonly total: number | null
  readonly rows: number
  readonly sizeBytes: number
  readonly done: boolean
}

export const exportRowsMax = 5_000_000
export const exportBytesMax = 2 * 1024 * 1024 * 1024
/** A step writes about one chunk. */
const stepBytes = 768 * 1024
/** Rows of a page; fewer where they are so large that a page of them would not fit into an answer of the database. */
const pageSizeMax = 500

type ExportWork = Work<ExportInput, ExportCheckpoint>

/**
 * Writes the rows of a search into a file, page by page behind a cursor, each page with the rights of its moment. A page that
 * was read and whose chunk was not written when the worker died is read again by the next one.
 */
export const exportKind = workKind<ExportInput, ExportCheckpoint>({ type: 'records.export', run: runExport })

async function runExport(work: ExportWork): Promise<WorkEnd> {
  const { objectKey, options } = work.input
  let at = work.checkpoint ?? (await begin(work))
  while (!at.done) at = await writeChunk(work, at)
  const { rows, sizeBytes } = at
  return { status: 'succeeded', result: { objectKey, format: options.format, rows, sizeBytes } }
}

/** The query of one page, as the caller may ask it now. */
async function queryOf(
  context: WorkContext,
  { input, createdAt }: ExportWork,
  page: Pick<ExportCheckpoint, 'cursor'> & { readonly fieldKeys?: readonly string[]; readonly pageSize: number },
): Promise<{ readonly scope: RecordScope; readonly query: RecordQuery }> {
  // `$now` and `$today` are those of the request, on every page.
  const scope = await exchangeScope({ ...context, now: createdAt }, input)
  const { filter, search, sort, fields, includeArchived } = input.options
  const body = {
    ...(filter !== undefined && { filter }),
    ...(search !== undefined && { search }),
    ...(sort !== undefined && { sort }),
    ...(includeArchived !== undefined && { includeArchived }),
    ...(page.fieldKeys ? { fields: page.fieldKeys } : fields !== undefined && { fields }),
    ...(page.cursor !== null && { cursor: page.cursor }),
    pageSize: page.pageSize,
  }
  if (page.fieldKeys?.some((key) => !scope.access.readableByKey.has(key))) {
    throw fail('permission_denied', { message: 'A field of the file can no longer be read by who began the export.' })
  }
  return { scope, query: parseQuery(body, scope, context.cursors) }
}

/** Holds the request against what it may be, and says how much there is to do. */
async function begin(work: ExportWork): Promise<ExportCheckpoint> {
  const first = await work.read(async (context) => {
    const { query } = await queryOf(context, work, { cursor: null, pageSize: 1 })
    return { fieldKeys: query.fields.map((field) => field.fieldKey), total: await totalOf(context, query) }
  })
  if ((first.total ?? 0) > exportRowsMax) throw fail('export_too_large')
  const { fieldKeys, total } = first
  const header = work.input.options.format === 'csv' ? Buffer.from(csv([headerOf(fieldKeys)])) : Buffer.alloc(0)
  const checkpoint = { fieldKeys, cursor: null, total, rows: 0, sizeBytes: header.length, done: false }
  await work.step(async () => ({
    checkpoint,
    progress: { total, processed: 0, succeeded: 0, failed: 0 },
    append: [{ file: 'result', bytes: header }],
  }))
  return checkpoint
}

/** Null where counting takes too long: the export does not need the number. */
async function totalOf({ tx, caller }: WorkContext, query: RecordQuery): Promise<number | null> {
  try {
    return await countSelected(tx, caller, query)
  } catch (error) {
    if (isTimeout(error) || (error instanceof Failure && error.code === 'count_unavailable')) return null
    throw error
  }
}

async function writeChunk(work: ExportWork, at: ExportCheckpoint): Promise<ExportCheckpoint> {
  const texts: string[] = []
  let { cursor, rows } = at
  let pageSize = pageSizeMax
  let characters = 0
  let done = false
  while (characters < stepBytes && !done) {
    const page = await readPage(work, { ...at, cursor }, pageSize)
    pageSize = page.pageSize
    texts.push(page.text)
    characters += page.text.length
    rows += page.rows
    done = page.cursor === null
    cursor = page.cursor
  }
  const bytes = Buffer.from(texts.join(''))
  const next = { ...at, cursor, rows, sizeBytes: at.sizeBytes + bytes.length, done }
  if (rows > exportRowsMax || next.sizeBytes > exportBytesMax) throw fail('export_too_large')
  await work.step(async () => ({
    checkpoint: next,
    progress: { total: done ? rows : at.total, processed: rows, succeeded: rows, failed: 0 },
    append: [{ file: 'result', bytes }],
  }))
  return next
}

interface ExportedPage {
  readonly text: string
  readonly rows: number
  readonly cursor: string | null
  readonly pageSize: number
}

async function readPage(work: ExportWork, at: ExportCheckpoint, pageSize: number): Promise<ExportedPage> {
  try {
    return await work.read(async (context) => {
      const { query } = await queryOf(context, work, { ...at, pageSize })
      const { rows, next } = await findPage(context.tx, context.caller, query)
      return {
        text: textOf(rows, query.fields, work.input.options),
        rows: rows.length,
        ...position(context, query, next),
        pageSize,
      }
    })
  } catch (error) {
    const isTooMuch = error instanceof Failure && error.code === 'result_too_large'
    if (!isTooMuch || pageSize === 1) throw error
    return readPage(work, at, Math.ceil(pageSize / 4))
  }
}

function position(
  { cursors }: { readonly cursors: Cursors },
  { identity }: RecordQuery,
  next: readonly (string | null)[] | undefined,
): Pick<ExportedPage, 'cursor'> {
  return { cursor: next ? cursors.seal(identity, next) : null }
}

const before = ['recordId'] as const
const after = [
  'ownerUserId',
  'dataRoleId',
  'locationId',
  'externalKey',
  'createdAt',
  'updatedAt',
  'archivedAt',
  'revision',
] as const

function headerOf(fieldKeys: readonly string[]): string[] {
  return [...before, ...fieldKeys, ...after]
}

function textOf(
  rows: readonly RecordRow[],
  fields: readonly Field[],
  { format, escapeFormulas = true }: ExportOptions,
): string {
  const flat = rows.map((row) => flatRow(row, fields) as Readonly<Record<string, unknown>>)
  if (format === 'ndjson') return flat.map((row) => `${JSON.stringify(row)}\n`).join('')
  const types = new Map(fields.map((field) => [field.fieldKey, field.dataType]))
  const names = headerOf(fields.map((field) => field.fieldKey))
  const columns = names.map((name) => ({
    name,
    dataType: name === 'revision' ? ('integer' as const) : types.get(name),
  }))
  return csv(flat.map((row) => columns.map(({ name, dataType }) => cellOf(row[name], dataType, escapeFormulas))))
}

/** RFC 4180: lines end with CRLF, and cells that hold one half of it are quoted as well. */
function csv(rows: readonly (readonly string[])[]): string {
  return stringify(rows as string[][], { record_delimiter: 'windows', quoted_match: /[\r\n]/ })
}
