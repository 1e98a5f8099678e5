import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import sql from 'sql-template-tag'
import type { ConnectionSettings } from '../../ports/database/port.ts'

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

const againAfterMs = 500

export function keepPresence(connection: ConnectionSettings): Presence {
  const id = randomUUID()
  const stop = new AbortController()
  let client: pg.Client | undefined
  let shown = Promise.withResolvers<void>()

  async function keep(): Promise<void> {
    while (!stop.signal.aborted) {
      const one = new pg.Client({ ...connection, application_name: 'portico presence', keepAlive: true })
      const lost = new Promise<void>((resolve) => void one.on('error', () => {}).once('end', resolve))
      try {
        client = one
        await one.connect()
        await one.query(`SELECT pg_advisory_lock_shared(7032026, ${presenceKey('$1')})`, [id])
        shown.resolve()
        await lost
        shown = Promise.withResolvers()
      } catch {
        // Away, or not there yet: whoever has work to do says so.
        await one.end().catch(() => {})
      }
      await pause(againAfterMs, undefined, { signal: stop.signal }).catch(() => {})
    }
  }

  let kept: Promise<void> | undefined
  return {
    id,
    shown() {
      kept ??= keep()
      return shown.promise
    },
    async close() {
      stop.abort()
      await client?.end().catch(() => {})
      await kept
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
