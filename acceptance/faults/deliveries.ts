import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort, makeRoot, removeRoot, ServiceProcess } from '../support/service.ts'
import { type DealsAt, findAll, settleUnknown, startWriters } from './client.ts'
import { Ledger } from './ledger.ts'

/**
 * What becomes of webhooks while the service, which delivers them too, or its database is killed again and again under eight
 * writers: in the end every record that is there has reached the receiver, as one event, and no other has.
 */
export interface DeliveryFigures {
  readonly kills: number
  readonly committed: number
  readonly arrivals: number
  /** Arrivals of an event after its first. */
  readonly duplicates: number
  /** For each kill what may be on its way at once: sent, or answered and not yet written. */
  readonly duplicatesMax: number
  /** Of the creations without a conclusive answer. */
  readonly unknown: number
  /** From the last write until the last event had arrived. */
  readonly caughtUpMs: number
  readonly problems: readonly string[]
}

const writerCount = 8
const subscriptionCount = 4
/** Of one subscription: eight that are being sent, and eight that are answered and not yet written. */
const inFlightMax = 16
const catchUpWithinMs = 180_000

/** Answers after some milliseconds, as a receiver that does something would, so that a kill finds requests on their way. */
class Receiver {
  /** How often each event came, by record and event. */
  readonly arrivals = new Map<string, Map<string, number>>()
  count = 0
  readonly #server: Server

  constructor() {
    this.#server = createServer((request, response) => {
      let body = ''
      request.on('data', (chunk) => {
        body += chunk
      })
      request.on('end', () => {
        const event = JSON.parse(body) as { id: string; subject: { id: string } }
        const key = `${request.url} ${event.subject.id}`
        const ofRecord = this.arrivals.get(key) ?? new Map<string, number>()
        this.arrivals.set(key, ofRecord)
        ofRecord.set(event.id, (ofRecord.get(event.id) ?? 0) + 1)
        this.count++
        setTimeout(() => response.end(), 10)
      })
    })
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => void this.#server.listen(0, '127.0.0.1', resolve))
    return (this.#server.address() as AddressInfo).port
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

/** Kills the service `kills` times and PostgreSQL `databaseKills` times, and settles once at the end. */
export async function proveDeliveries(
  { kills, databaseKills }: { readonly kills: number; readonly databaseKills: number },
  report: (line: string) => void,
): Promise<DeliveryFigures> {
  const root = await makeRoot()
  const port = await freePort()
  const receiver = new Receiver()
  const receiverPort = await receiver.listen()
  let service = start(root, port)
  try {
    await service.untilReady()
    const at = await findDeals(service)
    for (let n = 0; n < subscriptionCount; n++) await subscribe(at, `http://127.0.0.1:${receiverPort}/${n}`)
    const ledger = new Ledger(crypto.randomUUID().slice(0, 8))
    const writers = startWriters(at, ledger, writerCount)
    for (let kill = 1; kill <= kills + databaseKills; kill++) {
      const before = receiver.count
      await until(() => receiver.count > before + 50, `The receiver gets nothing before kill ${kill}.`)
      await pause(Math.random() * 300)
      if (kill <= kills) {
        service.signal('SIGKILL')
        await service.ended
        service = start(root, port)
        await service.untilReady()
      } else process.kill(await service.databasePid(), 'SIGKILL')
      if (kill % 10 === 0) report(`  ${String(kill).padStart(3)}  ${receiver.count} arrivals`)
    }
    const beforeEnd = receiver.count
    await until(() => receiver.count > beforeEnd, 'The receiver gets nothing after the last kill.')
    await writers.stop()
    const unknown = ledger.with('unknown').length
    await settleUnknown(at, ledger)
    const settledAt = performance.now()
    const found = await findAll(at, ledger.prefix)
    const expected = found.length * subscriptionCount
    await until(() => receiver.arrivals.size >= expected, '').catch(() => {})
    const caughtUpMs = performance.now() - settledAt
    // Whatever is sent twice would be by now.
    await pause(3000)
    const duplicates = receiver.count - [...receiver.arrivals.values()].reduce((sum, ids) => sum + ids.size, 0)
    const duplicatesMax = (kills + databaseKills) * inFlightMax * subscriptionCount
    return {
      kills: kills + databaseKills,
      committed: found.length,
      arrivals: receiver.count,
      duplicates,
      duplicatesMax,
      unknown,
      caughtUpMs,
      problems: [
        ...ledger.compare(found),
        ...compare(
          receiver,
          found.map(({ recordId }) => recordId),
        ),
        ...(duplicates > duplicatesMax ? [`${duplicates} duplicates are more than ${duplicatesMax}`] : []),
      ],
    }
  } finally {
    await service.stop()
    receiver.close()
    await removeRoot(root)
  }
}

/** Where what arrived differs from what was committed. */
function compare({ arrivals }: Receiver, recordIds: readonly string[]): string[] {
  const problems: string[] = []
  const expected = new Set(
    recordIds.flatMap((id) => Array.from({ length: subscriptionCount }, (_, n) => `/${n} ${id}`)),
  )
  for (const key of expected) if (!arrivals.has(key)) problems.push(`${key} never arrived`)
  for (const [key, ids] of arrivals) {
    if (!expected.has(key)) problems.push(`${key} arrived, and is not there`)
    if (ids.size > 1) problems.push(`${key} arrived as ${ids.size} events`)
  }
  return problems
}

function start(root: string, port: number): ServiceProcess {
  const env = { PORTICO_RATE_LIMIT_SCALE: '0', PORTICO_ALLOW_PRIVATE_DESTINATIONS: '1' }
  return new ServiceProcess({ dataDir: join(root, 'data'), port, env })
}

async function findDeals(service: ServiceProcess): Promise<DealsAt> {
  const { baseUrl, apps } = await service.demo()
  return { baseUrl, saasAppId: apps[0]!.saasAppId, token: apps[0]!.organizations[0]!.credentials.live }
}

async function subscribe({ baseUrl, saasAppId, token }: DealsAt, destinationUrl: string): Promise<void> {
  const response = await fetch(`${baseUrl}/v1/apps/${saasAppId}/webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      displayName: 'Fault test',
      destinationUrl,
      events: [{ eventKey: 'record.created', eventVersion: '2026-11-20' }],
    }),
  })
  if (response.status !== 201) throw new Error(`A subscription was refused: ${await response.text()}`)
}

async function until(isSo: () => boolean, otherwise: string): Promise<void> {
  for (const from = performance.now(); !isSo(); await pause(10)) {
    if (performance.now() - from > catchUpWithinMs) throw new Error(otherwise)
  }
}
