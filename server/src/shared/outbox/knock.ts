import { setTimeout as pause } from 'node:timers/promises'
import sql from 'sql-template-tag'
import type { ConnectionSettings } from '../../ports/database/port.ts'
import type { Database } from '../database/database.ts'
import { keepSession } from '../database/session.ts'

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

/** Listens on a connection of its own, and on a new one when that is lost. Returns what ends it. */
export function listenForKnocks(connection: ConnectionSettings, onKnock: () => void): () => Promise<void> {
  return keepSession(connection, {
    name: 'portico listener',
    async open(client) {
      client.on('notification', onKnock)
      await client.query(`LISTEN ${channel}`)
      // Whoever knocked in between was not heard.
      onKnock()
    },
  })
}
