import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../shared/database/database.ts'
import type { Log } from '../../../shared/log.ts'
import { disableSubscription } from '../../../shared/outbox/disable.ts'
import { envelopeOf, knowable, type Standing } from '../../../shared/outbox/disclosure.ts'
import { holderKey, type Standings } from '../../../shared/outbox/standings.ts'
import type { StoredEvent } from '../../../shared/outbox/stored-event.ts'
import type { SafeFetch } from '../../../shared/safe-fetch/safe-fetch.ts'
import type { ClaimedDelivery, Settlement } from './delivery.ts'
import { excerptBytesMax } from './evidence.ts'
import type { Gate } from './gate.ts'
import { released, settlementOf, unready, withheld } from './outcome.ts'
import { signatureHeaders } from './signing.ts'
import type { SigningSecrets } from './signing-secrets.ts'

export interface SendParts {
  readonly database: Database
  readonly standings: Standings
  readonly signingSecrets: SigningSecrets
  readonly safeFetch: Pick<SafeFetch, 'fetch'>
  readonly gate: Gate
  readonly clock: Clock
  readonly log: Log
  /** In [0, 1). */
  readonly random: () => number
}

/** From DNS to the last byte of the answer (contract 6). */
export const deadlineMs = 15_000
/** What has waited so long since it was claimed that its lease could run out on the way is not sent. */
const unsentAfterMs = 20_000

interface Ready {
  readonly claimed: ClaimedDelivery
  readonly event: StoredEvent
  readonly standing: Standing
}

/**
 * Sends deliveries that were claimed together, each by itself, and tells `settle` of each what became of it. What a delivery
 * may carry is decided now, with the rights that its credential has at this moment. Never throws.
 */
export async function sendDeliveries(
  parts: SendParts,
  deliveries: readonly ClaimedDelivery[],
  settle: (settlement: Settlement) => Promise<void>,
): Promise<void> {
  const { gate, clock } = parts
  let ready: readonly Ready[]
  try {
    const prepared = await prepare(parts, deliveries)
    for (const settlement of prepared.settled) void settle(settlement)
    ready = prepared.ready
  } catch (error) {
    for (const claimed of deliveries) void settle(faulty(parts, claimed, error))
    return
  }
  await Promise.all(
    ready.map(async (one) => {
      const { subscriptionId } = one.claimed.destination
      const at = clock.now()
      if (!(await gate.enter(subscriptionId, at))) return settle(released(one.claimed, { at: clock.now(), dueAt: at }))
      const settlement = await send(parts, one).catch((error) => faulty(parts, one.claimed, error))
      gate.answered(subscriptionId)
      await settle(settlement)
      gate.leave(subscriptionId)
    }),
  )
}

/** Keeps back what its subscription may not know by now. */
async function prepare(
  parts: SendParts,
  deliveries: readonly ClaimedDelivery[],
): Promise<{ readonly ready: readonly Ready[]; readonly settled: readonly Settlement[] }> {
  const { database, standings, clock, log } = parts
  const standingOf = await standings.of(deliveries.map(({ destination }) => destination))
  const at = clock.now()
  const ready: Ready[] = []
  const settled: Settlement[] = []
  for (const [holder, ofKey] of Map.groupBy(deliveries, ({ destination }) => holderKey(destination))) {
    const standing = standingOf.get(holder)
    if (!standing) {
      settled.push(...(await withdraw(database, ofKey, at)))
      continue
    }
    const known = await knownTo(database, standing, ofKey).catch((error: unknown) => {
      // Others that were claimed beside them must not wait for them.
      settled.push(...ofKey.map((claimed) => faulty(parts, claimed, error)))
      return undefined
    })
    if (!known) continue
    for (const claimed of ofKey) {
      const { event, deliveryId } = claimed
      if (event && known.has(event.eventId)) ready.push({ claimed, event, standing })
      else {
        if (!event)
          log.warn({ deliveryId }, 'A delivery was given up: its event was removed, 30 days after it happened.')
        settled.push(withheld(claimed, at))
      }
    }
  }
  return { ready, settled }
}

/** Which of the events the holder of a credential may know of, by id. */
async function knownTo(
  database: Database,
  standing: Standing,
  deliveries: readonly ClaimedDelivery[],
): Promise<ReadonlySet<string>> {
  const events = new Map(deliveries.flatMap(({ event }) => (event ? [[event.eventId, event]] : [])))
  return new Set((await knowable(database, standing, [...events.values()])).map(({ eventId }) => eventId))
}

function faulty({ clock, log }: Pick<SendParts, 'clock' | 'log'>, claimed: ClaimedDelivery, err: unknown): Settlement {
  log.warn({ err, deliveryId: claimed.deliveryId }, 'A delivery could not be made ready; trying again soon.')
  return unready(claimed, clock.now())
}

/** The credential was revoked or has expired: without it nobody can say what its subscriptions may know. */
async function withdraw(database: Database, deliveries: readonly ClaimedDelivery[], at: number): Promise<Settlement[]> {
  const destinations = new Map(deliveries.map(({ destination }) => [destination.subscriptionId, destination]))
  const disabled = await database.as('portico_system', async (tx) => {
    const ids = new Set<string>()
    for (const destination of destinations.values()) {
      if (await disableSubscription(tx, destination, 'credential_revoked', at)) ids.add(destination.subscriptionId)
    }
    return ids
  })
  // One that somebody saved anew meanwhile may have a credential that stands.
  return deliveries.map((claimed) =>
    disabled.has(claimed.destination.subscriptionId) ? withheld(claimed, at) : released(claimed, { at, dueAt: at }),
  )
}

async function send(parts: SendParts, { claimed, event, standing }: Ready): Promise<Settlement> {
  const { signingSecrets, safeFetch, clock, random } = parts
  const { destination, deliveryId } = claimed
  const body = JSON.stringify(envelopeOf(event, standing))
  const secrets = await signingSecrets.of(destination)
  const startedAt = clock.now()
  if (startedAt > Date.parse(claimed.leasedUntil) - unsentAfterMs) {
    return released(claimed, { at: startedAt, dueAt: startedAt })
  }
  const timestamp = Math.floor(startedAt / 1000)
  const answer = await safeFetch.fetch(destination.destinationUrl, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'user-agent': 'Portico-Webhooks/1',
      ...signatureHeaders({ deliveryId, eventId: event.eventId, timestamp, body, secrets }),
    },
    body,
    deadlineMs,
    connectionGroup: destination.subscriptionId,
    responseBytesMax: excerptBytesMax,
  })
  return settlementOf(claimed, answer, { startedAt, now: clock.now(), random: random() })
}
