import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../shared/database/database.ts'
import type { Log } from '../../../shared/log.ts'
import { endDeliveries, findAbsentWorkers, findBacklog, takeBackLostLeases } from './backlog.ts'

/** Looks over the whole queue: for what is due, for what dead workers left, and for what waits in vain. */
export interface Lookout {
  /** Whose deliveries are due; and whether there was more to end than one look ends. */
  look(): Promise<{ readonly due: readonly string[]; readonly isUnfinished: boolean }>
}

/** Of one subscription, in one transaction. */
const endedMax = 1000
/** Longer than a connection that was lost takes to come back. */
const deadAfterMs = 1500

export function createLookout(parts: {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}): Lookout {
  const { database, clock, log } = parts
  const absentSince = new Map<string, number>()

  async function findDead(now: number): Promise<string[]> {
    const absent = await findAbsentWorkers(database)
    for (const id of absentSince.keys()) if (!absent.includes(id)) absentSince.delete(id)
    for (const id of absent) if (!absentSince.has(id)) absentSince.set(id, now)
    return absent.filter((id) => now - absentSince.get(id)! >= deadAfterMs)
  }

  return {
    async look() {
      const now = clock.now()
      const givenUp = await takeBackLostLeases(database, { now, deadIds: await findDead(now) })
      for (const deliveryId of givenUp)
        log.error({ deliveryId }, 'A delivery was given up: it lost every worker it had.')
      const { due, ended } = await findBacklog(database, now)
      let isUnfinished = false
      for (const subscriptionId of ended) {
        const count = await endDeliveries(database, { subscriptionId, now, limit: endedMax })
        if (count === endedMax) isUnfinished = true
      }
      return { due, isUnfinished }
    },
  }
}
