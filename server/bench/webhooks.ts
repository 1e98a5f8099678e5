import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { Agent, request } from 'undici'
import { startEmbedded } from '../src/ports/database/embedded.ts'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import { migrate } from '../src/shared/database/migrate.ts'
import { makeKeys } from './keys.ts'
import { type Contestant, startService } from './processes.ts'
import { settleDatabase } from './records.ts'
import { makeTenant, type Organization, type Tenant } from './tenant.ts'
import { fillHistory, queueDeliveries } from './webhook-data.ts'
import type { Arrival, ReceiverPorts } from './webhook-receivers.ts'

/**
 * `npm run bench:webhooks`: from the commit of a change to its arrival at a receiver on the same machine, alone and at 500
 * events a second; how many deliveries one process sends; both again beside a million deliveries of history; and what 20
 * receivers that hang, drip, reset, redirect, never end or ask for a week cost 80 that do not.
 */
const { values: options } = parseArgs({
  options: {
    history: { type: 'string', default: '1000000' },
    deliveries: { type: 'string', default: '30000' },
    seconds: { type: 'string', default: '20' },
    /** Beside the broken receivers, so many times the seconds. */
    parts: { type: 'string', default: '3' },
    /** `latencies`, `throughput` or `broken`; empty: all, and again beside the history. */
    only: { type: 'string', default: '' },
  },
})
const say = (sentence: string) => void process.stdout.write(`${sentence}\n`)
const agent = new Agent({ connections: 64, pipelining: 1 })
const now = () => performance.timeOrigin + performance.now()
const env = { PORTICO_ALLOW_PRIVATE_DESTINATIONS: '1', PORTICO_LOG_LEVEL: 'error' }

interface Bench {
  readonly connection: ConnectionSettings
  readonly dataDir: string
  readonly tenant: Tenant
  readonly receivers: Receivers
}

interface Receivers {
  readonly ports: ReceiverPorts
  report(): Promise<Arrival[]>
}

async function main(): Promise<void> {
  const dataDir = join(tmpdir(), `portico-bench-webhooks-${process.pid}`)
  const server = await startEmbedded({ dataDir, report: () => {} })
  const child = fork(new URL('./webhook-receivers.ts', import.meta.url))
  try {
    await migrate(server.connection)
    const { pepper } = await makeKeys(server.connection, dataDir)
    const tenant = await makeTenant(server.connection, pepper)
    const receivers = await receiversOf(child)
    say(`${availableParallelism()} cores, Node ${process.version}, load ${loadavg()[0]!.toFixed(1)}`)
    const bench = { connection: server.connection, dataDir, tenant, receivers }
    const asked = (part: string) => options.only === '' || options.only === part
    if (asked('latencies')) await latencies(bench)
    if (asked('throughput')) await throughput(bench, 'empty history')
    if (asked('broken')) await broken(bench)
    if (options.only !== '') return
    say(`Loading ${options.history} deliveries of history …`)
    await fillHistory(server.connection, tenant, Number(options.history))
    await settleDatabase(server.connection)
    await throughput(bench, `${options.history} deliveries of history`)
    await latencies(bench)
  } finally {
    child.disconnect()
    await agent.close()
    await server.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function receiversOf(child: ChildProcess): Promise<Receivers> {
  const [ports] = (await once(child, 'message')) as [ReceiverPorts]
  return {
    ports,
    async report() {
      const answered = once(child, 'message')
      child.send('report')
      return (await answered)[0] as Arrival[]
    },
  }
}

/** One receiver; the service does everything in one process. */
async function latencies({ connection, dataDir, tenant, receivers }: Bench): Promise<void> {
  await using service = await startService(connection, dataDir, [], env)
  const subscriptionId = await subscribe(service, tenant, tenant.organization, receivers.ports.good)
  const create = creator(service, tenant, tenant.organization)
  for (let n = 0; n < 50; n++) await create()
  await pause(1500)
  await receivers.report()

  const alone: Change[] = []
  for (let n = 0; n < 200; n++) {
    alone.push(await create())
    await pause(40)
  }
  await pause(1000)
  say(`idle: ${spread(alone, await receivers.report())}`)

  const seconds = Number(options.seconds)
  const changes = await atRate(500, seconds, create)
  await pause(3000)
  say(`500 events/s for ${seconds} s: ${spread(changes, await receivers.report())}; load ${loadavg()[0]!.toFixed(1)}`)
  await unsubscribe(service, tenant, tenant.organization, subscriptionId)
}

/** Twenty subscriptions with a backlog each, and a process that does nothing but deliver. */
async function throughput({ connection, dataDir, tenant, receivers }: Bench, what: string): Promise<void> {
  const subscriptionIds: string[] = []
  {
    await using service = await startService(connection, dataDir, [], { ...env, PORTICO_ROLE: 'api' })
    for (let n = 0; n < 20; n++) {
      subscriptionIds.push(await subscribe(service, tenant, tenant.organization, receivers.ports.good))
    }
  }
  for (const ids of [subscriptionIds, subscriptionIds.slice(0, 1)]) {
    const count = Number(options.deliveries) / (ids.length === 1 ? 3 : 1)
    await queueDeliveries(connection, tenant, ids, count)
    await using _ = await startService(connection, dataDir, [], { ...env, PORTICO_ROLE: 'worker' })
    const arrivals: Arrival[] = []
    for (const until = now() + 120_000; arrivals.length < count && now() < until; await pause(250)) {
      arrivals.push(...(await receivers.report()))
    }
    const times = arrivals.map(({ at }) => at).sort((a, b) => a - b)
    const perSecond = ((times.length - 1) / (times.at(-1)! - times[0]!)) * 1000
    say(
      `one worker, ${ids.length} subscriptions, ${what}: ${Math.round(perSecond)} deliveries/s (${times.length} of ${count})`,
    )
  }
  await using service = await startService(connection, dataDir, [], { ...env, PORTICO_ROLE: 'api' })
  for (const id of subscriptionIds) await unsubscribe(service, tenant, tenant.organization, id)
}

/** A hundred receivers, forty good and ten others in each of two organisations; each event goes to the fifty of its own. */
async function broken({ connection, dataDir, tenant, receivers }: Bench): Promise<void> {
  await using service = await startService(connection, dataDir, [], env)
  const organizations = [tenant.organization, tenant.neighbour]
  const { good, ...others } = receivers.ports
  for (const organization of organizations) {
    for (let n = 0; n < 40; n++) await subscribe(service, tenant, organization, good)
  }
  const seconds = Number(options.seconds)
  const creators = organizations.map((organization) => creator(service, tenant, organization))
  let turn = 0
  const create = () => creators[turn++ % 2]!()
  for (let n = 0; n < 20; n++) await create()
  await pause(2000)
  await receivers.report()
  const measure = async (title: string) => {
    await using memory = watchMemory(service)
    const changes = await atRate(10, seconds, create)
    await pause(2000)
    say(`${title}: ${spread(changes, await receivers.report(), 40)}; ${await memory.told()}`)
  }
  await measure('80 good receivers, 10 events/s to 40 of them each')
  for (const organization of organizations) {
    const ports = Object.values(others)
    for (let n = 0; n < 10; n++) await subscribe(service, tenant, organization, ports[n % ports.length]!)
  }
  for (let part = 1; part <= Number(options.parts); part++) {
    await measure(`the same beside 20 broken ones, part ${part} of ${seconds} s`)
  }
  const client = new pg.Client(connection)
  await client.connect()
  await client.query('DELETE FROM portico.webhook_subscription')
  await client.end()
  await pause(20_000)
}

interface Change {
  readonly recordId: string
  readonly sentAt: number
  readonly answeredAt: number
}

function creator({ port }: Contestant, { appId }: Tenant, { liveToken }: Organization): () => Promise<Change> {
  let n = 0
  return async () => {
    const sentAt = now()
    const { statusCode, body } = await request(`http://127.0.0.1:${port}/v1/apps/${appId}/objects/deal/records`, {
      method: 'POST',
      dispatcher: agent,
      headers: { authorization: `Bearer ${liveToken}`, 'content-type': 'application/json' },
      body: JSON.stringify({ fields: { name: `Deal ${++n}`, stage: 'open', amount: '12.50' } }),
    })
    const answer = (await body.json()) as { recordId: string }
    if (statusCode !== 201) throw new Error(`${statusCode} ${JSON.stringify(answer)}`)
    return { recordId: answer.recordId, sentAt, answeredAt: now() }
  }
}

/** At fixed moments, whether the last ones are answered or not. */
async function atRate(perSecond: number, seconds: number, create: () => Promise<Change>): Promise<Change[]> {
  const changes: Promise<Change>[] = []
  const startedAt = now()
  for (let n = 0; n < perSecond * seconds; n++) {
    const waitMs = startedAt + (n * 1000) / perSecond - now()
    if (waitMs > 1) await pause(waitMs)
    changes.push(create())
  }
  return Promise.all(changes)
}

/** From the answer that says that the change is committed, and from the request for it, to the arrival. */
function spread(changes: readonly Change[], arrivals: readonly Arrival[], each = 1): string {
  const of = new Map(changes.map((change) => [change.recordId, change]))
  const known = arrivals.filter(({ subjectId }) => of.has(subjectId))
  const quantiles = (times: number[]) => {
    times.sort((a, b) => a - b)
    const at = (share: number) => times[Math.floor((times.length - 1) * share)]?.toFixed(1)
    return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`
  }
  const committed = quantiles(known.map(({ subjectId, at }) => at - of.get(subjectId)!.answeredAt))
  const sent = quantiles(known.map(({ subjectId, at }) => at - of.get(subjectId)!.sentAt))
  return `${known.length} of ${changes.length * each} arrived; from the commit ${committed}; from the request ${sent}`
}

interface Watched extends AsyncDisposable {
  told(): Promise<string>
}

/** What lies between two collections is garbage that nobody needed to fetch: what is kept is the least that is seen. */
function watchMemory({ port }: Contestant): Watched {
  let isOver = false
  const sizes: { heap: number; outside: number; resident: number }[] = []
  const watch = async () => {
    while (!isOver) {
      const { body } = await request(`http://127.0.0.1:${port}/metrics`, { dispatcher: agent })
      const text = await body.text()
      const of = (name: string) => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1]) / 1e6
      sizes.push({
        heap: of('nodejs_heap_size_used_bytes'),
        outside: of('nodejs_external_memory_bytes'),
        resident: of('process_resident_memory_bytes'),
      })
      await pause(500)
    }
  }
  const watching = watch()
  return {
    async told() {
      const least = (key: 'heap' | 'outside') => Math.round(Math.min(...sizes.map((size) => size[key])))
      const resident = Math.round(sizes.at(-1)!.resident)
      return `least heap ${least('heap')} MB, outside of it ${least('outside')} MB, resident ${resident} MB, load ${loadavg()[0]!.toFixed(1)}`
    },
    async [Symbol.asyncDispose]() {
      isOver = true
      await watching
    },
  }
}

async function subscribe(
  { port }: Contestant,
  { appId }: Tenant,
  { liveToken }: Organization,
  to: number,
): Promise<string> {
  const { statusCode, body } = await request(`http://127.0.0.1:${port}/v1/apps/${appId}/webhooks`, {
    method: 'POST',
    dispatcher: agent,
    headers: { authorization: `Bearer ${liveToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      displayName: 'Bench',
      destinationUrl: `http://127.0.0.1:${to}/`,
      events: [{ eventKey: 'record.created', eventVersion: '2026-11-20' }],
    }),
  })
  const answer = (await body.json()) as { subscriptionId: string }
  if (statusCode !== 201) throw new Error(`${statusCode} ${JSON.stringify(answer)}`)
  return answer.subscriptionId
}

async function unsubscribe(
  { port }: Contestant,
  { appId }: Tenant,
  { liveToken }: Organization,
  id: string,
): Promise<void> {
  const { statusCode, body } = await request(`http://127.0.0.1:${port}/v1/apps/${appId}/webhooks/${id}`, {
    method: 'DELETE',
    dispatcher: agent,
    headers: { authorization: `Bearer ${liveToken}` },
  })
  await body.dump()
  if (statusCode >= 300) throw new Error(`${statusCode}`)
}

await main()
