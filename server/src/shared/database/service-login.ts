import { createHmac } from 'node:crypto'
import pg from 'pg'
import type { ConnectionSettings } from '../../ports/database/port.ts'

/**
 * The login that the service works with, where the one that it was given is a superuser: a role that may become the three
 * roles of the service and nothing else. Whoever finds a way to run a statement of theirs could leave the role of the
 * transaction (`set_config('role', 'none')`), and must not find the operating system behind it.
 *
 * A user of somebody's own server that is no superuser is taken as it is.
 *
 * @returns the settings to open pools with; valid as long as the password that was given is.
 */
export async function serviceLogin(connection: ConnectionSettings): Promise<ConnectionSettings> {
  const client = new pg.Client({ ...connection, application_name: 'portico login' })
  await client.connect()
  try {
    const { rows } = await client.query('SELECT rolsuper AS super FROM pg_roles WHERE rolname = current_user')
    if (!rows[0].super) return connection
    // The same in every process, and nothing that would have to be kept.
    const password = createHmac('sha256', connection.password).update('portico service login').digest('base64url')
    await client.query('BEGIN')
    // Processes and test files that start together take turns.
    await client.query('SELECT pg_advisory_xact_lock(7032026, 2)')
    await client.query(`
      DO $$
      BEGIN
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${loginRole}') THEN
          CREATE ROLE ${loginRole} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOINHERIT;
        END IF;
      END $$`)
    await client.query(`ALTER ROLE ${loginRole} PASSWORD '${password}'`)
    await client.query(`GRANT portico_owner, portico_app, portico_system TO ${loginRole}`)
    await client.query('COMMIT')
    return { ...connection, user: loginRole, password }
  } finally {
    await client.end()
  }
}

const loginRole = 'portico_service'
