import pg from 'pg'
import type { ConnectionSettings } from '../../src/ports/database/port.ts'

/** Runs `work` on a plain connection of the role that may do everything. */
export async function asAdministrator<T>(
  connection: ConnectionSettings,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ ...connection, application_name: 'portico test' })
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

export async function dropDatabase(connection: ConnectionSettings, name: string): Promise<void> {
  await asAdministrator(connection, (admin) => admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))
}
