/** The supervisor's own short sessions on the server that it runs. */
import pg from 'pg'
import { codeOf } from '../failure.ts'
import type { ConnectionSettings } from '../port.ts'

/** A server that does not answer within this is not well. */
const timeoutMs = 2_000

/** One statement in a session of its own. */
export async function ask(connection: ConnectionSettings, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({
    ...connection,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs * 10,
    application_name: 'portico supervisor',
  })
  // A connection that breaks between two calls is reported by the call; without a listener it would end the process.
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(sql)).rows
  } finally {
    await client.end().catch(() => {})
  }
}

/** Opens the service's database, which the first start has to make, and returns `server_version_num`. */
export async function openDatabase(connection: ConnectionSettings): Promise<number> {
  const sql = `SELECT current_setting('server_version_num')::int AS version`
  try {
    return Number((await ask(connection, sql))[0]?.['version'])
  } catch (error) {
    if (codeOf(error) !== '3D000') throw error // invalid_catalog_name: there is no such database yet
  }
  await ask({ ...connection, database: 'postgres' }, `CREATE DATABASE ${connection.database}`)
  return Number((await ask(connection, sql))[0]?.['version'])
}
