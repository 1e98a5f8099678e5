import { type Failure, fail } from '../../kernel/errors.ts'

/** What PostgreSQL and its client say when something goes wrong, sorted by what the service does about it. */
interface DatabaseError extends Error {
  readonly code?: string
  readonly constraint?: string
  readonly table?: string
}

function codeOf(error: unknown): string {
  return (error as DatabaseError | undefined)?.code ?? ''
}

/** Another transaction stood in the way; the same work may succeed at once. */
export function isContention(error: unknown): boolean {
  const code = codeOf(error)
  return code === '40001' || code === '40P01' || code === '55P03'
}

const lostCodes = new Set([
  '57P01',
  '57P02',
  '57P03',
  '53300',
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOENT',
  'EPIPE',
  'ETIMEDOUT',
])

/** The server went away, or is not there yet. */
export function isLostConnection(error: unknown): boolean {
  const code = codeOf(error)
  if (lostCodes.has(code) || code.startsWith('08')) return true
  const message = error instanceof Error ? error.message : ''
  return isOutOfTime(error) || /^Connection terminated|not queryable|Client was closed/.test(message)
}

/** No connection within `connectionTimeoutMillis`: the pool is busy or the server mute. Waiting again helps nobody. */
export function isOutOfTime(error: unknown): boolean {
  const message = error instanceof Error ? error.message : ''
  return /timeout exceeded when trying to connect|due to connection timeout|^timeout expired$/.test(message)
}

/** `statement_timeout` or a cancel. */
export function isTimeout(error: unknown): boolean {
  return codeOf(error) === '57014'
}

/**
 * A statement that the schema has outrun: a change outdated its plan, its preparation failed with the transaction before
 * it on the same connection (26000; the client learns of it when the next is on its way already), or a release took away
 * a column or a table after the statement was composed. Tried again, it is found that the model changed.
 */
export function isStalePlan(error: unknown): boolean {
  const code = codeOf(error)
  return (
    code === '26000' ||
    code === '42703' ||
    code === '42P01' ||
    (code === '0A000' && (error as Error).message.includes('cached plan'))
  )
}

/**
 * A row that does not fit a page of 8 KB, although long values are kept elsewhere: each leaves 18 bytes behind, and so
 * does its folded copy, which makes some 215 long texts in one record.
 */
export function isRowTooLarge(error: unknown): boolean {
  return codeOf(error) === '54000' && (error as Error).message.startsWith('row is too big')
}

/** The name of the violated constraint, when a row broke one that the schema knows by name. */
export function brokenConstraint(error: unknown, kind: 'unique' | 'reference' | 'check'): string | undefined {
  const codes = { unique: '23505', reference: '23503', check: '23514' }
  return codeOf(error) === codes[kind] ? ((error as DatabaseError).constraint ?? '') : undefined
}

/** Any error of a transaction as the failure to answer with; undefined where it is not the database's. */
export function databaseFailure(error: unknown): Failure | undefined {
  if (isLostConnection(error)) return fail('database_unavailable', { cause: error })
  if (isTimeout(error)) return fail('query_too_expensive', { cause: error })
  if (isContention(error)) return fail('database_unavailable', { cause: error })
  return undefined
}
