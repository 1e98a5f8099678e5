import sql from 'sql-template-tag'
import type { Clock } from '../kernel/clock.ts'
import type { Database } from './database/database.ts'
import type { Log } from './log.ts'

const everyMs = 60 * 60 * 1000

/** Makes the partitions of the days ahead and drops those past their keep, every hour. Returns what stops it. */
export function startMaintenance(parts: {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}): () => void {
  const { database, clock, log } = parts
  const timer = setInterval(async () => {
    try {
      const today = new Date(clock.now()).toISOString().slice(0, 10)
      await database.as('portico_owner', (tx) => tx.rows(sql`SELECT portico.maintain_partitions(${today}::date)`))
    } catch (error) {
      // There are partitions for three days ahead: the next hour will do.
      log.warn({ err: error }, 'Partitions could not be maintained; trying again in an hour.')
    }
  }, everyMs).unref()
  return () => clearInterval(timer)
}
