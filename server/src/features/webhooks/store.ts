import sql, { empty, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { EventChoice } from '../../shared/outbox/choices.ts'
import { emitEvents } from '../../shared/outbox/emit.ts'
import type { DisabledReason } from './schema.ts'

/** Every SQL statement about subscriptions. They run bound to the organisation of the caller. */
export interface SubscriptionRow {
  readonly subscriptionId: string
  readonly displayName: string
  readonly destinationUrl: string
  readonly scope: 'account' | 'app'
  readonly events: EventChoice[]
  readonly enabled: boolean
  readonly disabledReason: DisabledReason | null
  readonly disabledAt: string | null
  readonly keyId: string
  readonly secretHint: string
  readonly secretRotatedAt: string | null
  readonly previousSecretExpiresAt: string | null
  readonly revision: number
  readonly createdAt: string
  readonly updatedAt: string
  readonly consecutiveFailures: number
  readonly firstFailureAt: string | null
  readonly lastSuccessAt: string | null
}

const columns = sql`s.subscription_id AS "subscriptionId", s.display_name AS "displayName",
  s.destination_url AS "destinationUrl", s.scope, s.events, s.enabled, s.disabled_reason AS "disabledReason",
  s.disabled_at AS "disabledAt", s.key_id AS "keyId", s.secret_hint AS "secretHint",
  s.secret_rotated_at AS "secretRotatedAt", s.previous_secret_expires_at AS "previousSecretExpiresAt", s.revision,
  s.created_at AS "createdAt", s.updated_at AS "updatedAt",
  coalesce(h.consecutive_failures, 0) AS "consecutiveFailures", h.first_failure_at AS "firstFailureAt",
  h.last_success_at AS "lastSuccessAt"`
const tables = sql`portico.webhook_subscription s LEFT JOIN portico.webhook_health h
  ON h.organization_id = s.organization_id AND h.subscription_id = s.subscription_id`

/**
 * Whose subscriptions a credential sees and manages: all of its organisation, unless it has an envelope. Then its own:
 * what others receive, and what their receivers answer, may be more than it may read.
 */
export function manageable(caller: Caller): Sql {
  const own = caller.unrestricted ? empty : sql`AND s.key_id = ${caller.keyId}`
  return sql`s.organization_id = ${caller.organizationId} ${own}`
}

/** Newest first. */
export async function findSubscriptions(
  tx: Tx,
  caller: Caller,
  { beforeId, limit }: { readonly beforeId: string | undefined; readonly limit: number },
): Promise<SubscriptionRow[]> {
  return tx.rows(sql`SELECT ${columns} FROM ${tables}
    WHERE ${manageable(caller)} ${beforeId === undefined ? empty : sql`AND s.subscription_id < ${beforeId}`}
    ORDER BY s.subscription_id DESC LIMIT ${limit}`)
}

export async function findSubscription(tx: Tx, caller: Caller, id: string): Promise<SubscriptionRow | undefined> {
  const [row] = await tx.rows<SubscriptionRow>(
    sql`SELECT ${columns} FROM ${tables} WHERE ${manageable(caller)} AND s.subscription_id = ${id}`,
  )
  return row
}

/** Locked until the transaction ends, so that changes come one after the other. */
export async function lockSubscription(tx: Tx, caller: Caller, id: string): Promise<SubscriptionRow | undefined> {
  const [row] = await tx.rows<SubscriptionRow>(sql`SELECT ${columns} FROM ${tables}
    WHERE ${manageable(caller)} AND s.subscription_id = ${id} FOR NO KEY UPDATE OF s`)
  return row
}

/** How many the organisation has, whoever sees them; others that would add one wait until this transaction ends. */
export async function countSubscriptions(tx: Tx, { organizationId }: Caller): Promise<number> {
  // Two statements: each has a snapshot of its own, and the count must see what the last holder of the lock committed.
  const [, [row]] = await Promise.all([
    tx.rows(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`webhook subscriptions ${organizationId}`}, 0))`),
    tx.rows<{ count: number }>(sql`SELECT count(*) AS count FROM portico.webhook_subscription
      WHERE organization_id = ${organizationId}`),
  ])
  return row!.count
}

export interface SubscriptionFacts {
  readonly displayName: string
  readonly destinationUrl: string
  readonly events: readonly EventChoice[]
  readonly enabled: boolean
  readonly disabledReason: DisabledReason | null
  readonly disabledAt: string | null
}

export interface NewSubscription extends SubscriptionFacts {
  readonly subscriptionId: string
  readonly scope: 'account' | 'app'
  readonly secretSealed: Uint8Array
  readonly secretHint: string
  readonly createdAt: string
}

export async function insertSubscription(tx: Tx, caller: Caller, made: NewSubscription): Promise<void> {
  await tx.rows(sql`INSERT INTO portico.webhook_subscription (organization_id, subscription_id, app_id, display_name,
      destination_url, scope, events, enabled, disabled_reason, disabled_at, key_id, secret_sealed, secret_hint, created_at,
      updated_at)
    VALUES (${caller.organizationId}, ${made.subscriptionId}, ${caller.appId}, ${made.displayName}, ${made.destinationUrl},
      ${made.scope}, ${JSON.stringify(made.events)}, ${made.enabled}, ${made.disabledReason}, ${made.disabledAt},
      ${caller.keyId}, ${made.secretSealed}, ${made.secretHint}, ${made.createdAt}, ${made.createdAt})`)
}

/** From now on it is the caller's: no delivery carries what the caller may not read. */
export async function replaceSubscription(
  tx: Tx,
  caller: Caller,
  id: string,
  { now, ...facts }: SubscriptionFacts & { readonly now: string },
): Promise<void> {
  await tx.rows(sql`UPDATE portico.webhook_subscription SET display_name = ${facts.displayName},
      destination_url = ${facts.destinationUrl}, events = ${JSON.stringify(facts.events)}, enabled = ${facts.enabled},
      disabled_reason = ${facts.disabledReason}, disabled_at = ${facts.disabledAt}, key_id = ${caller.keyId},
      updated_at = ${now}, revision = revision + 1
    WHERE organization_id = ${caller.organizationId} AND subscription_id = ${id}`)
}

/** What is known of a receiver that failed says nothing about the one that is tried from now on. */
export async function forgetHealth(tx: Tx, { organizationId }: Caller, id: string): Promise<void> {
  await tx.rows(
    sql`DELETE FROM portico.webhook_health WHERE organization_id = ${organizationId} AND subscription_id = ${id}`,
  )
}

export interface RotatedSecret {
  readonly sealed: Uint8Array
  readonly hint: string
  readonly now: string
  /** Null: the old one ends at once. */
  readonly overlapsUntil: string | null
}

/** There are never more than two: a second rotation ends the oldest. */
export async function replaceSecret(
  tx: Tx,
  { organizationId }: Caller,
  id: string,
  { sealed, hint, now, overlapsUntil }: RotatedSecret,
): Promise<void> {
  await tx.rows(sql`UPDATE portico.webhook_subscription
    SET previous_secret_sealed = CASE WHEN ${overlapsUntil}::timestamptz IS NOT NULL THEN secret_sealed END,
      previous_secret_expires_at = ${overlapsUntil}, secret_sealed = ${sealed}, secret_hint = ${hint},
      secret_rotated_at = ${now}, updated_at = ${now}, revision = revision + 1
    WHERE organization_id = ${organizationId} AND subscription_id = ${id}`)
}

export async function removeSubscription(tx: Tx, { organizationId }: Caller, id: string): Promise<void> {
  await tx.rows(
    sql`DELETE FROM portico.webhook_subscription WHERE organization_id = ${organizationId} AND subscription_id = ${id}`,
  )
}

export interface NewTest {
  readonly eventId: string
  readonly subscriptionId: string
  readonly now: string
}

/** An event for one subscription alone, on the way of all events. */
export async function insertTest(tx: Tx, caller: Caller, { eventId, subscriptionId, now }: NewTest): Promise<void> {
  const { organizationId } = caller
  const data = { organizationId, subscriptionId, message: 'This is a test of the subscription.' }
  const subject = { subject_id: subscriptionId, subscription_id: subscriptionId }
  await emitEvents(tx, { ...caller, eventKey: 'webhook.test', subjectType: 'webhook_subscription' }, [
    { event_id: eventId, occurred_at: now, ...subject, data },
  ])
}
