import type { Config } from './config.ts'
import { connectToRunning } from './ports/database/embedded/running.ts'
import { startEmbedded } from './ports/database/embedded.ts'
import { connectExternal } from './ports/database/external.ts'
import type { DatabaseServer, ReportProgress } from './ports/database/port.ts'
import { migrate } from './shared/database/migrate.ts'

/** The server of a command in the terminal: that of the running service, else one that runs only for this command. */
export async function openCommandServer(config: Config, report: ReportProgress): Promise<DatabaseServer> {
  if (config.databaseUrl !== null) return connectExternal({ url: config.databaseUrl })
  const running = await connectToRunning(config)
  if (running) return running
  const server = await startEmbedded({ dataDir: config.dataDir, report })
  try {
    // Nobody else uses it. A server that is shared is migrated by the service, when all of its processes are ready to.
    await migrate(server.connection, report)
    return server
  } catch (error) {
    await server.stop()
    throw error
  }
}

/** undefined_table, or the role of the service is unknown: nothing of Portico is in this database. */
export function explainMissingSchema(error: unknown): string | undefined {
  const { code } = error as { code?: string }
  return code === '42P01' || code === '22023'
    ? 'The database holds no Portico yet. Start the service on it once.'
    : undefined
}
