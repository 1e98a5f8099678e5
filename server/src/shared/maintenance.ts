import sql from 'sql-template-tag'
import type { Clock } from '../kernel/clock.ts'
import type { Database } from './database/database.ts'
import { removeOldSignInCounters } from './identity/sign-in-throttle.ts'
import type { Log } from './log.ts'
import { removeOldMail } from './mail/store.ts'
import { refreshStatistics } from './statistics.ts'
import { takeUsageSnapshots } from './usage/snapshots.ts'

const partitionsEveryMs = 60 * 60 * 1000
const oldMailEveryMs = 60 * 60 * 1000
const signInsEveryMs = 60 * 60 * 1000
const oldMergesEveryMs = 60 * 60 * 1000
const statisticsEveryMs = 2_000
/** How often it is asked which applications are due; each is measured once an hour. */
const usageEveryMs = 5 * 60 * 1000

interface Parts {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
}

/** What the service does for the database at intervals. Returns what stops it. */
export function startMaintenance(parts: Parts): () => void {
  const timers = [
    setInterval(() => void maintainPartitions(parts), partitionsEveryMs),
    setInterval(() => void maintainMail(parts), oldMailEveryMs),
    setInterval(() => void maintainSignIns(parts), signInsEveryMs),
    setInterval(() => void maintainMerges(parts), oldMergesEveryMs),
    setInterval(
      onePerTurn(() => maintainStatistics(parts)),
      statisticsEveryMs,
    ),
    setInterval(
      onePerTurn(() => maintainUsage(parts)),
      usageEveryMs,
    ),
  ]
  for (const timer of timers) timer.unref()
  return () => {
    for (const timer of timers) clearInterval(timer)
  }
}

/** Makes the partitions of the days ahead and drops those past their keep. */
async function maintainPartitions({ database, clock, log }: Parts): Promise<void> {
  try {
    const today = new Date(clock.now()).toISOString().slice(0, 10)
    await database.as('portico_owner', (tx) => tx.rows(sql`SELECT portico.maintain_partitions(${today}::date)`))
  } catch (error) {
    // There are partitions for three days ahead: the next hour will do.
    log.warn({ err: error }, 'Partitions could not be maintained; trying again in an hour.')
  }
}

async function maintainMail({ database, clock, log }: Parts): Promise<void> {
  try {
    await removeOldMail(database, clock.now())
  } catch (error) {
    log.warn({ err: error }, 'Mail of more than 30 days could not be removed; trying again in an hour.')
  }
}

/** Removes what nobody can sign in with any more, and failures that were forgotten. */
async function maintainSignIns({ database, clock, log }: Parts): Promise<void> {
  try {
    const now = clock.now()
    await removeOldSignInCounters(database, now)
    await database.as('portico_owner', (tx) =>
      tx.rows(sql`SELECT portico.remove_spent_sign_ins(${new Date(now).toISOString()})`),
    )
  } catch (error) {
    log.warn({ err: error }, 'Old sessions and links could not be removed; trying again in an hour.')
  }
}

async function maintainMerges({ database, clock, log }: Parts): Promise<void> {
  try {
    await removeOldMerges(database, clock.now())
  } catch (error) {
    log.warn({ err: error }, 'Notes of contacts that were merged could not be removed; trying again in an hour.')
  }
}

/** Removes what is known of merges of contacts that can no longer be taken back: those of more than 30 days ago. */
export async function removeOldMerges(database: Database, now: number): Promise<void> {
  const at = new Date(now).toISOString()
  await database.as('portico_owner', (tx) =>
    tx.rows(sql`DELETE FROM portico.contact_merge WHERE merged_at < ${at}::timestamptz - interval '30 days'`),
  )
}

async function maintainStatistics({ database, log }: Parts): Promise<void> {
  try {
    await refreshStatistics(database)
  } catch (error) {
    // The next turn is near, and a database that is away is reported by those who need it.
    log.debug({ err: error }, 'Statistics could not be refreshed.')
  }
}

async function maintainUsage({ database, clock, log }: Parts): Promise<void> {
  try {
    await takeUsageSnapshots({ database, clock })
  } catch (error) {
    log.warn({ err: error }, 'Usage could not be measured; trying again in five minutes.')
  }
}

/** Leaves a turn out while the last one is still at work. */
function onePerTurn(work: () => Promise<void>): () => void {
  let working = false
  return () => {
    if (working) return
    working = true
    void work().finally(() => {
      working = false
    })
  }
}
