import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import sql from 'sql-template-tag'
import { Agent, request } from 'undici'
import { insertBuilderSession } from '../src/features/platform/account/session-store.ts'
import { startEmbedded } from '../src/ports/database/embedded.ts'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import { openDatabase } from '../src/shared/database/database.ts'
import { migrate } from '../src/shared/database/migrate.ts'
import { createMint } from '../src/shared/identity/mint.ts'
import { makeKeys } from './keys.ts'
import { startService } from './processes.ts'
import { fillOrganization, settleDatabase, someDealIds } from './records.ts'
import { makeTenant, type Tenant } from './tenant.ts'

/**
 * `npm run bench:publish`: releases are published over HTTP while others read and write the same object over HTTP. What
 * must be: no failed request, and nobody waits longer than half a second.
 */
const { values: options } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    readers: { type: 'string', default: '4' },
    writers: { type: 'string', default: '4' },
    /** Before the first release, to compare with. */
    quietSeconds: { type: 'string', default: '10' },
  },
})
const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)
const agent = new Agent({ connections: 32, pipelining: 1 })

interface Answered {
  readonly kind: 'read' | 'write'
  readonly startedAt: number
  readonly durationMs: number
  readonly status: number
  readonly text: string
}

async function main(): Promise<void> {
  const dataDir = join(tmpdir(), `portico-bench-publish-${process.pid}`)
  const server = await startEmbedded({ dataDir, report: () => {} })
  try {
    await migrate(server.connection)
    const { pepper } = await makeKeys(server.connection, dataDir)
    const tenant = await makeTenant(server.connection, pepper)
    say(`Loading ${options.records} records …`)
    await fillOrganization(server.connection, tenant, tenant.organization, Number(options.records), 'alone')
    await settleDatabase(server.connection)
    const builderToken = await signInBuilder(server.connection, tenant, pepper)
    await using service = await startService(server.connection, dataDir, [])
    await measure(server.connection, service.port, tenant, builderToken)
  } finally {
    await agent.close()
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function signInBuilder(connection: ConnectionSettings, { appId }: Tenant, pepper: Uint8Array): Promise<string> {
  const database = openDatabase({ connection, poolSize: 1 })
  const { keyId, secretHash, text } = createMint(pepper).token('bld')
  try {
    await database.as('portico_owner', async (tx) => {
      const [member] = await tx.rows<{ accountId: string; builderId: string }>(sql`
        SELECT account_id AS "accountId", builder_id AS "builderId"
        FROM portico.application JOIN portico.account_member USING (account_id) WHERE app_id = ${appId}`)
      const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
      await insertBuilderSession(tx, { keyId, ...member!, secretHash, expiresAt })
    })
  } finally {
    await database.close()
  }
  return text
}

async function measure(connection: ConnectionSettings, port: number, tenant: Tenant, builder: string): Promise<void> {
  const { deals } = await someDealIds(connection, tenant, 2000)
  const base = `http://127.0.0.1:${port}`
  const objects = `${base}/v1/apps/${tenant.appId}/objects/deal`
  const model = `${base}/v1/platform/applications/${tenant.appId}/model`
  const live = tenant.organization.liveToken
  const answered: Answered[] = []
  let working = true

  async function note(kind: Answered['kind'], method: string, path: string, body: object): Promise<void> {
    const startedAt = performance.now()
    const { status, text } = await ask(method, objects + path, live, body)
    answered.push({ kind, startedAt, durationMs: performance.now() - startedAt, status, text })
  }
  const searches = [
    { sort: 'created_desc', pageSize: 50 },
    { sort: 'amount_asc', filter: { field: 'amount', op: 'gt', value: '50000' }, pageSize: 50 },
    { sort: 'closeDate_desc', filter: { field: 'stage', op: 'eq', value: 'won' }, pageSize: 20 },
  ]
  const read = async (reader: number) => {
    for (let n = reader; working; n++) await note('read', 'POST', '/records/search', searches[n % searches.length]!)
  }
  const write = async (writer: number) => {
    for (let n = writer; working; n += 4) {
      await note('write', 'POST', '/records', { fields: { name: `Writer ${writer}`, amount: '12.50' } })
      await note('write', 'PATCH', `/records/${deals[n % deals.length]}`, { fields: { probability: (n % 90) / 100 } })
    }
  }
  const workers = [
    ...Array.from({ length: Number(options.readers) }, (_, n) => read(n)),
    ...Array.from({ length: Number(options.writers) }, (_, n) => write(n)),
  ]
  try {
    const report = (what: string, from: number) => tell(what, answered, from, performance.now())

    const begun = performance.now()
    await new Promise((resolve) => setTimeout(resolve, Number(options.quietSeconds) * 1000))
    report('before', begun)

    /** Publishes what `path` and `body` change, waits until everything is built, and tells what the others noticed. */
    async function release(what: string, path: string, body: object, isReady: (schema: Schema) => boolean) {
      await expectOk(await ask('PUT', `${model}/draft${path}`, builder, body))
      const from = performance.now()
      await expectOk(await ask('POST', `${model}/draft:publish`, builder, {}))
      const published = performance.now()
      for (;;) {
        const { text } = await ask('GET', `${objects}/schema`, live)
        const schema = JSON.parse(text) as Schema
        if (schema.fields.some(({ indexState }) => indexState === 'failed')) throw new Error(`An index failed: ${text}`)
        if (isReady(schema)) break
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      const built = performance.now()
      await new Promise((resolve) => setTimeout(resolve, 1000))
      say(`${what}: published in ${Math.round(published - from)} ms, built in ${Math.round(built - published)} ms`)
      report('  meanwhile', from)
    }
    const indexReady = (fieldKey: string) => (schema: Schema) =>
      schema.fields.some((field) => field.fieldKey === fieldKey && field.indexState === 'ready')
    await release(
      'an indexed field',
      '/objects/deal/fields/priority',
      { field: { label: 'Priority', dataType: 'text', indexed: true } },
      indexReady('priority'),
    )
    await release(
      'an index on a field that is there',
      '/objects/deal/fields/probability',
      { field: { label: 'Probability', dataType: 'float', indexed: true, validation: { minimum: 0, maximum: 1 } } },
      indexReady('probability'),
    )
    await release(
      'a reference',
      '/objects/deal/fields/partner',
      { field: { label: 'Partner', dataType: 'reference', references: 'company' } },
      indexReady('partner'),
    )
  } finally {
    working = false
    await Promise.all(workers)
  }
}

interface Schema {
  readonly fields: readonly { readonly fieldKey: string; readonly indexState: string }[]
}

async function ask(method: string, url: string, token: string, body?: object) {
  const answer = await request(url, {
    method: method as 'GET',
    dispatcher: agent,
    headers: { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  }).catch((error: Error) => ({ statusCode: 0, body: { text: async () => error.message } }))
  return { status: answer.statusCode, text: await answer.body.text() }
}

async function expectOk({ status, text }: { readonly status: number; readonly text: string }): Promise<void> {
  if (status < 200 || status > 299) throw new Error(`${status} ${text}`)
}

function tell(what: string, answered: readonly Answered[], from: number, to: number): void {
  const during = answered.filter(({ startedAt, durationMs }) => startedAt + durationMs >= from && startedAt <= to)
  const failed = during.filter(({ status }) => status < 200 || status > 299)
  const line = (['read', 'write'] as const).map((kind) => {
    const sorted = during.filter((one) => one.kind === kind).map(({ durationMs }) => durationMs)
    sorted.sort((a, b) => a - b)
    const at = (share: number) => `${(sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(1)} ms`
    return `${sorted.length} ${kind}s, median ${at(0.5)}, 99 % ${at(0.99)}, longest ${at(1)}`
  })
  say(`${what}: ${line.join('; ')}; failed ${failed.length}`)
  for (const { status, text } of failed.slice(0, 3)) say(`    ${status} ${text.slice(0, 300)}`)
}

await main()
