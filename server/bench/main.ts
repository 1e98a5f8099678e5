import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { readConfig } from '../src/config.ts'
import { startEmbedded } from '../src/ports/database/embedded.ts'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import { migrate } from '../src/shared/database/migrate.ts'
import { depthTable, measureDepth } from './depth.ts'
import { makeKeys } from './keys.ts'
import type { LoadResult } from './load.ts'
import { type Measure, planOf, recordMeasures } from './measures.ts'
import { type Contestant, type LoadClient, startBaseline, startLoadClient, startService } from './processes.ts'
import { fillOrganization, settleDatabase, someDealIds } from './records.ts'
import { figuresOf, keepResults, type Rounds, table } from './report.ts'
import { requireSameAnswers } from './same-answers.ts'
import { makeTenant, type Tenant } from './tenant.ts'

/**
 * `npm run bench`: the service against the bare baseline, on one database, in one run, in alternating rounds. Absolute
 * figures depend on the machine and on who else uses it; the ratios are what quality.md asks for.
 */
const { values: options } = parseArgs({
  allowPositionals: true,
  options: {
    /** Of each round and side. */
    seconds: { type: 'string', default: '2' },
    rounds: { type: 'string', default: '5' },
    connections: { type: 'string', default: '16' },
    /** Only measures whose name holds this. */
    only: { type: 'string', default: '' },
    /** A folder for CPU profiles of the service. */
    profile: { type: 'string' },
    /** Depth instead of speed: pages and counts over a million records. */
    million: { type: 'boolean', default: false },
  },
})
const recordCount = 20_000
/** As many connections as the service opens. */
const poolSize = readConfig({}).databasePoolSize
const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)

async function main(): Promise<void> {
  const dataDir = join(tmpdir(), `portico-bench-${process.pid}`)
  const server = await startEmbedded({ dataDir, report: () => {} })
  try {
    await migrate(server.connection)
    const { pepper } = await makeKeys(server.connection, dataDir)
    const tenant = await makeTenant(server.connection, pepper)
    const count = options.million ? 1_000_000 : recordCount
    say(`Loading ${count} records, and ${recordCount} of a neighbour …`)
    await fillOrganization(server.connection, tenant, tenant.organization, count, options.million ? 'alone' : undefined)
    await fillOrganization(server.connection, tenant, tenant.neighbour, recordCount)
    await settleDatabase(server.connection)
    await (options.million ? dive : compete)(server.connection, dataDir, tenant)
  } finally {
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function compete(connection: ConnectionSettings, dataDir: string, tenant: Tenant): Promise<void> {
  const { profile, only } = options
  const nodeOptions = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  await using service = await startService(connection, dataDir, nodeOptions)
  const contract = await readContract(service, tenant)
  await using baseline = await startBaseline({ connection, poolSize, tenant, contract })
  await using client = startLoadClient()
  const { deals, companies } = await someDealIds(connection, tenant, 2000)
  const connections = Number(options.connections)
  const measures = recordMeasures({ tenant, dealIds: deals, companyIds: companies, connections })
  await requireSameAnswers(measures, { service: service.port, baseline: baseline.port })
  const figures = []
  for (const measure of measures.filter(({ name }) => name.includes(only))) {
    const rounds = await alternate(client, measure, service, baseline)
    figures.push(figuresOf(rounds))
    say(`  ${measure.name}: ${figures.at(-1)!.ratio.toFixed(2)}`)
  }
  say(`\n${table(figures)}\n`)
  if (only === '' && profile === undefined) say(`Kept in ${await keepResults('', { options, figures })}`)
}

async function readContract({ port }: Contestant, { appId, organization }: Tenant): Promise<string> {
  const authorization = `Bearer ${organization.liveToken}`
  const answer = await fetch(`http://127.0.0.1:${port}/v1/apps/${appId}/openapi.json`, { headers: { authorization } })
  return answer.text()
}

async function dive(connection: ConnectionSettings, dataDir: string, tenant: Tenant): Promise<void> {
  await using service = await startService(connection, dataDir, [])
  await using client = startLoadClient()
  const depths = await measureDepth(client, service, tenant)
  say(`\n${depthTable(depths)}\n`)
  say(`Kept in ${await keepResults('-million', { depths })}`)
}

/** A B, B A, A B …: whatever else the machine does in these seconds falls on both. One short round each warms up. */
async function alternate(
  client: LoadClient,
  measure: Measure,
  service: Contestant,
  baseline: Contestant,
): Promise<Rounds> {
  const results = { service: [] as LoadResult[], baseline: [] as LoadResult[] }
  const ports = { service: service.port, baseline: baseline.port }
  const sides = ['service', 'baseline'] as const
  for (const side of sides) await client.run(planOf(measure, side, ports[side], 1000))
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      results[side].push(await client.run(planOf(measure, side, ports[side], Number(options.seconds) * 1000)))
    }
  }
  return { measure, ...results }
}

await main()
