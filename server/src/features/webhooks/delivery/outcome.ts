import { attemptsMax } from '../../../shared/outbox/dispatch-store.ts'
import type { SafeFetchOutcome } from '../../../shared/safe-fetch/safe-fetch.ts'
import { type ClaimedDelivery, leasesMax, type Settlement } from './delivery.ts'
import { evidenceOf } from './evidence.ts'
import { mayRecover, nextAttemptAt } from './schedule.ts'

/** What follows from the answer of a receiver. `startedAt` and `now` in milliseconds since the epoch, `random` in [0, 1). */
export function settlementOf(
  claimed: ClaimedDelivery,
  answer: Pick<SafeFetchOutcome, 'category' | 'status' | 'headers' | 'body' | 'bodyTruncated' | 'durationMs'>,
  { startedAt, now, random }: { readonly startedAt: number; readonly now: number; readonly random: number },
): Settlement {
  const { category, status, headers, durationMs } = answer
  const attemptCount = claimed.attemptCount + 1
  const attempt = {
    attemptNumber: attemptCount,
    trigger: claimed.trigger,
    startedAt: new Date(startedAt).toISOString(),
    durationMs,
    httpStatus: status,
    category,
    ...evidenceOf(answer),
  }
  const common = { claimed, attempt, at: now }
  if (category === 'success') return { ...common, outcome: 'delivered', category, dueAt: null }
  if (attemptCount >= claimed.maxAttempts || !mayRecover(category)) {
    return { ...common, outcome: 'failed', category, dueAt: null }
  }
  // Who asked for a recovery begins a series of its own.
  const inSeries = attemptCount - Math.max(0, claimed.maxAttempts - attemptsMax)
  const dueAt = nextAttemptAt({ attemptCount: inSeries, retryAfter: headers['retry-after'], now, random })
  return { ...common, outcome: 'again', category: null, dueAt }
}

const faultPauseMs = 5000
const faultDoublingsMax = 10

/**
 * A delivery that could not be made ready, through a fault of our own: no attempt, and later again, each time after twice as long,
 * up to an hour and a half. Given up when that has gone on for more than a day.
 */
export function unready(claimed: ClaimedDelivery, at: number): Settlement {
  const common = { claimed, attempt: null, at }
  if (claimed.leaseNumber >= leasesMax) return { ...common, outcome: 'failed', category: 'worker_lost', dueAt: null }
  const dueAt = at + faultPauseMs * 2 ** Math.min(claimed.leaseNumber - 1, faultDoublingsMax)
  return { ...common, outcome: 'again', category: null, dueAt }
}

/** A delivery that is put back as if it had never been taken. */
export function released(
  claimed: ClaimedDelivery,
  { at, dueAt }: { readonly at: number; readonly dueAt: number },
): Settlement {
  return { claimed, outcome: 'released', category: null, attempt: null, dueAt, at }
}

/** A delivery that its subscription may not get any more, whatever the receiver would say. */
export function withheld(claimed: ClaimedDelivery, at: number): Settlement {
  return { claimed, outcome: 'failed', category: 'subscription_disabled', attempt: null, dueAt: null, at }
}
