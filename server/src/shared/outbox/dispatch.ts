import type { Clock } from '../../kernel/clock.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { Database } from '../database/database.ts'
import { type EventHead, knowable } from './disclosure.ts'
import {
  disableForLostCredential,
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
  /** Another process was at it. */
  readonly busy: boolean
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
}

/** One turn: fan-out and marking as dispatched are one transaction, so a crash leaves both undone. */
export function dispatchBatch({ database, standings, clock }: Parts, limit: number): Promise<Dispatched> {
  return database.as('portico_system', async (tx) => {
    const events = await moveEvents(tx, limit)
    if (events === 'busy') return { moved: 0, subscriptionIds: [], busy: true }
    if (events.length === 0) return { moved: 0, subscriptionIds: [], busy: false }
    const subscriptionIds = await fanOut(tx, { database, standings, clock }, events)
    return { moved: events.length, subscriptionIds, busy: false }
  })
}

async function fanOut(tx: Tx, { database, standings, clock }: Parts, events: readonly MovedEvent[]): Promise<string[]> {
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
  const deliveries: NewDelivery[] = []
  for (const { subscription, matching } of wanted) {
    const standing = standingOf.get(holderKey(subscription))
    if (!standing) {
      await disableForLostCredential(tx, subscription, createdAt)
      continue
    }
    for (const event of await knowable(database, standing, matching)) {
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
        trigger: event.subscriptionId === null ? 'schedule' : 'test',
      })
    }
  }
  await insertDeliveries(tx, deliveries)
  return [...new Set(deliveries.map((delivery) => delivery.subscription_id))]
}

/** A test is for the subscription that it tests, whatever else that asks for. */
function isFor(subscription: SubscriptionRow, event: MovedEvent): boolean {
  if (event.subscriptionId !== null) return event.subscriptionId === subscription.subscriptionId
  return event.appId === subscription.appId && subscription.wanted.has(`${event.eventKey} ${event.eventVersion}`)
}
