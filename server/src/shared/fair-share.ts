import { fail } from '../kernel/errors.ts'

/**
 * Keeps one tenant from taking every connection to the database: each has a share of those at hand, and what it asks beyond
 * that waits for its own, not for others'. A short queue, then 429: who is refused knows to slow down.
 */
export interface FairShare {
  run<T>(tenantId: string, work: () => Promise<T>): Promise<T>
}

interface Lane {
  running: number
  readonly waiting: (() => void)[]
}

const waitingMax = 200

/** `share` is how many of a tenant's transactions run at once. */
export function createFairShare(share: number): FairShare {
  const lanes = new Map<string, Lane>()

  function enter(tenantId: string): Promise<void> | undefined {
    const lane = lanes.get(tenantId) ?? { running: 0, waiting: [] }
    lanes.set(tenantId, lane)
    if (lane.running < share) {
      lane.running++
      return undefined
    }
    if (lane.waiting.length >= waitingMax) throw fail('rate_limited', { retryAfterSeconds: 1 })
    return new Promise((resolve) => lane.waiting.push(resolve))
  }

  function leave(tenantId: string): void {
    const lane = lanes.get(tenantId)!
    const next = lane.waiting.shift()
    // The place is handed on, so that nobody who comes now can slip in before those who wait.
    if (next) next()
    else if (--lane.running === 0) lanes.delete(tenantId)
  }

  return {
    async run(tenantId, work) {
      const turn = enter(tenantId)
      if (turn) await turn
      try {
        return await work()
      } finally {
        leave(tenantId)
      }
    },
  }
}
