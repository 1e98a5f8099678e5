import { randomBytes } from 'node:crypto'
import type { TestProject } from 'vitest/node'
import { connectExternal } from '../../src/ports/database/external.ts'
import type { ConnectionSettings } from '../../src/ports/database/port.ts'
import { migrate } from '../../src/shared/database/migrate.ts'
import { serviceLogin } from '../../src/shared/database/service-login.ts'
import { asAdministrator, dropDatabase } from './administrator.ts'
import { startTestServer } from './server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The server of this run, and the migrated database that every test file clones. */
    databaseServer: {
      readonly connection: ConnectionSettings
      /** What the service opens its pools with. */
      readonly login: ConnectionSettings
      readonly template: string
    }
  }
}

/**
 * Once for each run: a server (or the one that DATABASE_URL names) and one migrated template database. A file clones the
 * template in about 50 ms; migrating takes ten times that.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const url = process.env['DATABASE_URL']
  const server = url ? await connectExternal({ url }) : await startTestServer()
  const { connection } = server
  const template = `portico_test_${randomBytes(4).toString('hex')}`
  await asAdministrator(connection, (admin) =>
    admin.query(`CREATE DATABASE ${template} TEMPLATE template0 ENCODING UTF8`),
  )
  await migrate({ ...connection, database: template })
  const login = await serviceLogin(connection)
  project.provide('databaseServer', { connection, login, template })
  return async () => {
    await dropDatabase(connection, template)
    await server.stop()
  }
}
