import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import type { ConnectionSettings } from '../../src/ports/database/port.ts'
import { type Database, type DatabaseOptions, openDatabase } from '../../src/shared/database/database.ts'
import { asAdministrator, dropDatabase } from './administrator.ts'

export interface TestDatabase {
  readonly database: Database
  /** Connects as the role that owns everything; tests use it to look from outside. */
  readonly connection: ConnectionSettings
  /** Connects as the service does. */
  readonly login: ConnectionSettings
  drop(): Promise<void>
}

/**
 * A fresh, migrated database of its own for a test file: `beforeAll(async () => { test = await createTestDatabase() })`,
 * `afterAll(() => test.drop())`.
 */
export async function createTestDatabase(options: Partial<DatabaseOptions> = {}): Promise<TestDatabase> {
  const { connection: server, login: serverLogin, template } = inject('databaseServer')
  const name = `${template}_${randomBytes(4).toString('hex')}`
  await asAdministrator(server, async (admin) => {
    await admin.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`)
    // What may be done with a database as a whole is not part of a clone.
    await admin.query(`GRANT CREATE ON DATABASE ${name} TO portico_owner`)
  })
  const connection = { ...server, database: name }
  const login = { ...serverLogin, database: name }
  const database = openDatabase({ connection: login, poolSize: 10, ...options })
  return {
    database,
    connection,
    login,
    async drop() {
      await database.close()
      await dropDatabase(server, name)
    },
  }
}

/** What `DATABASE_URL` says for a service in a process of its own. */
export function urlOf({ host, port, user, password, database }: ConnectionSettings): string {
  const login = `${encodeURIComponent(user)}:${encodeURIComponent(password)}`
  if (!host.startsWith('/')) return `postgres://${login}@${host}:${port}/${database}`
  return `postgres://${login}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`
}
