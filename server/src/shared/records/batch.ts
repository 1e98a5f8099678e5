import { type ErrorBody, type ErrorDetail, errorBody, Failure, fail } from '../../kernel/errors.ts'
import type { NewRecord } from './insert.ts'
import { findByExternalKeys, lockRecords } from './read-store.ts'
import type { RecordRow } from './record.ts'
import type { RecordScope } from './scope.ts'
import {
  type CreateBody,
  createRecords,
  prepareCreation,
  setArchived,
  type UpdateBody,
  updateRecord,
  upsertRecord,
} from './work.ts'

/** One item of a batch (contract 0). */
export interface BatchItem extends UpdateBody {
  readonly operation: 'create' | 'update' | 'archive' | 'upsert'
  readonly recordId?: string
}

export type BatchResult =
  | { readonly index: number; readonly status: number; readonly row: RecordRow }
  | { readonly index: number; readonly status: number; readonly error: ErrorBody }

/**
 * Runs the items in order, each under its own savepoint, so that a bad one leaves the others standing; creations that
 * follow one another are written together (200 in one statement, 10× as fast as one by one), and one by one only when the
 * database refuses the group. An atomic batch with a bad item throws, and the transaction undoes it all.
 */
export async function runBatch(
  scope: RecordScope,
  items: readonly BatchItem[],
  atomic: boolean,
  correlationId: string,
): Promise<BatchResult[]> {
  const results: BatchResult[] = []
  const succeed = (index: number, status: number, row: RecordRow) => results.push({ index, status, row })
  const refuse = (index: number, error: unknown) => {
    if (!(error instanceof Failure) || error.status >= 500) throw error
    results.push({ index, status: error.status, error: errorBody(error, correlationId) })
  }
  const singly = async (index: number) => {
    try {
      const { status, row } = await scope.tx.savepoint(() => runItem(scope, items[index]!))
      succeed(index, status, row)
    } catch (error) {
      refuse(index, error)
    }
  }

  // Two statements, one write: what is locked first is what the second one reads.
  const [, existing] = await Promise.all([lockNamed(scope, items), existingKeys(scope, items)])
  let group: { index: number; record: NewRecord }[] = []
  const writeGroup = async () => {
    const writing = group
    group = []
    if (writing.length === 0) return
    try {
      const rows = await scope.tx.savepoint(() =>
        createRecords(
          scope,
          writing.map(({ record }) => record),
        ),
      )
      for (const [position, { index }] of writing.entries()) succeed(index, 201, rows[position]!)
    } catch (error) {
      // One of them broke a rule that only the database can check. Find out which.
      if (!(error instanceof Failure)) throw error
      for (const { index } of writing) await singly(index)
    }
  }

  for (const [index, item] of items.entries()) {
    const misfit = misfits[item.operation].find((name) => Object.hasOwn(item, name))
    if (misfit) {
      refuse(index, fail('unknown_field', { field: misfit, message: `To ${item.operation} takes no such field.` }))
      continue
    }
    if (!isCreation(item, existing)) {
      await writeGroup()
      await singly(index)
      continue
    }
    try {
      group.push({ index, record: prepareCreation(scope, creationOf(item)) })
    } catch (error) {
      refuse(index, error)
    }
  }
  await writeGroup()
  results.sort((a, b) => a.index - b.index)
  if (atomic) refuseUnlessAllSucceeded(results)
  return results
}

/** What the operation alone does not take, an item of it does not take either: dropping it in silence would be worse. */
const misfits: Readonly<Record<BatchItem['operation'], readonly (keyof BatchItem)[]>> = {
  create: ['recordId', 'expectedRevision'],
  update: [],
  archive: ['fields', 'ownerUserId', 'dataRoleId', 'locationId', 'participants'],
  upsert: ['recordId'],
}

/** Upserts of keys that nobody has yet are creations. */
function isCreation({ operation, externalKey, expectedRevision }: BatchItem, existing: Set<string>): boolean {
  const isNew = operation === 'upsert' && externalKey && expectedRevision === undefined && !existing.has(externalKey)
  // What one item gives a key, a later one finds by it.
  if (externalKey) existing.add(externalKey)
  return operation === 'create' || Boolean(isNew)
}

async function lockNamed({ tx, caller, access }: RecordScope, items: readonly BatchItem[]): Promise<void> {
  const named = items.filter((item) => item.operation !== 'create')
  const recordIds = named.flatMap((item) => item.recordId ?? [])
  const keys = named.flatMap((item) => (item.recordId === undefined && item.externalKey ? [item.externalKey] : []))
  if (recordIds.length + keys.length > 0) await lockRecords(tx, caller, access, recordIds, keys)
}

async function existingKeys({ tx, caller, access }: RecordScope, items: readonly BatchItem[]): Promise<Set<string>> {
  const keys = items.flatMap((item) => (item.operation === 'upsert' && item.externalKey ? [item.externalKey] : []))
  return keys.length === 0 ? new Set() : new Set((await findByExternalKeys(tx, caller, access, keys)).keys())
}

async function runItem(scope: RecordScope, item: BatchItem): Promise<{ status: number; row: RecordRow }> {
  switch (item.operation) {
    case 'create': {
      const [row] = await createRecords(scope, [prepareCreation(scope, creationOf(item))])
      return { status: 201, row: row! }
    }
    case 'update':
      return { status: 200, row: await updateRecord(scope, await targetOf(scope, item), changesOf(item)) }
    case 'archive':
      return { status: 200, row: await setArchived(scope, await targetOf(scope, item), true, item.expectedRevision) }
    case 'upsert': {
      if (!item.externalKey)
        throw fail('validation_failed', { field: 'externalKey', message: 'An upsert needs a key.' })
      const { row, created } = await upsertRecord(scope, item.externalKey, { ...item, fields: item.fields ?? {} })
      return { status: created ? 201 : 200, row }
    }
  }
}

function creationOf(item: BatchItem): CreateBody {
  return { ...item, fields: item.fields ?? {} }
}

/** With a record id the external key is a value to set; without one it names the record. */
function changesOf(item: BatchItem): UpdateBody {
  const { externalKey, ...rest } = item
  return item.recordId === undefined ? rest : { ...rest, ...(externalKey !== undefined && { externalKey }) }
}

async function targetOf({ tx, caller, access }: RecordScope, item: BatchItem): Promise<string> {
  if (item.recordId !== undefined) return item.recordId
  if (!item.externalKey) {
    throw fail('validation_failed', { field: 'recordId', message: 'Name the record by recordId or externalKey.' })
  }
  const found = (await findByExternalKeys(tx, caller, access, [item.externalKey])).get(item.externalKey)
  if (!found?.visible) throw fail('record_not_found')
  return found.recordId
}

function refuseUnlessAllSucceeded(results: readonly BatchResult[]): void {
  const details = results.flatMap((result): ErrorDetail[] => {
    if (!('error' in result)) return []
    const { error, code, details } = result.error
    if (!details) return [{ field: `items[${result.index}]`, code, message: error }]
    return details.map((detail) => ({ ...detail, field: `items[${result.index}].${detail.field}` }))
  })
  if (details.length > 0) throw fail('batch_failed', { details: details.slice(0, 100) })
}
