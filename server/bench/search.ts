import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { Agent, request } from 'undici'
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
import { fillCompanies, questions } from './search-data.ts'
import { makeTenant, type Tenant } from './tenant.ts'

/** `npm run bench:search`: global search over HTTP, one question after the other, by four callers who see different parts. */
const { values: options } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    neighbours: { type: 'string', default: '50' },
    neighbourRecords: { type: 'string', default: '100000' },
    /** Of each kind, caller and operation. */
    questions: { type: 'string', default: '40' },
  },
})
const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)
const agent = new Agent({ connections: 1 })

async function main(): Promise<void> {
  const dataDir = join(tmpdir(), `portico-bench-search-${process.pid}`)
  const server = await startEmbedded({ dataDir, report: () => {} })
  try {
    await migrate(server.connection)
    const { pepper } = await makeKeys(server.connection, dataDir)
    const tenant = await makeTenant(server.connection, pepper)
    const readers = await makeReaders(server.connection, tenant, pepper)
    say(`Loading ${options.records} records, and ${options.neighbours} neighbours of ${options.neighbourRecords} …`)
    await load(server.connection, tenant, readers.participant.userId)
    await settleDatabase(server.connection)
    await using service = await startService(server.connection, dataDir, [])
    const { liveToken, sales } = tenant.organization
    const callers = {
      owner: liveToken,
      'role and location': sales.token,
      participant: readers.participant.token,
      outsider: readers.outsider.token,
    }
    const base = `http://127.0.0.1:${service.port}/v1/apps/${tenant.appId}/modules/global-search`
    for (const [caller, token] of Object.entries(callers)) await measure(base, caller, token)
  } finally {
    await agent.close()
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

/** Two users who may read companies, of a role that has none: one takes part in some records, one in none. */
async function makeReaders(connection: ConnectionSettings, { appId, organization }: Tenant, pepper: Uint8Array) {
  const { organizationId, locations } = organization
  const database = openDatabase({ connection, poolSize: 1 })
  const make = (key: string, roles: readonly string[]) =>
    database.inOrganization(organizationId, async (tx) => {
      const userId = uuidv7(Date.now())
      const user = { userId, email: `${key}@asked.example`, displayName: key, passwordHash: null, userTypeKey: key }
      const dataRoleIds = roles.map((role) => organization.dataRoles[role]!)
      await insertUser(tx, { organizationId, ...user, dataRoleIds, locationIds: [locations.north] })
      const { keyId, secret, text } = makeToken('dat')
      const credential = { keyId, secretHash: hashSecret(pepper, secret), displayName: key, userId, scopes: allScopes }
      await insertCredential(tx, { organizationId, appId, kind: 'dat', ...credential })
      return { userId, token: text }
    })
  try {
    return { participant: await make('participant', ['support']), outsider: await make('outsider', ['support']) }
  } finally {
    await database.close()
  }
}

/** The index of words is made after the rows: entering six million documents into it one by one takes an hour. */
async function load(connection: ConnectionSettings, tenant: Tenant, participantId: string): Promise<void> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    const { rows } = await client.query<{ definition: string }>(
      `SELECT pg_get_indexdef('portico.search_document_words'::regclass) AS definition`,
    )
    await client.query('DROP INDEX portico.search_document_words')
    const { organizationId, owner, sales, dataRoles, locations } = tenant.organization
    const someone = uuidv7(Date.now())
    const own = {
      organizationId,
      count: Number(options.records),
      ownerIds: [sales.userId, owner.userId] as const,
      // The role sees what is at its location, and what is at none: with its own, two thirds of all.
      roleIds: [dataRoles['sales']!, dataRoles['sales']!] as const,
      locationIds: [locations.north, locations.south] as const,
      participantId,
    }
    await fillCompanies(client, tenant, own, true)
    for (let n = 0; n < Number(options.neighbours); n++) {
      const theirs = {
        organizationId: uuidv7(Date.now()),
        count: Number(options.neighbourRecords),
        participantId: someone,
      }
      await fillCompanies(client, tenant, { ...own, ...theirs }, false)
    }
    await client.query(`SET maintenance_work_mem = '1GB'`)
    await client.query(rows[0]!.definition)
    const size = await client.query<{ size: string }>(
      `SELECT string_agg(relname || ' ' || pg_size_pretty(pg_relation_size(oid)), ', ') AS size FROM pg_class
       WHERE relname LIKE 'search\\_document%'`,
    )
    say(size.rows[0]!.size)
  } finally {
    await client.end()
  }
}

async function measure(base: string, caller: string, token: string): Promise<void> {
  for (const [kind, question] of Object.entries(questions)) {
    const figures: string[] = []
    for (const [operation, path] of [
      ['list', '?'],
      ['count', '/count?'],
      ['suggest', '/suggest?'],
    ]) {
      const times: number[] = []
      // Once to warm up what all of them share, then every question twice: the first time its pages may be cold.
      for (let n = 0; n < Number(options.questions) * 2; n++) {
        const query = new URLSearchParams({ query: question(n % Number(options.questions)) })
        const from = performance.now()
        const answer = await request(`${base}${path}${query}`, {
          dispatcher: agent,
          headers: { authorization: `Bearer ${token}` },
        })
        const text = await answer.body.text()
        if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${text}`)
        if (n >= Number(options.questions)) times.push(performance.now() - from)
      }
      times.sort((a, b) => a - b)
      const at = (share: number) => times[Math.floor((times.length - 1) * share)]!.toFixed(1)
      figures.push(`${operation} ${at(0.5)} / ${at(0.95)} ms`)
    }
    say(`${caller}, ${kind}: ${figures.join(', ')} (median / 95 %)`)
  }
}

await main()
