import { explainMissingSchema, openCommandServer } from './command-database.ts'
import { ConfigError, readConfig } from './config.ts'
import { Failure } from './kernel/errors.ts'
import { configuredKeys } from './key-management.ts'
import { DatabaseServerError } from './ports/database/port.ts'
import { KeyManagementError } from './ports/key-management/port.ts'
import { type DataKeyParts, readDataKeys, rewrapDataKeys, rotateDataKey, unwrapDataKey } from './shared/data-keys.ts'
import { openDatabase } from './shared/database/database.ts'

/** `npm run keys -- status|rotate-data-key|rewrap`, beside running services or without one. See docs/secrets.md. */
const usage = `Usage: npm run keys -- <command>

  status            which data keys there are, under which key they are wrapped, and what is to be done
  rotate-data-key   a new data key for everything that is sealed from now on; what was sealed before keeps opening
  rewrap            wrap all data keys under the current master key or Vault key, after it was replaced

The database and the keys are those of the service: the same settings hold here.`

const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

const commands: Readonly<Record<string, (parts: DataKeyParts) => Promise<void>>> = {
  status: tellStatus,
  async 'rotate-data-key'(parts) {
    await requireSecrets(parts)
    say(`Data key ${await rotateDataKey(parts)} seals from now on. Running processes follow within a minute.`)
  },
  async rewrap(parts) {
    await requireSecrets(parts)
    const count = await rewrapDataKeys(parts)
    const key = `the current key of ${parts.keyManagement[0].place}`
    if (count === 0) return say(`Every data key is wrapped under ${key} already.`)
    say(
      `Wrapped ${count} data ${count === 1 ? 'key' : 'keys'} under ${key}. The previous key is not needed any more, ` +
        'unless an old backup is to be read.',
    )
  },
}

async function main(): Promise<void> {
  const [name, ...rest] = process.argv.slice(2)
  if (name === '--help' || name === '-h') return say(usage)
  const command = rest.length === 0 && name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) throw new UsageError(usage)
  const config = readConfig()
  const server = await openCommandServer(config, say)
  const database = openDatabase({ connection: server.connection, poolSize: 2 })
  try {
    const { keyManagement } = await configuredKeys(config)
    await command({ database, keyManagement })
  } finally {
    await database.close()
    await server.stop()
  }
}

/** Told in a sentence, without a stack: the person who runs the command can mend it. */
class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The first data key comes with the first start, which also finds out whether the master key is the right one. */
async function requireSecrets({ database }: DataKeyParts): Promise<void> {
  if ((await readDataKeys(database)).length === 0) {
    throw new UsageError('There is no data key yet. Start the service once.')
  }
}

async function tellStatus(parts: DataKeyParts): Promise<void> {
  const [current] = parts.keyManagement
  const stored = await readDataKeys(parts.database)
  const currentId = await current.currentKeyId()
  say(`Key management: ${current.place}, current key ${currentId}`)
  for (const [i, row] of stored.entries()) {
    const state = await unwrapDataKey(parts, row).then(
      () => (row.keyId === currentId ? 'opens' : 'opens, to be re-wrapped'),
      (error: unknown) => `cannot be opened (${error instanceof KeyManagementError ? error.reason : 'error'})`,
    )
    const use = i === stored.length - 1 ? 'seals and ' : ''
    say(`  data key ${row.dataKeyId}: made ${row.createdAt}, under ${row.keyId}: ${use}${state}`)
  }
  if (stored.length === 0) say('  no data key yet: the first start makes it')
  const outdated = stored.some(({ keyId }) => keyId !== currentId)
  if (outdated) say('Run `npm run keys -- rewrap`, once every process knows the current key.')
}

function explain(error: unknown): string {
  const told = [UsageError, ConfigError, DatabaseServerError, KeyManagementError]
  if (error instanceof Failure) return `${error.message}${error.cause ? ` (${(error.cause as Error).message})` : ''}`
  if (error instanceof Error && told.some((one) => error instanceof one)) return error.message
  return explainMissingSchema(error) ?? (error instanceof Error ? (error.stack ?? error.message) : String(error))
}

main().catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`)
  process.exitCode = 1
})
