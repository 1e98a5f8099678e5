import { pageSizeDefault } from '../../kernel/schemas.ts'
import type { Cursors } from '../../shared/cursors.ts'

/**
 * One page of a list, with the cursor of the next. `list` is everything that the page depends on but its position; `find`
 * gets where the page before ended, as `positionOf` says of its last row.
 */
export async function pageOf<Row>(
  cursors: Cursors,
  list: readonly unknown[],
  query: { readonly cursor?: string; readonly pageSize?: number },
  find: (after: readonly string[] | null, limit: number) => Promise<Row[]>,
  positionOf: (row: Row) => readonly string[],
): Promise<{ readonly rows: readonly Row[]; readonly nextCursor: string | null }> {
  const { cursor, pageSize = pageSizeDefault } = query
  const after = cursor === undefined ? null : (cursors.open(list, cursor) as string[])
  const found = await find(after, pageSize + 1)
  const rows = found.slice(0, pageSize)
  const last = found.length > pageSize ? rows.at(-1) : undefined
  return { rows, nextCursor: last ? cursors.seal(list, positionOf(last)) : null }
}
