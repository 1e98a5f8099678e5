import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { readBillingCatalog } from './billing-catalog-file.ts'
import { type Config, ConfigError, idleSettings, readConfig, unknownSettings } from './config.ts'
import { createDemo } from './demo.ts'
import { readableAuthorities } from './extra-authorities.ts'
import { inviteFirstAccount } from './first-account.ts'
import { systemClock } from './kernel/clock.ts'
import { configuredKeys } from './key-management.ts'
import { startEmbedded } from './ports/database/embedded.ts'
import { connectExternal } from './ports/database/external.ts'
import { type ConnectionSettings, type DatabaseServer, DatabaseServerError } from './ports/database/port.ts'
import { KeyManagementError } from './ports/key-management/port.ts'
import { createFileOutbox } from './ports/mail/file-outbox.ts'
import type { Mailer } from './ports/mail/port.ts'
import { createSmtpMailer } from './ports/mail/smtp.ts'
import { createService, type Service } from './service.ts'
import { readDataKeys } from './shared/data-keys.ts'
import { type Database, openDatabase } from './shared/database/database.ts'
import { migrate } from './shared/database/migrate.ts'
import { serviceLogin } from './shared/database/service-login.ts'
import { type Keys, openKeys } from './shared/keys.ts'
import { createLog, type Log } from './shared/log.ts'
import { createMailQueue } from './shared/mail/queue.ts'
import { createMailWorker, type MailWorker } from './shared/mail/worker.ts'
import type { Secrets } from './shared/secrets.ts'

/** The composition root: settings, database, service, and the life of the process around them. */
let stopping = false
const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

async function main(): Promise<void> {
  const config = readConfig()
  const log = createLog({
    level: config.logLevel,
    pretty: config.mode === 'development' && process.stdout.isTTY === true,
  })
  // From the first moment: a start that is interrupted must not leave a database running.
  const told = toldToStop(log)
  for (const warning of [...unknownSettings(), ...idleSettings(config)]) log.warn(warning)
  await requireFreePort(config)
  const server = await startDatabase(config, log)
  try {
    if (!told.aborted) await run(config, log, server, told)
  } finally {
    await server.stop()
  }
}

/** Asked before anything is made: somebody who only has to choose another port should not have to wait for that. */
async function requireFreePort({ host, port }: Config): Promise<void> {
  const probe = createServer().listen({ host, port })
  await once(probe, 'listening')
  probe.close()
  await once(probe, 'close')
}

function startDatabase(config: Config, log: Log): Promise<DatabaseServer> {
  if (config.databaseUrl !== null) return connectExternal({ url: config.databaseUrl })
  return startEmbedded({ dataDir: config.dataDir, report: say, log })
}

/** From the migration to the last answer. What was begun is brought to its end before a signal is heeded. */
async function run(config: Config, log: Log, server: DatabaseServer, told: AbortSignal): Promise<void> {
  await migrate(server.connection, say)
  await mkdir(config.dataDir, { recursive: true, mode: 0o700 })
  // Connections of their own: a request that holds one of the service's may have to wait for a data key.
  const connection = await serviceLogin(server.connection)
  const keyDatabase = openDatabase({ connection, poolSize: 2 })
  try {
    await runUnlocked(config, log, connection, told, await unlock(config, log, keyDatabase))
  } finally {
    await keyDatabase.close()
  }
}

interface Unlocked {
  readonly keys: Keys
  readonly secrets: Secrets
}

/** Refuses a master key that is not the one of this database, before anything is answered. */
async function unlock(config: Config, log: Log, database: Database): Promise<Unlocked> {
  const configured = await configuredKeys(config)
  const unlocked = await openKeys({ ...configured, database, clock: systemClock, log })
  const [current] = configured.keyManagement
  const currentId = await current.currentKeyId()
  if ((await readDataKeys(database)).some(({ keyId }) => keyId !== currentId)) {
    log.info('The master key was replaced. When every process has the new one: npm run keys -- rewrap.')
  }
  return unlocked
}

async function runUnlocked(
  config: Config,
  log: Log,
  connection: ConnectionSettings,
  told: AbortSignal,
  { keys, secrets }: Unlocked,
): Promise<void> {
  const { baseUrl, dataDir } = config
  const mailer = openMailer(config, log)
  let worker: MailWorker | undefined
  const service = createService({
    connection,
    mail: createMailQueue({ secrets, wake: () => worker?.wake() }),
    poolSize: config.databasePoolSize,
    keys,
    secrets,
    baseUrl,
    trustedProxies: config.trustedProxies,
    dnsServers: config.dnsServers,
    acceptReservedDomains: config.mode === 'development',
    allowPrivateDestinations: config.allowPrivateDestinations,
    extraCaFile: await readableAuthorities(config.extraCaFile),
    rateLimitScale: config.rateLimitScale,
    metricsToken: config.metricsToken,
    billingCatalog: await readBillingCatalog(config.billingCatalogFile),
    answers: config.role !== 'worker',
    dispatches: config.role !== 'api',
    runsOperations: config.role !== 'api',
    log,
  })
  worker = createMailWorker({ database: service.database, mailer, secrets, clock: systemClock, log })
  try {
    worker.wake()
    if (config.demo && !told.aborted) {
      const made = await createDemo({ service, pepper: keys.pepper, dataDir, baseUrl })
      if (made) say(`Made a demo: ${made}`)
    }
    await sayHowToBegin(config, service.database, keys)
    service.nativeUpgrade.start()
    if (config.role !== 'api') {
      service.deliveries.start()
      service.dispatcher.start()
    }
    if (!told.aborted) await serve(config, log, service, told)
  } finally {
    await worker.close()
    await mailer.close()
    await service.close()
  }
}

async function sayHowToBegin({ dataDir, baseUrl }: Config, database: Database, { pepper }: Keys): Promise<void> {
  const sentence = await inviteFirstAccount({ database, pepper, clock: systemClock, dataDir, baseUrl })
  if (sentence !== undefined) say(sentence)
}

/** Without a mail server messages become files: that is how development reads them, and how nobody else gets any. */
function openMailer({ smtpUrl, mailFrom: from, dataDir, mode }: Config, log: Log): Mailer {
  if (smtpUrl !== null) return createSmtpMailer({ url: smtpUrl, from })
  if (mode === 'production') log.warn('PORTICO_SMTP_URL is not set: mail is written into files, and nobody gets any.')
  return createFileOutbox({ folder: join(dataDir, 'mail'), from })
}

/** Answers until the process is told to stop, then takes no new work and finishes what runs. */
async function serve(config: Config, log: Log, service: Service, told: AbortSignal): Promise<void> {
  const { host, port } = await service.http.listen({ host: config.host, port: config.port })
  say(welcome(config, host, port))
  if (!told.aborted) await once(told, 'abort')
  const { connectionsCut } = await service.http.drain(config.shutdownSeconds * 1000)
  if (connectionsCut > 0) log.warn({ connectionsCut }, 'Some requests did not finish in time and were cut.')
}

function welcome({ baseUrl, dataDir, demo, metricsToken }: Config, host: string, port: number): string {
  return [
    '',
    `  Portico listens on ${host}:${port}`,
    '',
    `  API           ${baseUrl}/v1/apps/{saasAppId}`,
    `  Reference     ${baseUrl}/docs`,
    `  Health        ${baseUrl}/healthz  ${baseUrl}/readyz${metricsToken === null ? '' : `  ${baseUrl}/metrics`}`,
    ...(demo ? [`  Credentials   ${dataDir}/demo.json`] : []),
    '',
    '  Ctrl-C stops it in order.',
    '',
  ].join('\n')
}

/** Aborted by the first signal, which stops the process in order. A second one ends it at once. */
function toldToStop(log: Log): AbortSignal {
  const told = new AbortController()
  const stop = (signal: string) => {
    if (told.signal.aborted) process.exit(1)
    stopping = true
    log.info({ signal }, 'Stopping.')
    told.abort()
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, stop)
  return told.signal
}

/** What the person who starts the service can mend is said in a sentence; everything else with its stack. */
function explain(error: unknown): string {
  const told = [ConfigError, DatabaseServerError, KeyManagementError]
  if (error instanceof Error && told.some((one) => error instanceof one)) return error.message
  const { code, port } = error as { code?: string; port?: number }
  if (code === 'EADDRINUSE') return `Port ${port} is in use. Choose another with PORTICO_PORT.`
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    process.stderr.write(`\nPortico could not ${stopping ? 'stop in order' : 'start'}.\n${explain(error)}\n`)
    process.exit(1)
  },
)
