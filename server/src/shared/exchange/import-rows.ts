import { Failure, fail } from '../../kernel/errors.ts'
import type { Field } from '../catalogue/field.ts'
import { type BatchItem, type BatchResult, runBatch } from '../records/batch.ts'
import { parseSelection } from '../records/query.ts'
import { findPage } from '../records/read-store.ts'
import type { RecordScope } from '../records/scope.ts'
import { parseSort } from '../records/sort.ts'
import { bodyOfCells, bodyOfLine, columnsOf, errorLine, type RowBody } from './columns.ts'
import type { ImportInput } from './import.ts'
import type { SourceRow } from './rows.ts'

/** What became of some rows: of the first so many, where one that could not be taken ends the import. */
export interface Written {
  readonly rows: number
  readonly created: number
  readonly updated: number
  readonly errors: readonly string[]
}

type Outcome = { readonly row: number } & ({ readonly created: boolean } | { readonly error: Failure | BatchError })
type BatchError = Extract<BatchResult, { readonly error: unknown }>['error']

class DryRun extends Error {
  override readonly name = 'DryRun'
}

/** Writes rows with the rights of this moment, or only finds out what would become of them. */
export async function writeRows(
  scope: RecordScope,
  rows: readonly SourceRow[],
  header: readonly string[],
  input: ImportInput,
  correlationId: string,
): Promise<Written> {
  const { dryRun = false, onError = 'continue' } = input.options
  let outcomes: Outcome[] = []
  const write = async (some: readonly SourceRow[]) => {
    outcomes = await outcomesOf(scope, some, header, input, correlationId)
    const bad = outcomes.findIndex((outcome) => 'error' in outcome)
    // What stands behind it in the same batch was written as well: done again without that.
    if (onError === 'stop' && bad !== -1 && bad < some.length - 1) throw new StopAt(bad)
    if (dryRun) throw new DryRun()
  }
  try {
    await scope.tx.savepoint(() => write(rows))
  } catch (error) {
    if (error instanceof StopAt) {
      try {
        await scope.tx.savepoint(() => write(rows.slice(0, error.index + 1)))
      } catch (again) {
        if (!(again instanceof DryRun)) throw again
      }
    } else if (!(error instanceof DryRun)) throw error
  }
  return written(outcomes)
}

class StopAt extends Error {
  override readonly name = 'StopAt'
  readonly index: number

  constructor(index: number) {
    super('A row cannot be taken.')
    this.index = index
  }
}

function written(outcomes: readonly Outcome[]): Written {
  const created = outcomes.filter((outcome) => 'created' in outcome && outcome.created).length
  const errors = outcomes.flatMap((outcome) => ('error' in outcome ? [lineOf(outcome.row, outcome.error)] : []))
  return { rows: outcomes.length, created, updated: outcomes.length - created - errors.length, errors }
}

function lineOf(row: number, error: Failure | BatchError): string {
  if (error instanceof Failure) return errorLine(row, error)
  return errorLine(row, { code: error.code, message: error.error, details: error.details })
}

async function outcomesOf(
  scope: RecordScope,
  rows: readonly SourceRow[],
  header: readonly string[],
  input: ImportInput,
  correlationId: string,
): Promise<Outcome[]> {
  const { options } = input
  const targets = options.format === 'csv' ? columnsOf(header, options, scope.access) : []
  const outcomes = new Map<number, Outcome>()
  const bodies: { readonly row: number; readonly body: RowBody }[] = []
  for (const { row, cells, line, problem } of rows) {
    try {
      if (problem !== undefined) throw fail('invalid_json', { field: 'row', message: problem })
      const body = cells ? bodyOfCells(cells, targets, options) : bodyOfLine(line!, options, scope.access)
      requireKey(body, input)
      bodies.push({ row, body })
    } catch (error) {
      if (!(error instanceof Failure) || error.status >= 500) throw error
      outcomes.set(row, { row, error })
    }
  }
  const items = await itemsOf(
    scope,
    bodies.map(({ body }) => body),
    input,
  )
  for (const result of await runBatch(scope, items, false, correlationId)) {
    const { row } = bodies[result.index]!
    outcomes.set(row, 'row' in result ? { row, created: result.status === 201 } : { row, error: result.error })
  }
  return rows.map(({ row }) => outcomes.get(row)!)
}

/** An upsert needs its key in each row; only a row without an id is a new record. */
function requireKey(body: RowBody, { options }: ImportInput): void {
  if (options.mode !== 'upsert' || options.key === 'recordId') return
  if ((keyOf(body, options.key) ?? null) === null) {
    throw fail('required_field_missing', { field: options.key ?? 'externalKey', message: 'An upsert needs its key.' })
  }
}

/** The value that an upsert finds the record of a row by. */
export function keyOf(body: RowBody, key = 'externalKey'): unknown {
  return key === 'externalKey' ? body.externalKey : body.fields?.[key]
}

async function itemsOf(scope: RecordScope, bodies: readonly RowBody[], { options }: ImportInput): Promise<BatchItem[]> {
  const { mode = 'insert', key = 'externalKey' } = options
  if (mode === 'insert') return bodies.map((body) => ({ ...body, operation: 'create' }))
  if (key === 'externalKey') return bodies.map((body) => ({ ...body, operation: 'upsert' }))
  if (key === 'recordId') {
    return bodies.map((body) => ({ ...body, operation: body.recordId === undefined ? 'create' : 'update' }))
  }
  const field = scope.access.readableByKey.get(key)
  if (!field?.unique)
    throw fail('import_columns_invalid', { field: key, message: 'The key is no unique field any more.' })
  // Issued in one turn, they leave in one write; and only the database says which values are the same.
  const found = await Promise.all(bodies.map((body) => findByField(scope, field, keyOf(body, key))))
  return bodies.map((body, index) => {
    const recordId = found[index]
    return recordId === undefined ? { ...body, operation: 'create' } : { ...body, operation: 'update', recordId }
  })
}

/** A value that the field does not take finds nothing: the row is then refused for it, like any other. */
async function findByField(scope: RecordScope, field: Field, value: unknown): Promise<string | undefined> {
  const { tx, caller, access } = scope
  let selection: ReturnType<typeof parseSelection>
  try {
    selection = parseSelection({ filter: { field: field.fieldKey, op: 'eq', value } }, scope)
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
  const { rows } = await findPage(tx, caller, {
    ...selection,
    ...{ sort: parseSort(undefined, access), page: 1, pageSize: 1, position: undefined },
    ...{ fields: [], columns: [], expand: [], includeTotal: false, identity: null },
  })
  return rows[0]?.record_id
}
