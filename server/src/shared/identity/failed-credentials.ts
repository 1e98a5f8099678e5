import { RateLimiterMemory } from 'rate-limiter-flexible'
import { fail } from '../../kernel/errors.ts'
import { networkOf } from './visitors.ts'

/**
 * A budget of credentials that do not hold, for each network. Whether a well-formed token exists takes a look into the
 * database to say, so invented ones must not be free. What is remembered as good never comes here, and who has shown a
 * good credential may have it looked up again whatever others on the same network send.
 */
export interface FailedCredentials {
  /**
   * Runs `look`, which asks the database, unless too much that came from this address failed in this minute; then 429
   * `rate_limited` with Retry-After. What `look` throws for a credential that does not hold is counted.
   */
  guard<T>(
    token: { readonly keyId: string; readonly secret: string },
    address: string,
    look: () => Promise<T>,
  ): Promise<T>
}

/** Generous, because an office behind one address may hold many sessions that have expired. */
export const failedCredentialsMax = 300
const windowSeconds = 60
/** Bounded like what the authenticator remembers; about 2 MB. */
const goodMax = 10_000
const failures = new Set<unknown>(['credential_invalid', 'credential_expired'])

/** `scale` multiplies the budget; 0 turns it off. In the memory of the process, as all budgets of requests. */
export function createFailedCredentials({ scale }: { readonly scale: number }): FailedCredentials {
  if (scale === 0) return { guard: (_token, _address, look) => look() }
  const points = Math.max(1, Math.round(failedCredentialsMax * scale))
  const limiter = new RateLimiterMemory({ keyPrefix: 'failed credentials', points, duration: windowSeconds })
  const good = new Map<string, string>()

  function remember({ keyId, secret }: { readonly keyId: string; readonly secret: string }): void {
    if (good.get(keyId) === secret) return
    if (good.size >= goodMax) good.delete(good.keys().next().value!)
    good.set(keyId, secret)
  }

  return {
    async guard(token, address, look) {
      const network = networkOf(address)
      const spent = good.get(token.keyId) === token.secret ? null : await limiter.get(network)
      if (spent && spent.consumedPoints >= points) {
        throw fail('rate_limited', { retryAfterSeconds: spent.msBeforeNext / 1000 })
      }
      try {
        const found = await look()
        remember(token)
        return found
      } catch (error) {
        if (failures.has((error as { code?: unknown }).code)) {
          if (good.get(token.keyId) === token.secret) good.delete(token.keyId)
          await limiter.penalty(network)
        }
        throw error
      }
    },
  }
}
