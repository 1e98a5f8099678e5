import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { ConnectionSettings } from '../../ports/database/port.ts'

export interface Session {
  /** What `pg_stat_activity` calls it. */
  readonly name: string
  /** Does with each new connection what it is for. */
  open(client: pg.Client): Promise<void>
  /** The connection was lost; there will be another one. */
  lost?(): void
}

const againAfterMs = 500
const connectWithinMs = 5000

/**
 * Keeps a connection for what only lasts as long as one: a lock of the session, LISTEN. Opens another one when it is lost.
 * Returns what ends it, which waits for a connection that is just being made.
 */
export function keepSession(connection: ConnectionSettings, { name, open, lost }: Session): () => Promise<void> {
  const stop = new AbortController()
  let opened: pg.Client | undefined

  async function keep(): Promise<void> {
    while (!stop.signal.aborted) {
      const client = new pg.Client({
        ...connection,
        application_name: name,
        keepAlive: true,
        connectionTimeoutMillis: connectWithinMs,
      })
      const ended = new Promise<void>((resolve) => void client.on('error', () => {}).once('end', resolve))
      try {
        await client.connect()
        await open(client)
        opened = client
        if (stop.signal.aborted) return await client.end()
        await ended
        lost?.()
      } catch {
        // Away, or not there yet: whoever has work to do says so. One that never connected does not end either.
        void client.end().catch(() => {})
      }
      opened = undefined
      await pause(againAfterMs, undefined, { signal: stop.signal }).catch(() => {})
    }
  }

  const kept = keep()
  return async () => {
    stop.abort()
    await opened?.end().catch(() => {})
    await kept
  }
}
