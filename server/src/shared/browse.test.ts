import { expect, test } from 'vitest'
import { browseLimit, browsePageOf, windowOf } from './browse.ts'

const rows = (count: number) => Array.from({ length: count }, (_, n) => n)

test.each([
  { pageNumber: 1, pageSize: 50, found: 50, hasMore: true, items: 50, more: true, known: 50 },
  { pageNumber: 2, pageSize: 50, found: 7, hasMore: false, items: 7, more: false, known: 57 },
  { pageNumber: 1, pageSize: 50, found: 0, hasMore: false, items: 0, more: false, known: 0 },
  // The last page within the window, though there are more rows.
  { pageNumber: 25, pageSize: 200, found: 200, hasMore: true, items: 200, more: false, known: 5000 },
  { pageNumber: 24, pageSize: 200, found: 200, hasMore: true, items: 200, more: true, known: 4800 },
  // A page that the edge of the window goes through.
  { pageNumber: 34, pageSize: 150, found: 150, hasMore: true, items: 50, more: false, known: 5000 },
  { pageNumber: 26, pageSize: 200, found: 0, hasMore: true, items: 0, more: false, known: 0 },
])('page $pageNumber of $pageSize rows holds $items of $found', ({ found, hasMore, items, more, known, ...paging }) => {
  const page = browsePageOf(windowOf(paging), { rows: rows(found), hasMore }, undefined)
  expect(page).toMatchObject({ ...paging, hasMore: more, browseLimit, totalRecords: known, totalIsExact: false })
  expect(page.items).toEqual(rows(items))
  const counted = browsePageOf(windowOf(paging), { rows: rows(found), hasMore }, 12_345)
  expect(counted).toEqual({ ...page, totalRecords: 12_345, totalIsExact: true })
})
