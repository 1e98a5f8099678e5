import Type, { type TSchema } from 'typebox'
import { PageSize, pageSizeDefault, Strict, Total } from '../kernel/schemas.ts'

/**
 * Lists that are browsed by numbered pages within a window (specification 2.7 and 8): of native modules and of global
 * search. Past the window a page is empty and says that there is no more; the exact total, where it is asked for, is that
 * of everything the caller may see, and does not widen the window.
 */
export const browseLimit = 5000

/** The arguments of paging, beside the filters of a list. */
export const BrowsePaging = {
  pageNumber: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 10_000_000,
      default: 1,
      description: `The page, from 1. Pages past row ${browseLimit} are empty.`,
      examples: [1],
    }),
  ),
  pageSize: Type.Optional(PageSize()),
  includeTotal: Type.Optional(
    Type.Boolean({
      default: false,
      description: 'Count everything, too? The answer waits for the exact count; the rows stay the same.',
      examples: [false],
    }),
  ),
}

/** The shape of a page whose rows are `item`. */
export function BrowsePage<T extends TSchema>(item: T, title: string) {
  return Strict(
    {
      items: Type.Array(item, { description: 'The rows of the page.' }),
      pageNumber: Type.Integer({ minimum: 1, description: 'The page.', examples: [1] }),
      pageSize: Type.Integer({ minimum: 1, description: 'Rows on a page.', examples: [50] }),
      hasMore: Type.Boolean({
        description: 'Is there a page after this one, within the window?',
        examples: [false],
      }),
      browseLimit: Type.Integer({ description: 'How many rows can be browsed.', examples: [browseLimit] }),
      totalRecords: Type.Integer({
        ...Total,
        description:
          'With `includeTotal` the exact int64 count of what the caller may see; without it the rows known so far: those up to the end of this page.',
      }),
      totalIsExact: Type.Boolean({ description: 'Was everything counted?', examples: [false] }),
    },
    { title },
  )
}

export interface Paging {
  readonly pageNumber?: number
  readonly pageSize?: number
  readonly includeTotal?: boolean
}

/** The part of a page that lies within the window: `size` rows from `offset` on, none where it lies past it. */
export function windowOf({ pageNumber = 1, pageSize = pageSizeDefault }: Paging) {
  const offset = (pageNumber - 1) * pageSize
  return { pageNumber, pageSize, offset, size: Math.max(0, Math.min(pageSize, browseLimit - offset)) }
}

/**
 * The page as it leaves. `found` are the rows from `offset` on, as many as there are up to `pageSize`; `hasMore` whether
 * there are rows after them; `total` the exact count where it was asked for.
 */
export function browsePageOf<Row>(
  { pageNumber, pageSize, offset, size }: ReturnType<typeof windowOf>,
  found: { readonly rows: readonly Row[]; readonly hasMore: boolean },
  total: number | undefined,
) {
  const items = found.rows.slice(0, size)
  return {
    items,
    pageNumber,
    pageSize,
    hasMore: found.hasMore && offset + pageSize < browseLimit,
    browseLimit,
    // An empty page past the first knows of no row: how many there are before it was not looked at.
    totalRecords: total ?? (items.length === 0 ? 0 : offset + items.length),
    totalIsExact: total !== undefined,
  }
}
