import { fail } from '../../kernel/errors.ts'
import { type Progress, type Work, type WorkEnd, workKind } from '../operations/kind.ts'
import { columnsOf } from './columns.ts'
import { type Exchanged, exchangeScope } from './exchange.ts'
import { writeRows } from './import-rows.ts'
import { rowsOf, type SourceRow } from './rows.ts'
import type { ImportOptions } from './schema.ts'

/** What is to be made of an uploaded file. */
export interface ImportInput extends Exchanged {
  readonly options: Omit<ImportOptions, 'content'>
}

interface ImportCheckpoint {
  /** Rows that are done. */
  readonly row: number
  readonly created: number
  readonly updated: number
  /** A row could not be taken, and the import was to end there. */
  readonly stopped: boolean
}

/** Rows of one transaction: as many as one statement inserts (shared/records/batch). */
const batchRows = 200
/** Of their text: a line of JSON can take 25 times as much in memory, and a hundred of 1 MiB took 2.5 GB. */
const batchBytesMax = 4 * 1024 * 1024

type ImportWork = Work<ImportInput, ImportCheckpoint>

/**
 * Reads the file through once, so that what is no CSV at all is refused before anything is written, and then writes it in
 * batches. Whoever takes over reads the file from its beginning and leaves out the rows that are done: a million take seconds.
 */
export const importKind = workKind<ImportInput, ImportCheckpoint>({ type: 'records.import', run: runImport })

async function runImport(work: ImportWork): Promise<WorkEnd> {
  const { options } = work.input
  let { progress } = work
  let at = work.checkpoint
  if (at === null) {
    at = { row: 0, created: 0, updated: 0, stopped: false }
    progress = { ...progress, total: await inspect(work) }
    const first = { checkpoint: at, progress }
    await work.step(async () => first)
  }
  for await (const { header, rows } of batchesOf(work, at.row)) {
    if (at.stopped) break
    ;({ at, progress } = await writeBatch(work, { header, rows }, at, progress))
  }
  return endOf(work.input, options, at, progress)
}

/** Throws what is wrong with the file as a whole. Returns how many rows it has. */
async function inspect(work: ImportWork): Promise<number> {
  const { input } = work
  let count = 0
  for await (const { row, cells } of rowsOf(work.file('upload'), input.options)) {
    work.signal.throwIfAborted()
    if (row === 0) {
      await work.read(async (context) => {
        columnsOf(cells!, input.options, (await exchangeScope(context, input)).access)
      })
    } else count = row
  }
  return count
}

interface Batch {
  readonly header: readonly string[]
  readonly rows: readonly SourceRow[]
}

/** Rows behind `done`, in batches of those that can be written together. */
export async function* batchesOf(
  { file, input, signal }: Pick<ImportWork, 'file' | 'input' | 'signal'>,
  done: number,
): AsyncGenerator<Batch> {
  let header: readonly string[] = []
  let rows: SourceRow[] = []
  let sizeBytes = 0
  const keys = new Set<string>()
  for await (const row of rowsOf(file('upload'), input.options)) {
    signal.throwIfAborted()
    if (row.row === 0) header = row.cells!
    if (row.row <= done) continue
    const key = input.options.mode === 'upsert' ? rawKeyOf(row, header, input.options) : undefined
    // The second row of a key has to find what the first one has made.
    const isFull = rows.length === batchRows || (rows.length > 0 && sizeBytes + row.sizeBytes > batchBytesMax)
    if (isFull || (key !== undefined && keys.has(key))) {
      yield { header, rows }
      rows = []
      sizeBytes = 0
      keys.clear()
    }
    if (key !== undefined) keys.add(key)
    rows.push(row)
    sizeBytes += row.sizeBytes
  }
  if (rows.length > 0) yield { header, rows }
}

/** The key of a row as it stands in the file, without regard to case. */
function rawKeyOf(
  { cells, line }: SourceRow,
  header: readonly string[],
  { mapping, key = 'externalKey' }: ImportInput['options'],
): string | undefined {
  const name = mapping === undefined ? key : Object.entries(mapping).find(([, target]) => target === key)?.[0]
  if (name === undefined) return undefined
  const value = cells ? cells[header.indexOf(name)] : line && Object.hasOwn(line, name) ? line[name] : undefined
  return value === undefined || value === null ? undefined : String(value).trim().toLowerCase()
}

async function writeBatch(
  work: ImportWork,
  { header, rows }: Batch,
  at: ImportCheckpoint,
  progress: Progress,
): Promise<{ readonly at: ImportCheckpoint; readonly progress: Progress }> {
  const { input, correlationId } = work
  let next = { at, progress }
  await work.step(async (context) => {
    const scope = await exchangeScope(context, input)
    const { errors, ...written } = await writeRows(scope, rows, header, input, correlationId)
    next = {
      at: {
        row: at.row + written.rows,
        created: at.created + written.created,
        updated: at.updated + written.updated,
        stopped: input.options.onError === 'stop' && errors.length > 0,
      },
      progress: {
        total: progress.total,
        processed: progress.processed + written.rows,
        succeeded: progress.succeeded + written.created + written.updated,
        failed: progress.failed + errors.length,
      },
    }
    const bytes = Buffer.from(errors.join(''))
    return { checkpoint: next.at, progress: next.progress, append: [{ file: 'errors', bytes }] }
  })
  return next
}

function endOf(
  { objectKey }: ImportInput,
  { mode = 'insert', dryRun = false }: ImportInput['options'],
  { created, updated }: ImportCheckpoint,
  { processed, succeeded, failed }: Progress,
): WorkEnd {
  const result = { objectKey, mode, dryRun, rows: processed, created, updated, failed }
  if (failed === 0) return { status: 'succeeded', result }
  if (succeeded > 0) return { status: 'partially_succeeded', result }
  return { status: 'failed', result, error: fail('import_rows_invalid') }
}
