import { mkdir } from 'node:fs/promises'
import { type Config, ConfigError, readConfig } from './config.ts'
import { createDemo } from './demo.ts'
import { startEmbedded } from './ports/database/embedded.ts'
import { connectExternal } from './ports/database/external.ts'
import { type DatabaseServer, DatabaseServerError } from './ports/database/port.ts'
import { createService, type Service } from './service.ts'
import { migrate } from './shared/database/migrate.ts'
import { deriveKeys, masterKeyOf } from './shared/keys.ts'
import { createLog, type Log } from './shared/log.ts'

/** The composition root: settings, database, service, and the life of the process around them. */
const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

async function main(): Promise<void> {
  const config = readConfig()
  const log = createLog({
    level: config.logLevel,
    pretty: config.mode === 'development' && process.stdout.isTTY === true,
  })
  const server = await startDatabase(config, log)
  try {
    await run(config, log, server)
  } catch (error) {
    await server.stop()
    throw error
  }
}

function startDatabase(config: Config, log: Log): Promise<DatabaseServer> {
  if (config.databaseUrl !== null) return connectExternal({ url: config.databaseUrl })
  return startEmbedded({ dataDir: config.dataDir, report: say, log })
}

async function run(config: Config, log: Log, server: DatabaseServer): Promise<void> {
  await migrate(server.connection, say)
  await mkdir(config.dataDir, { recursive: true, mode: 0o700 })
  const keys = deriveKeys(config.masterKey ?? (await masterKeyOf(config.dataDir)))
  const { baseUrl, dataDir } = config
  const service = createService({
    connection: server.connection,
    poolSize: config.databasePoolSize,
    keys,
    baseUrl,
    rateLimitScale: config.rateLimitScale,
    log,
  })
  stopOnSignals(config, log, service, server)
  try {
    if (config.demo) {
      const made = await createDemo({ service, pepper: keys.pepper, dataDir, baseUrl })
      if (made) say(`Made a demo: ${made}`)
    }
    const { host, port } = await service.http.listen({ host: config.host, port: config.port })
    say(welcome(config, host, port))
  } catch (error) {
    await service.close()
    throw error
  }
}

function welcome({ baseUrl, dataDir, demo }: Config, host: string, port: number): string {
  return [
    '',
    `  Portico listens on ${host}:${port}`,
    '',
    `  API           ${baseUrl}/v1/apps/{saasAppId}`,
    `  Reference     ${baseUrl}/docs`,
    `  Health        ${baseUrl}/healthz  ${baseUrl}/readyz  ${baseUrl}/metrics`,
    ...(demo ? [`  Credentials   ${dataDir}/demo.json`] : []),
    '',
    '  Ctrl-C stops it in order.',
    '',
  ].join('\n')
}

/** The first signal stops in order: no new work, finish what runs, write what waits, stop the database. A second one ends. */
function stopOnSignals(config: Config, log: Log, service: Service, server: DatabaseServer): void {
  let stopping = false
  const stop = async (signal: string) => {
    if (stopping) process.exit(1)
    stopping = true
    log.info({ signal }, 'Stopping.')
    try {
      const { connectionsCut } = await service.http.drain(config.shutdownSeconds * 1000)
      if (connectionsCut > 0) log.warn({ connectionsCut }, 'Some requests did not finish in time and were cut.')
      await service.close()
      await server.stop()
      process.exit(0)
    } catch (error) {
      log.error({ err: error }, 'The service did not stop in order.')
      process.exit(1)
    }
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(signal))
}

/** What the person who starts the service can mend is said in a sentence; everything else with its stack. */
function explain(error: unknown): string {
  if (error instanceof ConfigError || error instanceof DatabaseServerError) return error.message
  const { code, port } = error as { code?: string; port?: number }
  if (code === 'EADDRINUSE') return `Port ${port} is in use. Choose another with PORTICO_PORT.`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

main().catch((error: unknown) => {
  process.stderr.write(`\nPortico could not start.\n${explain(error)}\n`)
  process.exit(1)
})
