import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { explainMissingSchema, openCommandServer } from './command-database.ts'
import { ConfigError, readConfig } from './config.ts'
import { insertAccount, removeTotp } from './features/platform/account/store.ts'
import { bindPerson, findAccounts, findPerson, setPassword } from './features/platform/account/terminal-store.ts'
import { Failure } from './kernel/errors.ts'
import { uuidv7 } from './kernel/ids.ts'
import type { Tx } from './kernel/transaction.ts'
import { assertValid } from './kernel/validation.ts'
import { DatabaseServerError } from './ports/database/port.ts'
import { recordAudit } from './shared/audit.ts'
import { type Database, openDatabase } from './shared/database/database.ts'
import { createPasswords, NewPassword } from './shared/identity/passwords.ts'
import { EmailAddress, Name } from './shared/identity/person-schemas.ts'
import { redactText } from './shared/redaction.ts'

/** `npm run account -- create|reset-password|list`, beside a running service or without one. See docs/platform.md. */
const usage = `Usage: npm run account -- <command>

  create --email <address> --name <name> [--account <name>]
                        an account of its own, with this person as its owner; called like the person unless said otherwise
  reset-password --email <address> [--remove-totp]
                        another password for somebody, whose sessions all end; --remove-totp turns the second factor off
  list                  accounts and who works in them

The password is asked for, without being shown. Instead: --password-stdin reads it from the standard input, --generate
makes one and prints it once. The database is that of the service: the same settings hold here.`

/** Told in a sentence, without a stack: the person who runs the command can mend it. */
class UsageError extends Error {
  override readonly name = 'UsageError'
}

const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)
const ask = (question: string) => void process.stderr.write(question)

type Values = ReturnType<typeof parsed>['values']
type Command = (database: Database, values: Values) => Promise<void>

const commands: Readonly<Record<string, Command>> = { create, 'reset-password': resetPassword, list }

async function main(): Promise<void> {
  const { values, positionals } = parsed()
  if (values.help) return say(usage)
  const [name = '', ...rest] = positionals
  const command = rest.length === 0 && Object.hasOwn(commands, name) ? commands[name] : undefined
  if (!command) throw new UsageError(usage)
  const server = await openCommandServer(readConfig(), (sentence) => ask(`${sentence}\n`))
  const database = openDatabase({ connection: server.connection, poolSize: 2 })
  try {
    await command(database, values)
  } finally {
    await database.close()
    await server.stop()
  }
}

function parsed() {
  const value = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const options = {
    email: value,
    name: value,
    account: value,
    'password-stdin': flag,
    generate: flag,
    'remove-totp': flag,
    help: { type: 'boolean', short: 'h' },
  } as const
  try {
    return parseArgs({ allowPositionals: true, options })
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${usage}`)
  }
}

async function create(database: Database, values: Values): Promise<void> {
  const email = emailOf(values)
  if (values.name === undefined) throw new UsageError(`--name is missing.\n\n${usage}`)
  const [displayName, name] = [values.name, values.account ?? values.name]
  assertValid(Name('', ''), displayName, '--name')
  assertValid(Name('', ''), name, '--account')
  await inOwner(database, (tx) => requireUnknown(tx, email))
  const { passwordHash, generated } = await choosePassword(values)
  const now = Date.now()
  const accountId = uuidv7(now)
  await inOwner(database, async (tx) => {
    await requireUnknown(tx, email)
    await insertAccount(tx, { accountId, name, builderId: uuidv7(now), email, displayName, passwordHash })
    await audit(tx, accountId, 'account.created', { type: 'account', id: accountId }, { accountId, name, email })
  })
  say(`Made the account ${name} (${accountId}); its owner ${email} may sign in.`)
  if (generated !== undefined) say(`The password is shown here and nowhere else: ${generated}`)
}

async function requireUnknown(tx: Tx, email: string): Promise<void> {
  if (await findPerson(tx, email)) {
    throw new UsageError(`Somebody here has the address ${email} already. reset-password gives them another password.`)
  }
}

async function resetPassword(database: Database, values: Values): Promise<void> {
  const email = emailOf(values)
  await inOwner(database, (tx) => requireKnown(tx, email))
  const { passwordHash, generated } = await choosePassword(values)
  await inOwner(database, async (tx) => {
    const person = await requireKnown(tx, email)
    await setPassword(tx, person, passwordHash, new Date().toISOString())
    if (values['remove-totp']) {
      await bindPerson(tx, person)
      await removeTotp(tx, person)
    }
    const target = { type: 'builder', id: person.builderId }
    for (const accountId of person.accountIds) {
      await audit(tx, accountId, 'builder.password_reset', target, null)
      if (values['remove-totp']) await audit(tx, accountId, 'builder.totp_disabled', target, { totpEnabled: false })
    }
  })
  say(`${email} has another password; every session has ended.`)
  if (values['remove-totp']) say('The second factor is off.')
  if (generated !== undefined) say(`The password is shown here and nowhere else: ${generated}`)
}

async function requireKnown(tx: Tx, email: string) {
  const person = await findPerson(tx, email)
  if (!person) throw new UsageError(`Nobody here has the address ${email}. \`list\` shows who is there.`)
  return person
}

async function list(database: Database): Promise<void> {
  const accounts = await inOwner(database, findAccounts)
  for (const { accountId, name, members } of accounts) {
    say(`${accountId}  ${name}`)
    for (const { email, role } of members) say(`  ${email} (${role})`)
  }
  if (accounts.length === 0) say('There is no account yet.')
}

function emailOf({ email }: Values): string {
  if (email === undefined) throw new UsageError(`--email is missing.\n\n${usage}`)
  assertValid(EmailAddress(''), email, '--email')
  return email
}

function inOwner<T>(database: Database, work: (tx: Tx) => Promise<T>): Promise<T> {
  return database.as('portico_owner', work)
}

function audit(tx: Tx, accountId: string, action: string, target: { type: string; id: string }, after: object | null) {
  const now = Date.now()
  const caller = { accountId, actor: { kind: 'system', id: 'terminal' } } as const
  return recordAudit({ tx, caller, correlationId: uuidv7(now), now }, { action, target, after })
}

/** Asked for before a transaction begins: people take their time. */
async function choosePassword(values: Values): Promise<{ passwordHash: string; generated: string | undefined }> {
  if (values.generate && values['password-stdin']) {
    throw new UsageError('--generate and --password-stdin exclude each other.')
  }
  const generated = values.generate ? randomBytes(18).toString('base64url') : undefined
  const password = generated ?? (values['password-stdin'] ? await readPassword() : await askTwice())
  assertValid(NewPassword, password, 'password')
  return { passwordHash: await createPasswords().hash(password), generated }
}

/** The first line: whoever pipes a file in means it without the end of the line. */
async function readPassword(): Promise<string> {
  return (await text(process.stdin)).split(/\r?\n/, 1)[0]!
}

async function askTwice(): Promise<string> {
  if (!process.stdin.isTTY) {
    throw new UsageError('There is no terminal to ask for the password: use --password-stdin or --generate.')
  }
  const password = await askHidden('Password: ')
  if (password !== (await askHidden('Again: '))) throw new UsageError('The two are not the same. Nothing was changed.')
  return password
}

/** Without an output readline has nothing to echo to; with `terminal` the terminal itself does not echo either. */
function askHidden(question: string): Promise<string> {
  ask(question)
  const lines = createInterface({ input: process.stdin, terminal: true })
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  lines.once('line', resolve)
  // Ctrl-C and Ctrl-D. After a line this comes too late to change anything.
  lines.once('close', () => reject(new UsageError('Nothing was changed.')))
  return promise.finally(() => {
    lines.close()
    ask('\n')
  })
}

function explain(error: unknown): string {
  const told = [UsageError, ConfigError, DatabaseServerError]
  if (error instanceof Error && told.some((one) => error instanceof one)) return error.message
  if (error instanceof Failure && error.details) {
    return error.details.map(({ field, message }) => `${field}: ${message}`).join('\n')
  }
  const unexpected = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return explainMissingSchema(error) ?? redactText(unexpected)
}

main().catch((error: unknown) => {
  process.stderr.write(`${explain(error)}\n`)
  process.exitCode = 1
})
