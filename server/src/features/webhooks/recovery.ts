import Type from 'typebox'
import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import { momentOf } from '../../kernel/moment.ts'
import { Strict, Timestamp } from '../../kernel/schemas.ts'
import { operation } from '../../shared/context.ts'
import { type Work, type WorkContext, type WorkEnd, workKind } from '../../shared/operations/kind.ts'
import { acceptedHeaders, OperationAccepted } from '../../shared/operations/schema.ts'
import { wantedOf, wantsSubject } from '../../shared/outbox/choices.ts'
import { knowable } from '../../shared/outbox/disclosure.ts'
import { insertDeliveries, type NewDelivery } from '../../shared/outbox/dispatch-store.ts'
import { noteQueued } from '../../shared/outbox/emitted.ts'
import { standingOf } from '../../shared/outbox/standings.ts'
import { type AskedEvent, findAsked, requeueFailed, type Span } from './recovery-store.ts'
import { SubscriptionParams } from './schema.ts'
import { findSubscription, lockSubscription, type SubscriptionRow } from './store.ts'

/** Resends what a receiver missed while it, or its subscription, was not there (contract 6). */
const RecoverBody = Strict({
  since: Timestamp(
    'From when on: the time of the delivery, or of an event that was never delivered. At most 30 days ago.',
  ),
  until: Type.Optional(Timestamp('Until when, not included; now, where it is absent.')),
})

const keptMs = 30 * 24 * 60 * 60 * 1000

export const recover = operation({
  id: 'developerWebhooksRecover',
  method: 'POST',
  path: '/v1/apps/{saasAppId}/webhooks/{subscriptionId}/recover',
  area: 'Webhooks',
  summary: 'Send again what failed, and what was never sent, since a time.',
  description: `Answers 202: deliveries that failed are tried again, with as many attempts as a new one has and under their
ids; then events that the subscription asks for and that there is no delivery of, because it was disabled or did not exist yet,
are delivered. What was delivered is not sent again. Each carries what the credential of the subscription may read now.`,
  credentials: ['live'],
  scope: 'webhooks.manage',
  rateClass: 'batch',
  transaction: 'write',
  mcp: false, // it makes the service call somebody
  params: SubscriptionParams,
  body: RecoverBody,
  responses: { 202: OperationAccepted },
  responseHeaders: acceptedHeaders,
  errors: ['webhook_subscription_not_found', 'webhook_subscription_disabled', 'operation_limit_reached'],

  async handler(context, { params, body }) {
    const { tx, caller, now, operations } = context
    const subscription = await findSubscription(tx, caller, params.subscriptionId)
    if (!subscription) throw fail('webhook_subscription_not_found')
    if (!subscription.enabled) throw fail('webhook_subscription_disabled')
    const since = momentOf(body.since, 'since')
    const until = body.until === undefined ? now : momentOf(body.until, 'until')
    if (since < now - keptMs) {
      throw fail('validation_failed', { field: 'since', message: 'Events and deliveries are kept for 30 days.' })
    }
    if (body.until === undefined && since >= now) {
      throw fail('validation_failed', { field: 'since', message: 'Expected a time that is past.' })
    }
    if (until <= since) throw fail('validation_failed', { field: 'until', message: 'Expected a time after `since`.' })
    const input: RecoveryInput = {
      subscriptionId: subscription.subscriptionId,
      since: new Date(since).toISOString(),
      until: new Date(until).toISOString(),
    }
    return operations.begin(context, { type: recovery, scope: 'webhooks.manage', input })
  },
})

const recovery = 'webhooks.recover'

interface RecoveryInput extends Span {
  readonly subscriptionId: string
}

interface RecoveryCheckpoint {
  /** The last failed delivery that was put back; null before the first, or when all were. */
  readonly afterId: string | null
  readonly failedDone: boolean
  /** The last event that was looked at. */
  readonly afterPosition: number
  readonly missedDone: boolean
  readonly resent: number
  readonly missed: number
}

type RecoveryWork = Work<RecoveryInput, RecoveryCheckpoint>

const first: RecoveryCheckpoint = {
  afterId: null,
  failedDone: false,
  afterPosition: 0,
  missedDone: false,
  resent: 0,
  missed: 0,
}
const failedAtOnce = 500
const eventsAtOnce = 500

export const recoverKind = workKind<RecoveryInput, RecoveryCheckpoint>({ type: recovery, run: runRecovery })

async function runRecovery(work: RecoveryWork): Promise<WorkEnd> {
  let at = work.checkpoint ?? first
  while (!at.failedDone) at = await advance(work, at, resendFailed)
  while (!at.missedDone) at = await advance(work, at, sendMissed)
  const { resent, missed } = at
  return { status: 'succeeded', result: { subscriptionId: work.input.subscriptionId, resent, missed } }
}

type Advance = (
  context: WorkContext,
  input: RecoveryInput,
  at: RecoveryCheckpoint,
  subscription: SubscriptionRow,
) => Promise<RecoveryCheckpoint>

/** One step, in one transaction with the point that it came to. */
async function advance(work: RecoveryWork, at: RecoveryCheckpoint, take: Advance): Promise<RecoveryCheckpoint> {
  let next = at
  await work.step(async (context) => {
    const subscription = await lockSubscription(context.tx, context.caller, work.input.subscriptionId)
    if (!subscription) throw fail('webhook_subscription_not_found')
    if (!subscription.enabled) throw fail('webhook_subscription_disabled')
    next = await take(context, work.input, at, subscription)
    noteQueued(context.tx)
    const done = next.resent + next.missed
    return { checkpoint: next, progress: { total: null, processed: done, succeeded: done, failed: 0 } }
  })
  return next
}

const resendFailed: Advance = async ({ tx, caller, now }, input, at) => {
  const wanted = { ...input, afterId: at.afterId, now: new Date(now).toISOString(), limit: failedAtOnce }
  const ids = await requeueFailed(tx, caller, wanted)
  const failedDone = ids.length < failedAtOnce
  return { ...at, afterId: ids.at(-1) ?? at.afterId, failedDone, resent: at.resent + ids.length }
}

const sendMissed: Advance = async (context, input, at, subscription) => {
  const { tx, now } = context
  const asked = await findAsked(tx, input.subscriptionId, {
    ...input,
    afterPosition: at.afterPosition,
    limit: eventsAtOnce,
  })
  const known = await knownTo(
    context,
    subscription,
    asked.filter((event) => event.missed),
  )
  await insertDeliveries(
    tx,
    known.map((event) => deliveryOf(context, input, event, now)),
  )
  return {
    ...at,
    afterPosition: asked.at(-1)?.position ?? at.afterPosition,
    missedDone: asked.length < eventsAtOnce,
    missed: at.missed + known.length,
  }
}

/** With the rights of the credential that the subscription was saved with, not of the one that asks for the recovery. */
async function knownTo(
  { tx, catalogue, now }: WorkContext,
  { keyId, events: choices }: SubscriptionRow,
  events: readonly AskedEvent[],
): Promise<AskedEvent[]> {
  if (events.length === 0) return []
  const standing = await standingOf(tx, keyId, { catalogue, clock: { now: () => now } })
  if (!standing) return []
  const wanted = wantedOf(choices)
  const asked = events.filter((event) => wantsSubject(wanted, event, standing))
  return knowable({ inOrganization: (_, work) => work(tx) }, standing, asked)
}

function deliveryOf(
  { caller }: WorkContext,
  { subscriptionId }: RecoveryInput,
  event: AskedEvent,
  now: number,
): NewDelivery {
  return {
    organization_id: caller.organizationId,
    delivery_id: uuidv7(now),
    subscription_id: subscriptionId,
    app_id: caller.appId,
    event_organization_id: event.organizationId,
    event_id: event.eventId,
    event_key: event.eventKey,
    event_version: event.eventVersion,
    created_at: new Date(now).toISOString(),
    trigger: 'recover',
  }
}
