import { randomUUID } from 'node:crypto'
import sql from 'sql-template-tag'
import type { ConnectionSettings } from '../../ports/database/port.ts'
import { keepSession } from './session.ts'

/**
 * Shows other processes that this one lives: an advisory lock of a connection of its own, which PostgreSQL lets go the moment
 * the process dies. What it had can then be taken over in a second, instead of when a lease runs out.
 */
export interface Presence {
  /** Never used by another process. */
  readonly id: string
  /** Resolves when others can see it, and after a loss of the connection when they can again. Nobody can before the first call. */
  shown(): Promise<void>
  close(): Promise<void>
}

export function keepPresence(connection: ConnectionSettings): Presence {
  const id = randomUUID()
  let shown = Promise.withResolvers<void>()
  let end: (() => Promise<void>) | undefined
  return {
    id,
    shown() {
      end ??= keepSession(connection, {
        name: 'portico presence',
        async open(client) {
          await client.query(`SELECT pg_advisory_lock_shared(7032026, ${presenceKey('$1')})`, [id])
          shown.resolve()
        },
        lost() {
          shown = Promise.withResolvers()
        },
      })
      return shown.promise
    },
    async close() {
      await end?.()
    },
  }
}

/** A table of the processes that live, with one column `key`, which `presenceKey` of an id is compared with. */
export const presentKeys = sql`(SELECT objid::bigint AS key FROM pg_locks WHERE locktype = 'advisory' AND classid = 7032026
  AND objsubid = 2 AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`

/** The key of the process whose id the SQL expression gives: positive, and none that a lock of the service has. */
export function presenceKey(id: string): string {
  return `1000 + (hashtext(${id}::text) & 1073741823)`
}
