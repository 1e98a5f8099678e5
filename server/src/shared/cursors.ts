import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { fail } from '../kernel/errors.ts'
import { pageSizeDefault } from '../kernel/schemas.ts'

/**
 * Opaque, signed cursors, bound to the query that they continue: changed ones are refused, and so are those of another
 * query, which would otherwise return pages that belong to nothing.
 */
export interface Cursors {
  /** `query` is everything that a page depends on but the position. */
  seal(query: unknown, position: readonly (string | null)[]): string
  /** Throws `cursor_invalid` or `cursor_mismatch`. */
  open(query: unknown, cursor: string): (string | null)[]
}

/**
 * One page of a list, with the cursor of the next. `list` is everything that the page depends on but its position; `find`
 * gets where the page before ended, as `positionOf` says of its last row, and null for the first page.
 */
export async function pageOf<Row>(
  cursors: Cursors,
  list: readonly unknown[],
  query: { readonly cursor?: string; readonly pageSize?: number },
  find: (after: readonly string[] | null, limit: number) => Promise<readonly Row[]>,
  positionOf: (row: Row) => readonly string[],
): Promise<{ readonly rows: readonly Row[]; readonly nextCursor: string | null }> {
  const { cursor, pageSize = pageSizeDefault } = query
  const after = cursor === undefined ? null : (cursors.open(list, cursor) as string[])
  const found = await find(after, pageSize + 1)
  const rows = found.slice(0, pageSize)
  const last = found.length > pageSize ? rows.at(-1) : undefined
  return { rows, nextCursor: last ? cursors.seal(list, positionOf(last)) : null }
}

const macBytes = 16
const digestBytes = 12

export function createCursors(key: Uint8Array): Cursors {
  // One call: an object that is updated and digested costs ten times as much.
  const digestOf = (query: unknown) => hash('sha256', JSON.stringify(query), 'buffer').subarray(0, digestBytes)
  const macOf = (content: Buffer) => createHmac('sha256', key).update(content).digest().subarray(0, macBytes)
  return {
    seal(query, position) {
      const content = Buffer.concat([digestOf(query), Buffer.from(JSON.stringify(position))])
      return Buffer.concat([macOf(content), content]).toString('base64url')
    },
    open(query, cursor) {
      const bytes = Buffer.from(cursor, 'base64url')
      const content = bytes.subarray(macBytes)
      const sealed = bytes.length > macBytes + digestBytes && bytes.toString('base64url') === cursor
      if (!sealed || !timingSafeEqual(macOf(content), bytes.subarray(0, macBytes))) {
        throw fail('cursor_invalid', { field: 'cursor' })
      }
      if (!content.subarray(0, digestBytes).equals(digestOf(query))) throw fail('cursor_mismatch', { field: 'cursor' })
      return JSON.parse(content.subarray(digestBytes).toString()) as (string | null)[]
    },
  }
}
