/**
 * The way to a PostgreSQL that another process supervises: for commands that run beside the service. They take no lock
 * and start nothing; what they do ends with their connection.
 */
import { join } from 'node:path'
import { codeOf, reasonOf } from '../failure.ts'
import { type ConnectionSettings, type DatabaseServer, DatabaseServerError } from '../port.ts'
import { readMajor, readPassword, superuser } from './cluster.ts'
import { homeOf } from './home.ts'
import { findServer } from './leftover.ts'
import { adoptPostmaster, untilReady } from './postmaster.ts'
import { readPostmasterFile } from './postmaster-file.ts'
import { ask } from './session.ts'

/** The name of the service's database in its cluster. */
export const databaseName = 'portico'

const readyWithinMs = 60_000

/**
 * Connects to the PostgreSQL of a data directory, if one runs there; `undefined` when none does. A data directory that
 * holds no database is refused, so that a command with a wrong path does not end as a new, empty one.
 */
export async function connectToRunning({ dataDir }: { readonly dataDir: string }): Promise<DatabaseServer | undefined> {
  const clusterDir = join(await homeOf(dataDir), 'postgres')
  if ((await readMajor(clusterDir)) === undefined) {
    throw new DatabaseServerError(
      `There is no database in ${dataDir}. Start the service there once, or name its folder with PORTICO_DATA_DIR.`,
    )
  }
  const pid = await findServer(clusterDir)
  if (pid === undefined) return undefined
  const connection = await settingsOf(dataDir, clusterDir, pid)
  try {
    const [row] = await ask(connection, `SELECT current_setting('server_version_num')::int AS version`)
    return { connection, versionNumber: Number(row?.['version']), stop: async () => {} }
  } catch (cause) {
    const reason = codeOf(cause) === '3D000' ? 'its database is being made' : reasonOf(cause)
    throw new DatabaseServerError(
      `PostgreSQL (process ${pid}) runs on ${clusterDir}, but does not serve us: ${reason}.`,
      {
        cause,
      },
    )
  }
}

/** What the server itself says of where it listens: its folder of sockets may be one that nobody else could guess. */
async function settingsOf(dataDir: string, clusterDir: string, pid: number): Promise<ConnectionSettings> {
  const ready = await untilReady(adoptPostmaster(pid), clusterDir, { withinMs: readyWithinMs })
  const file = await readPostmasterFile(clusterDir)
  if (!ready || typeof file !== 'object' || !file.endpoint) {
    throw new DatabaseServerError(`PostgreSQL (process ${pid}) on ${clusterDir} is starting or stopping. Try again.`)
  }
  const passwordFile = join(dataDir, 'postgres.password')
  const password = await readPassword(passwordFile)
  if (password === undefined) throw new DatabaseServerError(`${passwordFile} is missing: restart the service first.`)
  return { ...file.endpoint, user: superuser, password, database: databaseName, ssl: false }
}
