import type { Caller } from '../../kernel/caller.ts'
import { fail } from '../../kernel/errors.ts'
import type { EventChoice } from '../../shared/outbox/choices.ts'
import { type EventType, eventTypeOf, eventTypes, mayHear } from '../../shared/outbox/event-types.ts'
import { noSuch } from '../../shared/records/hints.ts'
import type { Destination } from '../../shared/safe-fetch/destination.ts'
import type { DeliveryView } from './delivery-schema.ts'
import type { DeliveryRow } from './delivery-store.ts'
import { type SubscriptionView, urlLengthMax } from './schema.ts'
import type { SubscriptionFacts, SubscriptionRow } from './store.ts'

export const subscriptionsMax = 50

/** The one spelling of the URL that was checked. Throws 400 for what is no URL, 422 for one that must not be called. */
export function acceptedUrl(destination: Destination): string {
  const field = 'destinationUrl'
  if (destination.problem === null) {
    const { href } = destination.url
    if (href.length <= urlLengthMax) return href
    const message = `Written out, the URL must have at most ${urlLengthMax} characters.`
    throw fail('validation_failed', { field, message })
  }
  const { problem, sentence: message } = destination
  if (problem === 'not_https') throw fail('webhook_destination_not_https', { field, message })
  if (problem === 'blocked') throw fail('webhook_destination_blocked', { field, message })
  throw fail('validation_failed', { field, message })
}

/** The type of event that `field` names. Throws `webhook_event_unknown`, with the name that was probably meant. */
export function requireEventType(eventKey: string, field: string): EventType {
  const type = eventTypeOf(eventKey)
  if (type) return type
  const known = eventTypes.map((one) => one.eventKey)
  throw fail('webhook_event_unknown', { field, message: noSuch('event', eventKey, known) })
}

/**
 * Throws unless the caller may have all of these events, once each, in a subscription of that scope. `readable`: the keys of
 * the objects that it may read, or finds in the subscription already.
 */
export function requireEvents(
  events: readonly EventChoice[],
  scope: 'account' | 'app',
  caller: Caller,
  readable: readonly string[],
): void {
  const seen = new Set<string>()
  for (const [i, { eventKey, eventVersion, objectKeys }] of events.entries()) {
    const at = `events[${i}]`
    const type = requireEventType(eventKey, `${at}.eventKey`)
    if (type.eventVersion !== eventVersion) {
      const message = `The version of ${eventKey} is ${type.eventVersion}.`
      throw fail('webhook_event_version_unknown', { field: `${at}.eventVersion`, message })
    }
    if (seen.has(eventKey)) {
      throw fail('validation_failed', { field: `${at}.eventKey`, message: 'Name each event once.' })
    }
    seen.add(eventKey)
    if (!type.scopes.includes(scope)) throw fail('webhook_scope_event_conflict', { field: `${at}.eventKey` })
    requireHearing(type, caller)
    if (objectKeys !== undefined) requireObjects(objectKeys, type, readable, `${at}.objectKeys`)
  }
}

/** Throws unless events of the type are about records, and the caller may read those of all of these objects. */
function requireObjects(
  objectKeys: readonly string[],
  { eventKey, hasObject }: EventType,
  readable: readonly string[],
  field: string,
): void {
  if (!hasObject) {
    throw fail('validation_failed', { field, message: `${eventKey} is not about records: ask for it without objects.` })
  }
  requireReadable(objectKeys, readable, field)
  const seen = new Set<string>()
  for (const [i, objectKey] of objectKeys.entries()) {
    if (seen.has(objectKey))
      throw fail('validation_failed', { field: `${field}[${i}]`, message: 'Name each object once.' })
    seen.add(objectKey)
  }
}

/** Throws 400 for the first of the objects that is none of those that the caller may read. */
export function requireReadable(objectKeys: readonly string[], readable: readonly string[], field: string): void {
  const i = objectKeys.findIndex((key) => !readable.includes(key))
  if (i < 0) return
  throw fail('validation_failed', { field: `${field}[${i}]`, message: noSuch('object', objectKeys[i], readable) })
}

/** Some events show what a scope of its own is for, and some what no envelope holds. Throws unless the caller may hear of them. */
export function requireHearing(type: EventType, caller: Caller): void {
  const { eventKey, requires } = type
  if (mayHear(type, caller)) return
  if (requires === null || caller.scopes.has(requires)) {
    throw fail('permission_denied', { message: `The event ${eventKey} takes a credential without an envelope.` })
  }
  throw fail('scope_missing', {
    message: `The credential lacks the scope ${requires}, which the event ${eventKey} takes.`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${requires}"` },
  })
}

/** Events of every organisation are for those who are held to nothing in their own. */
export function requireReach(scope: 'account' | 'app', { unrestricted }: Caller): void {
  if (scope === 'account' || unrestricted) return
  throw fail('permission_denied', {
    message: 'A subscription with the scope app takes a credential without an envelope.',
  })
}

/** Whether it is enabled, and since when and why not. What is disabled already stays so for the reason that it has. */
export function stateAfter(
  before: Pick<SubscriptionRow, 'enabled' | 'disabledReason' | 'disabledAt'>,
  enabled: boolean,
  now: string,
): Pick<SubscriptionFacts, 'enabled' | 'disabledReason' | 'disabledAt'> {
  if (enabled) return { enabled, disabledReason: null, disabledAt: null }
  if (!before.enabled) return { enabled, disabledReason: before.disabledReason, disabledAt: before.disabledAt }
  return { enabled, disabledReason: 'manual', disabledAt: now }
}

/** Would saving this change anything? Who saves it counts: its rights decide what is delivered. */
export function changes(before: SubscriptionRow, facts: SubscriptionFacts, { keyId }: Caller): boolean {
  const told = ({ displayName, destinationUrl, events, enabled }: SubscriptionFacts) =>
    JSON.stringify([
      displayName,
      destinationUrl,
      enabled,
      events.map((one) => [one.eventKey, one.eventVersion, one.objectKeys]),
    ])
  return before.keyId !== keyId || told(before) !== told(facts)
}

/** The subscription as the API shows it at `now`, in milliseconds. */
export function subscriptionOf(row: SubscriptionRow, now: number): SubscriptionView {
  const { keyId: _, consecutiveFailures, firstFailureAt, lastSuccessAt, previousSecretExpiresAt, ...shown } = row
  const isPast = previousSecretExpiresAt !== null && Date.parse(previousSecretExpiresAt) <= now
  return {
    ...shown,
    health: { consecutiveFailures, firstFailureAt, lastSuccessAt },
    previousSecretExpiresAt: isPast ? null : previousSecretExpiresAt,
  }
}

export function deliveryOf({ subscriptionEnabled, ...shown }: DeliveryRow): DeliveryView {
  return { ...shown, retryEligible: shown.state === 'failed' && subscriptionEnabled !== null }
}
