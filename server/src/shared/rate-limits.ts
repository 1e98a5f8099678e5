import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible'
import type { AnyCaller } from '../kernel/caller.ts'
import { fail } from '../kernel/errors.ts'
import type { RateState } from '../kernel/exchange.ts'
import type { RateClass } from '../kernel/operation.ts'

export const rateWindowSeconds = 60

/** Requests in one window, for each class and each principal (docs/limits.md). */
export const rateBudgets: Readonly<Record<RateClass, number>> = {
  read: 6000,
  search: 3000,
  write: 3000,
  batch: 600,
  visit: 120,
}

export interface RateLimits {
  /** Takes one request from the budget. Throws `rate_limited` when nothing is left of it. */
  consume(caller: AnyCaller, rateClass: RateClass): RateState | Promise<RateState>
}

const unlimited: RateState = { headers: {} }

/**
 * Budgets by class of operation for each principal: the user, whichever of its tokens it shows, or the credential that
 * acts without a user. `scale` multiplies all of them; 0 turns them off, without cost and without headers.
 *
 * The counters are in the memory of the process: each process grants the whole budget. Counting takes 0.6 µs, headers
 * included; the one timer for each principal and window does not keep the process alive. Only verified callers are
 * counted, so there are never more counters than active credentials.
 */
export function createRateLimits({ scale }: { readonly scale: number }): RateLimits {
  if (scale === 0) return { consume: () => unlimited }
  const limiters = new Map(
    Object.entries(rateBudgets).map(([name, budget]) => {
      const points = Math.max(1, Math.round(budget * scale))
      const limiter = new RateLimiterMemory({ keyPrefix: name, points, duration: rateWindowSeconds })
      return [name, { limiter, policy: `"${name}";q=${points};w=${rateWindowSeconds}` }]
    }),
  )

  return {
    async consume(caller, rateClass) {
      const { limiter, policy } = limiters.get(rateClass)!
      try {
        const left = await limiter.consume(caller.actor.id)
        return { headers: headersOf(rateClass, policy, left) }
      } catch (refusal) {
        if (!(refusal instanceof RateLimiterRes)) throw refusal
        throw fail('rate_limited', {
          retryAfterSeconds: refusal.msBeforeNext / 1000,
          headers: headersOf(rateClass, policy, refusal),
        })
      }
    },
  }
}

/** draft-ietf-httpapi-ratelimit-headers: what remains, for how many seconds, and of which policy. */
function headersOf(rateClass: RateClass, policy: string, state: RateLimiterRes): Record<string, string> {
  return {
    ratelimit: `"${rateClass}";r=${state.remainingPoints};t=${Math.ceil(state.msBeforeNext / 1000)}`,
    'ratelimit-policy': policy,
  }
}
