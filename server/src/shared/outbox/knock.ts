import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import sql from 'sql-template-tag'
import type { ConnectionSettings } from '../../ports/database/port.ts'
import type { Database } from '../database/database.ts'

/**
 * How a process that only answers requests wakes those that dispatch events: a NOTIFY behind its commits, in a transaction of
 * its own, because one inside a write would make all commits of the database wait for each other. It is a hint: who misses it
 * (a pooler in between, a lost connection) finds the events when it looks by itself, a second later.
 */
const channel = 'portico_outbox'

/** In a rush one knock tells of all commits of so long. */
const restMs = 10

/** Knocks soon, and at once after a rest. Returns at once. */
export function createKnock(database: Pick<Database, 'as'>): () => void {
  let resting = false
  let again = false
  async function knock(): Promise<void> {
    resting = true
    do {
      again = false
      await database.as('portico_app', (tx) => tx.rows(sql`SELECT pg_notify(${channel}, '')`)).catch(() => {})
      await pause(restMs)
    } while (again)
    resting = false
  }
  return () => {
    again = true
    if (!resting) void knock()
  }
}

const againAfterMs = 500

/** Listens on a connection of its own, and on a new one when that is lost. Returns what ends it. */
export function listenForKnocks(connection: ConnectionSettings, onKnock: () => void): () => Promise<void> {
  const stop = new AbortController()
  let client: pg.Client | undefined

  async function listen(): Promise<void> {
    while (!stop.signal.aborted) {
      const one = new pg.Client({ ...connection, application_name: 'portico listener', keepAlive: true })
      const lost = new Promise<void>((resolve) => void one.on('error', () => {}).once('end', resolve))
      one.on('notification', onKnock)
      try {
        client = one
        await one.connect()
        await one.query(`LISTEN ${channel}`)
        // Whoever knocked in between was not heard.
        onKnock()
        await lost
      } catch {
        await one.end().catch(() => {})
      }
      await pause(againAfterMs, undefined, { signal: stop.signal }).catch(() => {})
    }
  }

  const listening = listen()
  return async () => {
    stop.abort()
    await client?.end().catch(() => {})
    await listening
  }
}
