import { createHash } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startEmbedded } from '../../src/ports/database/embedded.ts'
import { type DatabaseServer, DatabaseServerError } from '../../src/ports/database/port.ts'
import { asAdministrator, dropDatabase } from './administrator.ts'

/** Runs of the tests at the same time, and servers in one run. */
const slotsMax = 16

/**
 * A PostgreSQL for a run of the tests, on the first data directory of this checkout that nobody else uses. The directory
 * stays for the next run: making one takes 1.2 s, starting on one 0.1 s, and the server of a run that was killed is
 * taken over instead of running for ever. What a killed run left in it is dropped.
 */
export async function startTestServer(): Promise<DatabaseServer> {
  const server = await startOnFreeSlot()
  await asAdministrator(server.connection, async (admin) => {
    // Nothing here must survive a power cut. Everything else is as in the service.
    await admin.query('ALTER ROLE CURRENT_USER SET synchronous_commit = off')
    const { rows } = await admin.query<{ name: string }>(
      `SELECT datname AS name FROM pg_database WHERE datname LIKE 'portico\\_test\\_%'`,
    )
    for (const { name } of rows) await dropDatabase(server.connection, name)
  })
  return server
}

async function startOnFreeSlot(): Promise<DatabaseServer> {
  const checkout = createHash('sha256')
    .update(import.meta.url)
    .digest('hex')
    .slice(0, 8)
  const owner = process.getuid?.() ?? 0
  for (let slot = 1; ; slot++) {
    try {
      const dataDir = join(tmpdir(), `portico-test-${checkout}-${owner}-${slot}`)
      return await startEmbedded({ dataDir, report: () => {} })
    } catch (error) {
      if (!(error instanceof DatabaseServerError) || slot === slotsMax) throw error
    }
  }
}
