import type { Clock } from '../../kernel/clock.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { Database } from '../database/database.ts'
import type { Log } from '../log.ts'
import { wantsSubject, wantsType } from './choices.ts'
import { disableSubscription } from './disable.ts'
import { type EventHead, knowable, type Standing } from './disclosure.ts'
import {
  findSubscriptions,
  insertDeliveries,
  moveEvents,
  type NewDelivery,
  type SubscriptionRow,
} from './dispatch-store.ts'
import { holderKey, type Standings } from './standings.ts'

export interface Dispatched {
  readonly moved: number
  /** Those that have a delivery more. */
  readonly subscriptionIds: readonly string[]
  /** There may be more: it took some, or another process was at it. */
  readonly unfinished: boolean
}

/** An event on its way out, without its data, unless that decides whom it is for. */
export interface MovedEvent extends EventHead {
  readonly eventId: string
  readonly eventVersion: string
  /** Of a test: the only subscription that it is for. */
  readonly subscriptionId: string | null
}

interface Parts {
  readonly database: Database
  readonly standings: Standings
  readonly clock: Clock
  readonly log: Pick<Log, 'warn'>
}

/** One turn: fan-out and marking as dispatched are one transaction, so a crash leaves both undone. */
export function dispatchBatch(parts: Parts, limit: number): Promise<Dispatched> {
  return parts.database.as('portico_system', async (tx) => {
    const events = await moveEvents(tx, limit)
    if (events === 'busy') return { moved: 0, subscriptionIds: [], unfinished: true }
    if (events.length === 0) return { moved: 0, subscriptionIds: [], unfinished: false }
    const subscriptionIds = await fanOut(tx, parts, events)
    return { moved: events.length, subscriptionIds, unfinished: true }
  })
}

/**
 * Deliveries of one statement. The organisations of an application can have thousands of subscriptions to all of it: five
 * million deliveries of a turn would be longer than a string can be, and fewer take longer than a statement may.
 */
const insertedAtOnce = 5000

async function fanOut(tx: Tx, parts: Parts, events: readonly MovedEvent[]): Promise<string[]> {
  const { standings, clock } = parts
  const subscriptions = await findSubscriptions(tx, events)
  const ofOrganization = Map.groupBy(events, (event) => event.organizationId)
  const wanted = subscriptions.flatMap((subscription) => {
    const within = subscription.scope === 'app' ? events : (ofOrganization.get(subscription.organizationId) ?? [])
    const matching = within.filter((event) => isFor(subscription, event))
    return matching.length === 0 ? [] : [{ subscription, matching }]
  })
  if (wanted.length === 0) return []
  const standingOf = await standings.of(wanted.map(({ subscription }) => subscription))
  const createdAt = new Date(clock.now()).toISOString()
  const told = new Set<string>()
  let deliveries: NewDelivery[] = []
  for (const { subscription, matching } of wanted) {
    const standing = standingOf.get(holderKey(subscription))
    if (!standing) {
      // Without the credential that it was saved with nobody can say what it may know.
      await disableSubscription(tx, subscription, 'credential_revoked', clock.now())
      continue
    }
    const asked = matching.filter((event) => isTest(event) || wantsSubject(subscription.wanted, event, standing))
    for (const event of await heardBy(parts, subscription, standing, asked)) {
      deliveries.push({
        organization_id: subscription.organizationId,
        delivery_id: uuidv7(clock.now()),
        subscription_id: subscription.subscriptionId,
        app_id: subscription.appId,
        event_organization_id: event.organizationId,
        event_id: event.eventId,
        event_key: event.eventKey,
        event_version: event.eventVersion,
        created_at: createdAt,
        trigger: isTest(event) ? 'test' : 'schedule',
      })
      told.add(subscription.subscriptionId)
      if (deliveries.length < insertedAtOnce) continue
      await insertDeliveries(tx, deliveries)
      deliveries = []
    }
  }
  await insertDeliveries(tx, deliveries)
  return [...told]
}

/**
 * Those of the events that the subscription may know of. Where that cannot be said, all: when they are sent it is asked again,
 * and what stands against one subscription must not hold up the events of all the others behind it.
 */
async function heardBy(
  { database, log }: Parts,
  { subscriptionId }: SubscriptionRow,
  standing: Standing,
  events: readonly MovedEvent[],
): Promise<readonly MovedEvent[]> {
  try {
    return await knowable(database, standing, events)
  } catch (err) {
    log.warn({ err, subscriptionId }, 'What a subscription may know could not be said; asking again for each delivery.')
    return events
  }
}

/** A test is for the subscription that it tests, whatever else that asks for. */
function isFor(subscription: SubscriptionRow, event: MovedEvent): boolean {
  if (isTest(event)) return event.subscriptionId === subscription.subscriptionId
  return event.appId === subscription.appId && wantsType(subscription.wanted, event)
}

const isTest = ({ subscriptionId }: MovedEvent) => subscriptionId !== null
