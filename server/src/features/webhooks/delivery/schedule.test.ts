import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isGivenUp, nextAttemptAt, retryAfterMs } from './schedule.ts'

const second = 1000
const hour = 3600 * second
const now = Date.parse('2026-11-20T08:00:00.000Z')
const wait = (attemptCount: number, random: number, retryAfter?: string) =>
  nextAttemptAt({ attemptCount, retryAfter, now, random }) - now

test('the steps are those of the contract', () => {
  const steps = [
    5 * second,
    300 * second,
    1800 * second,
    2 * hour,
    5 * hour,
    10 * hour,
    14 * hour,
    20 * hour,
    24 * hour,
  ]
  expect(steps.map((_, at) => wait(at + 1, 0.5))).toEqual(steps)
  expect(wait(30, 0.5)).toBe(24 * hour)
})

test('they are spread by a fifth either way', () => {
  expect([wait(1, 0), wait(1, 1)]).toEqual([4 * second, 6 * second])
})

describe('Retry-After', () => {
  test.each([
    ['10', 10 * second],
    ['0', 0],
    [' 7 ', 7 * second],
    ['Fri, 20 Nov 2026 08:01:00 GMT', 60 * second],
    ['Friday, 20-Nov-26 08:01:00 GMT', 60 * second],
    ['Fri, 20 Nov 2026 07:00:00 GMT', 0],
  ])('%j is understood', (value, expected) => {
    expect(retryAfterMs(value, now)).toBe(expected)
  })

  test.each(['', 'soon', '-5', '1.5', '10, 20', '9999999999999999', '2026-11-20', 'Fri'])('%j is not', (value) => {
    expect(retryAfterMs(value, now)).toBeUndefined()
    expect(wait(2, 0.5, value)).toBe(300 * second)
  })

  test('is honoured between once and twice the step', () => {
    expect(['1', '400', '604800'].map((asked) => wait(2, 0.5, asked))).toEqual([300, 400, 600].map((s) => s * second))
  })

  test('whatever it says, the wait is within the limits', () => {
    const asked = fc.oneof(
      fc.string(),
      fc.nat().map(String),
      fc.date({ noInvalidDate: true }).map((date) => date.toUTCString()),
    )
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        asked,
        (count, random, text) => {
          const step = wait(count, 0.5)
          const waited = wait(count, random, text)
          expect(waited).toBeGreaterThanOrEqual(step * 0.8)
          expect(waited).toBeLessThanOrEqual(step * 2)
        },
      ),
    )
  })
})

test.each([
  [10, 5 * 24, true],
  [9, 10 * 24, false],
  [1000, 5 * 24 - 1, false],
])('%i failures since %i hours: given up is %s', (consecutiveFailures, hours, expected) => {
  const firstFailureAt = new Date(now - hours * hour).toISOString()
  expect(isGivenUp({ consecutiveFailures, firstFailureAt }, now)).toBe(expected)
})

test('without a failure nobody is given up', () => {
  expect(isGivenUp({ consecutiveFailures: 0, firstFailureAt: null }, now)).toBe(false)
})
