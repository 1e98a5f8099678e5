import { parseArgs } from 'node:util'
import { explainMissingSchema, openCommandServer } from './command-database.ts'
import { ConfigError, readConfig } from './config.ts'
import { findAccountsWithEntitlements, grantEntitlement } from './features/billing/store.ts'
import { isUuid, uuidv7 } from './kernel/ids.ts'
import { DatabaseServerError } from './ports/database/port.ts'
import { recordAudit } from './shared/audit.ts'
import { type Database, openDatabase } from './shared/database/database.ts'
import { redactText } from './shared/redaction.ts'

/** `npm run entitlements -- list|grant`, beside a running service or without one. See docs/platform.md. */
const usage = `Usage: npm run entitlements -- <command>

  list                                       accounts and what each is entitled to
  grant --account <accountId> --listing <listingKey> --name <name> [--expires <moment>]
                                             entitle an account to a listing of the marketplace, or change its name and
                                             expiry; a moment that is over ends the entitlement

A moment is ISO 8601, for instance 2027-01-01T00:00:00Z. The database is that of the service: the same settings hold here.`

/** Told in a sentence, without a stack: the person who runs the command can mend it. */
class UsageError extends Error {
  override readonly name = 'UsageError'
}

const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

interface Grant {
  readonly accountId: string
  readonly listingKey: string
  readonly listingName: string
  readonly expiresAt: string | null
}

async function main(): Promise<void> {
  const order = readArguments()
  if (order === 'help') return say(usage)
  const server = await openCommandServer(readConfig(), say)
  const database = openDatabase({ connection: server.connection, poolSize: 2 })
  try {
    if (order === 'list') await list(database)
    else await grant(database, order)
  } finally {
    await database.close()
    await server.stop()
  }
}

function readArguments(): 'help' | 'list' | Grant {
  const { values, positionals } = parsed()
  if (values.help) return 'help'
  const { account, listing, name } = values
  if (positionals.join() === 'list') return 'list'
  if (positionals.join() !== 'grant' || !account || !listing || !name) throw new UsageError(usage)
  if (!isUuid(account)) throw new UsageError('--account takes the id of an account; `list` shows them.')
  if (!/^[a-z][a-z0-9-]{0,49}$/.test(listing)) throw new UsageError('--listing takes a key like invoice-reader.')
  const expires = values.expires === undefined ? undefined : Date.parse(values.expires)
  if (Number.isNaN(expires)) throw new UsageError('--expires takes a moment like 2027-01-01T00:00:00Z.')
  const expiresAt = expires === undefined ? null : new Date(expires).toISOString()
  return { accountId: account, listingKey: listing, listingName: name, expiresAt }
}

function parsed() {
  const text = { type: 'string' } as const
  const options = {
    account: text,
    listing: text,
    name: text,
    expires: text,
    help: { type: 'boolean', short: 'h' },
  } as const
  try {
    return parseArgs({ allowPositionals: true, options })
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${usage}`)
  }
}

async function list(database: Database): Promise<void> {
  const accounts = await database.as('portico_owner', findAccountsWithEntitlements)
  for (const { accountId, name, entitlements } of accounts) {
    say(`${accountId}  ${name}`)
    for (const { listingKey, listingName, expiresAt } of entitlements) {
      say(`  ${listingKey} (${listingName})${expiresAt === null ? '' : `, until ${expiresAt}`}`)
    }
  }
  if (accounts.length === 0) say('There is no account yet.')
}

async function grant(database: Database, order: Grant): Promise<void> {
  const now = Date.now()
  const { accountId, listingKey, expiresAt } = order
  const known = await database.as('portico_owner', async (tx) => {
    const accounts = await findAccountsWithEntitlements(tx)
    const account = accounts.find((one) => one.accountId === accountId.toLowerCase())
    if (!account) return false
    const before = account.entitlements.find((one) => one.listingKey === listingKey) ?? null
    const grantedAt = new Date(now).toISOString()
    const after = await grantEntitlement(tx, { ...order, entitlementId: uuidv7(now), grantedAt })
    const caller = { accountId, actor: { kind: 'system', id: 'terminal' } } as const
    await recordAudit(
      { tx, caller, correlationId: uuidv7(now), now },
      { action: 'entitlement.granted', target: { type: 'entitlement', id: after.entitlementId }, before, after },
    )
    return true
  })
  if (!known) throw new UsageError(`There is no account ${accountId}. \`list\` shows those that there are.`)
  say(`${accountId} is entitled to ${listingKey}${expiresAt === null ? '' : ` until ${expiresAt}`}.`)
}

function explain(error: unknown): string {
  const told = [UsageError, ConfigError, DatabaseServerError]
  if (error instanceof Error && told.some((one) => error instanceof one)) return error.message
  const unexpected = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return explainMissingSchema(error) ?? redactText(unexpected)
}

main().catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`)
  process.exitCode = 1
})
