import type { FetchCategory } from '../../../shared/safe-fetch/categories.ts'

const secondMs = 1000
const minuteMs = 60 * secondMs
const hourMs = 60 * minuteMs

/** From one attempt to the next (contract 6): ten attempts within about three days. */
const stepsMs = [
  5 * secondMs,
  5 * minuteMs,
  30 * minuteMs,
  2 * hourMs,
  5 * hourMs,
  10 * hourMs,
  14 * hourMs,
  20 * hourMs,
  24 * hourMs,
]

/** So that receivers that failed together are not asked again together. */
const jitter = 0.2

/**
 * When to try again, in milliseconds since the epoch, after `attemptCount` attempts (from 1). What the receiver asks for with
 * Retry-After is honoured between once and twice the step: it may slow us down, and neither hurry us nor put us off for a
 * week. `random` is in [0, 1).
 */
export function nextAttemptAt(attempt: {
  readonly attemptCount: number
  readonly retryAfter: string | undefined
  readonly now: number
  readonly random: number
}): number {
  const { attemptCount, retryAfter, now, random } = attempt
  const stepMs = stepsMs[Math.min(attemptCount, stepsMs.length) - 1]!
  const askedMs = retryAfter === undefined ? undefined : retryAfterMs(retryAfter, now)
  const waitMs =
    askedMs === undefined
      ? stepMs * (1 - jitter + 2 * jitter * random)
      : Math.min(Math.max(askedMs, stepMs), 2 * stepMs)
  return now + Math.round(waitMs)
}

/** Retry-After (RFC 9110 10.2.3) in milliseconds from now; undefined where it is neither seconds nor a date. */
export function retryAfterMs(value: string, now: number): number | undefined {
  const text = value.trim()
  if (/^\d{1,15}$/.test(text)) return Number(text) * secondMs
  // Date.parse takes many things for a date; those of HTTP begin with the name of a day.
  const at = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

/** Will the same receiver say something else another time? One that is gone for good will not. */
export function mayRecover(category: FetchCategory): boolean {
  return category !== 'gone'
}

const failingForMs = 5 * 24 * hourMs
const failingAttemptsMin = 10

/** Is it time to leave a receiver alone: five days and ten attempts without a success? */
export function isGivenUp(
  { consecutiveFailures, firstFailureAt }: Readonly<{ consecutiveFailures: number; firstFailureAt: string | null }>,
  now: number,
): boolean {
  if (firstFailureAt === null || consecutiveFailures < failingAttemptsMin) return false
  return Date.parse(firstFailureAt) <= now - failingForMs
}
