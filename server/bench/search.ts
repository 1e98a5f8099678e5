import { existsSync } from 'node:fs'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { insertCredential } from '../src/features/credentials/store.ts'
import { insertUser } from '../src/features/tenancy/store.ts'
import { uuidv7 } from '../src/kernel/ids.ts'
import { allScopes } from '../src/kernel/scopes.ts'
import { startEmbedded } from '../src/ports/database/embedded.ts'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import { openDatabase } from '../src/shared/database/database.ts'
import { migrate } from '../src/shared/database/migrate.ts'
import { hashSecret, makeToken } from '../src/shared/identity/tokens.ts'
import { makeKeys } from './keys.ts'
import { startService } from './processes.ts'
import { settleDatabase } from './records.ts'
import { aligned, keepResults } from './report.ts'
import { loadContacts } from './search-load.ts'
import { askAll, type Callers, type SearchFigures } from './search-measures.ts'
import { requireSameAsNaive } from './search-model.ts'
import { takeSamples } from './search-questions.ts'
import { makeTenant, type Tenant } from './tenant.ts'

/**
 * `npm run bench:search`: lists, counts and searches of contacts over HTTP, one question after the other, by four callers who
 * see different parts of a million; held against a naive model first.
 */
const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    records: { type: 'string', default: '1000000' },
    neighbours: { type: 'string', default: '50' },
    neighbourRecords: { type: 'string', default: '100000' },
    /** Of each kind and caller. */
    questions: { type: 'string', default: '40' },
    /** Only what has this in its name. */
    only: { type: 'string', default: '' },
    /** A folder for the database, which stays, and is used again when it is there: loading takes some minutes. */
    data: { type: 'string' },
    /** Measures without asking the naive model before. */
    unchecked: { type: 'boolean', default: false },
  },
})
const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

interface Loaded {
  readonly tenant: Tenant
  readonly tokens: Callers
  readonly participantId: string
}

async function main(): Promise<void> {
  const dataDir =
    options.data === undefined ? join(tmpdir(), `portico-bench-search-${process.pid}`) : resolve(options.data)
  const server = await startEmbedded({ dataDir, report: () => {} })
  try {
    await migrate(server.connection)
    const { tenant, tokens, participantId } = await loaded(server.connection, dataDir)
    await using service = await startService(server.connection, dataDir, [])
    const base = `http://127.0.0.1:${service.port}/v1/apps/${tenant.appId}`
    const samples = await takeSamples(server.connection, tenant)
    const asking = {
      base,
      tenant,
      tokens,
      participantId,
      samples,
      only: options.only,
      questions: Number(options.questions),
    }
    await warm(server.connection, tenant)
    if (!options.unchecked) say(await requireSameAsNaive(server.connection, asking))
    const figures = await askAll(asking, say)
    say(`\n${table(figures)}\n`)
    if (options.only === '')
      say(`Kept in ${await keepResults('-search', { options: { ...options, data: undefined }, figures })}`)
  } finally {
    await server.stop()
    if (options.data === undefined) await rm(dataDir, { recursive: true, force: true })
  }
}

async function loaded(connection: ConnectionSettings, dataDir: string): Promise<Loaded> {
  const file = join(dataDir, 'bench.json')
  if (existsSync(file)) return JSON.parse(await readFile(file, 'utf8'))
  const { pepper } = await makeKeys(connection, dataDir)
  const tenant = await makeTenant(connection, pepper)
  const { participantId, tokens } = await makeReaders(connection, tenant, pepper)
  const size = {
    records: Number(options.records),
    neighbours: Number(options.neighbours),
    neighbourRecords: Number(options.neighbourRecords),
  }
  say(`Loading ${size.records} contacts, and ${size.neighbours} neighbours of ${size.neighbourRecords} …`)
  await loadContacts(connection, tenant, participantId, size, say)
  await settleDatabase(connection)
  const made = { tenant, tokens, participantId }
  await writeFile(file, JSON.stringify(made))
  return made
}

/**
 * Reads what is asked for once from end to end, and its indexes: what comes from a disk says more of the disk than of the
 * service.
 */
async function warm(connection: ConnectionSettings, { contacts, organization }: Tenant): Promise<void> {
  const client = new pg.Client(connection)
  await client.connect()
  for (const [table, text] of [
    [contacts.table, 'f_phones::text'],
    ['portico.search_document', 'content'],
  ]) {
    await client.query(`SELECT sum(length(${text})) FROM ${table} WHERE organization_id = $1`, [
      organization.organizationId,
    ])
  }
  await client.query('CREATE EXTENSION IF NOT EXISTS pg_prewarm')
  await client.query(
    `SELECT pg_prewarm(i.indexrelid, CASE WHEN i.indrelid = $1::regclass THEN 'read' ELSE 'buffer' END)
     FROM pg_index i WHERE i.indrelid IN ($1::regclass, ('portico.' || portico.search_part($2))::regclass)`,
    [contacts.table, organization.organizationId],
  )
  await client.query(`SELECT pg_prewarm('portico.' || portico.search_part($1))`, [organization.organizationId])
  await client.end()
}

/** The owner, a role at one location, and two users of a role that has no contacts: one takes part in some, one in none. */
async function makeReaders(connection: ConnectionSettings, { appId, organization }: Tenant, pepper: Uint8Array) {
  const { organizationId, locations, dataRoles } = organization
  const database = openDatabase({ connection, poolSize: 1 })
  const tokenOf = (userId: string) =>
    database.inOrganization(organizationId, async (tx) => {
      const { keyId, secret, text } = makeToken('dat')
      const credential = {
        keyId,
        secretHash: hashSecret(pepper, secret),
        displayName: 'bench',
        userId,
        scopes: allScopes,
      }
      await insertCredential(tx, { organizationId, appId, kind: 'dat', ...credential })
      return text
    })
  const memberOfSupport = (key: string) =>
    database.inOrganization(organizationId, async (tx) => {
      const userId = uuidv7(Date.now())
      const user = { userId, email: `${key}@asked.example`, displayName: key, passwordHash: null, userTypeKey: key }
      const dataRoleIds = [dataRoles['support']!]
      await insertUser(tx, { organizationId, ...user, dataRoleIds, locationIds: [locations.north] })
      return userId
    })
  try {
    const participantId = await memberOfSupport('participant')
    const tokens = {
      owner: await tokenOf(organization.owner.userId),
      'role and location': organization.sales.token,
      participant: await tokenOf(participantId),
      outsider: await tokenOf(await memberOfSupport('outsider')),
    }
    return { participantId, tokens }
  } finally {
    await database.close()
  }
}

function table(figures: readonly SearchFigures[]): string {
  const callers = Object.keys(figures[0]!.callers)
  const cells = figures.map(({ name, callers: each }) => [
    name,
    ...callers.map((caller) => {
      const { p50Ms, p95Ms, maxMs } = each[caller as keyof Callers]!
      return `${p50Ms} / ${p95Ms} / ${maxMs}`
    }),
  ])
  return aligned([['median / 95 % / longest, in ms', ...callers], ...cells])
}

await main()
