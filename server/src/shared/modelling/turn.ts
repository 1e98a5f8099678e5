import { setTimeout as pause } from 'node:timers/promises'
import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import type { Database } from '../database/database.ts'

/** Between two questions whether it is one's turn. */
const askAgainMs = 50
/** Indexes of large tables take minutes; whoever comes meanwhile waits, but not for ever. */
const patienceMs = 10 * 60 * 1000

/**
 * Runs `work` while nobody else, in any process, changes the model of this application or builds its indexes; returns
 * undefined where that did not come to pass in ten minutes. Two who build one index would drop each other's.
 *
 * CREATE INDEX CONCURRENTLY waits for every older snapshot. So the turn is held by a transaction that is idle, which has
 * none, and those who wait ask again and again: a statement that waits for a lock has a snapshot, too.
 */
export async function inTurn<T>(
  database: Database,
  appId: string,
  work: () => Promise<T>,
): Promise<{ readonly value: T } | undefined> {
  for (const until = Date.now() + patienceMs; Date.now() < until; await pause(askAgainMs)) {
    const done = await database.as('portico_owner', async (tx) => {
      if (!(await tryTurn(tx, appId))) return undefined
      // SET, and last: a SELECT would leave its portal behind, and with it a snapshot.
      await tx.rows(sql`SET LOCAL idle_in_transaction_session_timeout = 0`)
      return { value: await work() }
    })
    if (done) return done
  }
  return undefined
}

/**
 * The same for a transaction that is open already and changes the model itself: the turn is its own until it ends. Returns
 * false where somebody else has it for longer than `patienceMs`.
 */
export async function takeTurn(tx: Tx, appId: string, patienceMs: number): Promise<boolean> {
  for (const until = Date.now() + patienceMs; ; await pause(askAgainMs)) {
    if (await tryTurn(tx, appId)) return true
    if (Date.now() > until) return false
    // Last before the wait, so that no snapshot is held meanwhile; see above.
    await tx.rows(sql`SET LOCAL idle_in_transaction_session_timeout = 0`)
  }
}

async function tryTurn(tx: Tx, appId: string): Promise<boolean> {
  const [turn] = await tx.rows<{ taken: boolean }>(
    sql`SELECT pg_try_advisory_xact_lock(hashtextextended(${appId}, 0)) AS taken`,
  )
  return turn?.taken === true
}
