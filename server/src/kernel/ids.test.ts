import { expect, test } from 'vitest'
import { isUuid, uuidv7 } from './ids.ts'

test('ids of one process sort in the order in which they were made, 2,000 in a millisecond too', () => {
  const now = Date.parse('2026-09-14T09:30:00.000Z')
  const ids = Array.from({ length: 4000 }, (_, index) => uuidv7(now + Math.floor(index / 2000)))
  expect(ids).toEqual([...ids].sort())
  expect(new Set(ids).size).toBe(4000)
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(isUuid(ids[0])).toBe(true)
  expect(Number.parseInt(ids[0]!.replace('-', '').slice(0, 12), 16)).toBe(now)
})
