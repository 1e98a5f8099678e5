import { setTimeout as pause } from 'node:timers/promises'
import sql, { raw } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import { isContention } from '../database/failures.ts'

/** Tables were in use for too long to be changed. */
export class TablesInUse extends Error {
  override readonly name = 'TablesInUse'
}

/**
 * Waiting for the lock of a table stops everybody who comes later, so the wait is short; and it is repeated, because a
 * long reader must not stop a release for ever. Between two attempts nothing is locked. The wait grows, because it has to
 * outlast what is running when it begins: where every second request takes 700 ms, attempts of 200 ms never succeeded.
 */
const lockWaitMs = { first: 100, growth: 20, most: 400 }
const lockAttempts = 25

/** Locks tables that change, and tables that others begin to refer to, until the transaction ends. */
export async function lockTables(tx: Tx, changed: readonly string[], referred: readonly string[]): Promise<void> {
  const lock = (names: readonly string[], mode: string) =>
    names.length === 0 ? Promise.resolve() : tx.rows(sql`${raw(`LOCK TABLE ${names.join(', ')} IN ${mode} MODE`)}`)
  for (let attempt = 1; ; attempt++) {
    const wait = Math.min(lockWaitMs.most, lockWaitMs.first + lockWaitMs.growth * (attempt - 1))
    await tx.rows(sql`SELECT set_config('lock_timeout', ${`${wait}ms`}, true)`)
    try {
      await tx.savepoint(async () => {
        await lock(changed, 'ACCESS EXCLUSIVE')
        await lock(referred, 'SHARE ROW EXCLUSIVE')
      })
      return
    } catch (error) {
      if (!isContention(error)) throw error
      if (attempt === lockAttempts) throw new TablesInUse('Tables were in use.', { cause: error })
      await pause(50 + Math.random() * 200)
    }
  }
}
