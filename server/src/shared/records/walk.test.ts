import { expect, test } from 'vitest'
import { reachFor } from './walk.ts'

/** How far a search goes through the records of a page's order before the index of words is sooner there. */

test.each([
  // Of a thousand, so many hold the words: a page of 50 and the one behind it. Twice what the sample promises is listed.
  [51, 200, 510],
  [51, 20, 5100],
  [51, 10, 10_200],
  [51, 9, undefined],
  [51, 0, undefined],
  // Page 100: far, but not for words that most hold.
  [5001, 900, 11_114],
  [5001, 100, 100_020],
  [5001, 90, undefined],
])('%d wanted, %d of a thousand held', (wanted, held, reach) => {
  expect(reachFor(wanted, 1000, held, false)).toBe(reach)
})

test('words that are in no index are worth a longer way', () => {
  expect(reachFor(51, 1000, 1, true)).toBe(102_000)
  expect(reachFor(51, 1000, 0, true)).toBeUndefined()
  expect(reachFor(201, 1000, 1, true)).toBeUndefined()
})
