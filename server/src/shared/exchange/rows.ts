import { Readable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { CsvError, parse } from 'csv-parse'
import { parse as parseJson } from 'secure-json-parse'
import { fail } from '../../kernel/errors.ts'
import { isDeeperThan, jsonDepthMax } from '../../kernel/json-depth.ts'
import type { ImportOptions } from './schema.ts'

/** A row of a file, from 1; the header of CSV is 0. Exactly one of the three others is there. */
export interface SourceRow {
  readonly row: number
  /** About what it takes in the file. */
  readonly sizeBytes: number
  readonly cells?: readonly string[]
  readonly line?: Readonly<Record<string, unknown>>
  /** Why it is no row: the file goes on behind it. */
  readonly problem?: string
}

export const rowsMax = 1_000_000
export const columnsMax = 1_000
/** As much as the body of a single creation. */
const rowBytesMax = 1024 * 1024
/**
 * Without the end of a row, or of a line: quotes may be doubled, and what is nothing but delimiters must end somewhere. The
 * parser of CSV counts neither: one row of 100 MiB of commas, with a line break in quotes here and there, took 1.7 GB.
 */
const unbrokenBytesMax = 3 * rowBytesMax
/** Parsed in one turn: 4 ms. Requests are answered in between. */
const sliceBytes = 64 * 1024

const invalid = (message: string, field = 'file') => fail('import_file_invalid', { field, message })

/** Reads a file row by row. Throws `import_file_invalid` where it is not what it is said to be, `import_too_large`. */
export async function* rowsOf(
  file: AsyncIterable<Buffer>,
  { format, delimiter = ',' }: Pick<ImportOptions, 'format' | 'delimiter'>,
): AsyncGenerator<SourceRow> {
  const rows = format === 'csv' ? csvRows(text(file), delimiter) : jsonRows(text(file))
  for await (const row of rows) {
    if (row.row > rowsMax) throw fail('import_too_large')
    yield row
  }
}

/** The file in slices, held to be UTF-8 with lines of bounded length. */
async function* text(file: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const check = (bytes?: Buffer) => {
    try {
      decoder.decode(bytes, { stream: bytes !== undefined })
    } catch {
      throw invalid('The file is not valid UTF-8.')
    }
  }
  let unbroken = 0
  for await (const chunk of file) {
    check(chunk)
    for (let at = 0; at < chunk.length; at += sliceBytes) {
      const slice = chunk.subarray(at, at + sliceBytes)
      const end = Math.max(slice.lastIndexOf(0x0a), slice.lastIndexOf(0x0d))
      unbroken = end === -1 ? unbroken + slice.length : slice.length - end - 1
      if (unbroken > unbrokenBytesMax) throw invalid('A row is larger than 1 MiB.')
      yield slice
      await nextTurn()
    }
  }
  check()
}

async function* csvRows(bytes: AsyncIterable<Buffer>, delimiter: string): AsyncGenerator<SourceRow> {
  const parser = parse({
    bom: true,
    delimiter,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: rowBytesMax,
  })
  const source = Readable.from(withEnds(bytes, () => parser.info.records + parser.info.empty_lines))
  source.on('error', (error) => parser.destroy(error))
  source.pipe(parser)
  let row = 0
  try {
    for await (const cells of parser as AsyncIterable<string[]>) {
      if (cells.length > columnsMax) throw invalid(`There are more than ${columnsMax} columns.`, placeOf(row))
      yield { row, cells, sizeBytes: cells.reduce((sum, cell) => sum + cell.length, 0) }
      row++
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw invalid(csvProblems[error.code] ?? 'This is not valid CSV.', placeOf(row))
  } finally {
    source.destroy()
  }
  if (row === 0) throw invalid('The file is empty: it has no header.')
}

const csvProblems: Readonly<Record<string, string>> = {
  CSV_QUOTE_NOT_CLOSED: 'A quote is opened and never closed.',
  CSV_INVALID_CLOSING_QUOTE: 'There is text behind a closing quote.',
  INVALID_OPENING_QUOTE: 'There is a quote in the middle of a cell that is not quoted.',
  CSV_MAX_RECORD_SIZE: 'The row is larger than 1 MiB.',
}

const placeOf = (row: number) => (row === 0 ? 'header' : `row ${row}`)

/** The same bytes, of which a row must end now and then: `ended` says how many have. */
async function* withEnds(bytes: AsyncIterable<Buffer>, ended: () => number): AsyncGenerator<Buffer> {
  let seen = 0
  let unended = 0
  for await (const slice of bytes) {
    const now = ended()
    unended = now === seen ? unended + slice.length : slice.length
    seen = now
    if (unended > unbrokenBytesMax) throw invalid('A row is larger than 1 MiB.')
    yield slice
  }
}

async function* jsonRows(bytes: AsyncIterable<Buffer>): AsyncGenerator<SourceRow> {
  let row = 0
  let rest: Buffer = Buffer.alloc(0)
  const withoutMark = (line: Buffer) =>
    row === 0 && line.subarray(0, 3).equals(byteOrderMark) ? line.subarray(3) : line
  const rowOfLine = (line: Buffer): SourceRow | undefined => {
    const written = withoutMark(line)
    const text = written.toString().trim()
    return text === '' ? undefined : { row: ++row, sizeBytes: line.length, ...parsedLine(written, text) }
  }
  for await (const slice of bytes) {
    const all = rest.length === 0 ? slice : Buffer.concat([rest, slice])
    let at = 0
    for (let end = all.indexOf(0x0a); end !== -1; end = all.indexOf(0x0a, at)) {
      const found = rowOfLine(all.subarray(at, end))
      if (found) yield found
      at = end + 1
    }
    rest = all.subarray(at)
  }
  const last = rowOfLine(rest)
  if (last) yield last
}

const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

function parsedLine(bytes: Buffer, text: string): Pick<SourceRow, 'line' | 'problem'> {
  if (bytes.length > rowBytesMax) return { problem: 'The line is larger than 1 MiB.' }
  if (isDeeperThan(bytes, jsonDepthMax)) return { problem: `The line has more than ${jsonDepthMax} levels.` }
  try {
    const line: unknown = parseJson(text)
    if (typeof line === 'object' && line !== null && !Array.isArray(line))
      return { line: line as Record<string, unknown> }
    return { problem: 'Expected a JSON object.' }
  } catch {
    return { problem: 'The line is not valid JSON.' }
  }
}
