import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Operation, Reply } from '../../kernel/operation.ts'
import { AppParams, Strict } from '../../kernel/schemas.ts'
import { withinScopes } from '../../shared/access/permissions.ts'
import { recordTenantAudit } from '../../shared/audit.ts'
import { type Context, operation } from '../../shared/context.ts'
import { pageOf } from '../../shared/cursors.ts'
import { requireRevision } from '../../shared/records/input.ts'
import { profileOf } from '../../shared/records/scope.ts'
import { RevisionQuery } from '../../shared/records/shapes.ts'
import { endQueued } from './delivery-store.ts'
import * as rules from './rules.ts'
import * as schema from './schema.ts'
import { hintOf, newSigningSecret, sealedFor } from './signing-secret.ts'
import * as store from './store.ts'

const base = '/v1/apps/{saasAppId}/webhooks'
const one = `${base}/{subscriptionId}`
// A secret and a destination must not pass through a model's context.
const common = { area: 'Webhooks', credentials: ['live'], mcp: false } as const
const reading = { ...common, scope: 'webhooks.read', rateClass: 'read', transaction: 'read' } as const
const writing = { ...common, scope: 'webhooks.manage', rateClass: 'write', transaction: 'write' } as const

const etag = {
  ETag: { description: 'The revision, quoted. Send it as If-Match to guard a change.', example: '"1"' },
}
const savingErrors = [
  'permission_denied',
  'webhook_destination_not_https',
  'webhook_destination_blocked',
  'webhook_event_unknown',
  'webhook_event_version_unknown',
  'webhook_scope_event_conflict',
] as const

const list = operation({
  ...reading,
  id: 'developerWebhooksList',
  method: 'GET',
  path: base,
  summary: 'List the subscriptions of the organization, newest first.',
  description: 'A credential with an envelope sees those that it saved itself.',
  params: Strict(AppParams),
  query: schema.ListQuery,
  responses: { 200: schema.SubscriptionList },
  errors: ['cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler({ tx, caller, cursors, now }, { query }) {
    const { rows, nextCursor } = await pageOf(
      cursors,
      ['webhooks', caller.organizationId],
      query,
      (after, limit) => store.findSubscriptions(tx, caller, { beforeId: after?.[0], limit }),
      ({ subscriptionId }) => [subscriptionId],
    )
    return { status: 200, body: { items: rows.map((row) => rules.subscriptionOf(row, now)), nextCursor } }
  },
})

const get = operation({
  ...reading,
  id: 'developerWebhooksGet',
  method: 'GET',
  path: one,
  summary: 'Read a subscription.',
  description: 'With how its receiver answers, and without its secret.',
  params: schema.SubscriptionParams,
  responses: { 200: schema.Subscription },
  responseHeaders: etag,
  errors: ['webhook_subscription_not_found'],

  async handler({ tx, caller, now }, { params }) {
    const row = await store.findSubscription(tx, caller, params.subscriptionId)
    if (!row) throw fail('webhook_subscription_not_found')
    return answer(rules.subscriptionOf(row, now))
  },
})

const create = operation({
  ...writing,
  id: 'developerWebhooksCreate',
  method: 'POST',
  path: base,
  summary: 'Subscribe to events, and get the signing secret once.',
  description: `Deliveries carry what the credential that makes this request may read, at the time of each attempt, and end
when it is revoked. Some events take a scope of their own, those of records for instance \`records.read\`; who lacks it is
told which. The scope \`app\` takes a credential without an envelope. Repeating the request with its
Idempotency-Key shows the secret again.`,
  confidential: true,
  params: Strict(AppParams),
  body: schema.CreateBody,
  responses: { 201: schema.SubscriptionWithSecret },
  responseHeaders: {
    ...etag,
    Location: { description: 'The address of the subscription.', example: '/v1/apps/…/webhooks/…' },
  },
  errors: [...savingErrors, 'webhook_subscription_limit_reached'],

  async handler(context, { body }) {
    const { tx, caller, secrets, destinations, now } = context
    const { displayName, events, scope = 'account', enabled = true } = body
    rules.requireReach(scope, caller)
    rules.requireEvents(events, scope, caller, await readableObjects(context))
    const destinationUrl = rules.acceptedUrl(destinations.check(body.destinationUrl))
    if ((await store.countSubscriptions(tx, caller)) >= rules.subscriptionsMax) {
      throw fail('webhook_subscription_limit_reached')
    }
    const subscriptionId = uuidv7(now)
    const createdAt = new Date(now).toISOString()
    const secret = newSigningSecret()
    const secretSealed = await secrets.seal(secret, sealedFor(subscriptionId))
    const state = rules.stateAfter({ enabled: true, disabledReason: null, disabledAt: null }, enabled, createdAt)
    const facts = { displayName, destinationUrl, events, ...state }
    const made = { ...facts, subscriptionId, scope, secretSealed, secretHint: hintOf(secret), createdAt }
    await store.insertSubscription(tx, caller, made)
    const after = await recordChange(context, 'created', subscriptionId, null)
    const location = `${base.replace('{saasAppId}', caller.appId)}/${subscriptionId}`
    return { status: 201, body: { ...after, secret }, headers: { ...answer(after).headers, location } }
  },
})

const replace = operation({
  ...writing,
  id: 'developerWebhooksUpdate',
  method: 'PUT',
  path: one,
  summary: 'Replace name, destination and events of a subscription, enable or disable it.',
  description: `Its scope stays. From then on deliveries carry what the credential that makes this request may read.
Without \`enabled\` it stays as it is. Disabling ends the deliveries that wait; they can be tried by hand once it is enabled.
Enabling it, or another destination, begins with a clean record of the receiver. Deliveries that wait go to the new
destination.`,
  params: schema.SubscriptionParams,
  body: schema.ReplaceBody,
  ifMatch: true,
  responses: { 200: schema.Subscription },
  responseHeaders: etag,
  errors: [...savingErrors, 'webhook_subscription_not_found', 'revision_conflict'],

  async handler(context, { params, body, ifMatch }) {
    const { tx, caller, destinations } = context
    const before = await locked(context, params.subscriptionId)
    requireRevision(before.revision, body.expectedRevision, ifMatch)
    const { displayName, events, scope = before.scope, enabled = before.enabled } = body
    if (scope !== before.scope) {
      throw fail('validation_failed', { field: 'scope', message: 'The scope of a subscription cannot be changed.' })
    }
    rules.requireReach(scope, caller)
    // Objects that are gone by now tell it nothing, and must not keep anybody from saving what is there.
    const named = before.events.flatMap(({ objectKeys = [] }) => objectKeys)
    rules.requireEvents(events, scope, caller, [...(await readableObjects(context)), ...named])
    const destinationUrl = rules.acceptedUrl(destinations.check(body.destinationUrl))
    const now = new Date(context.now).toISOString()
    const facts = { displayName, destinationUrl, events, ...rules.stateAfter(before, enabled, now) }
    if (!rules.changes(before, facts, caller)) return answer(rules.subscriptionOf(before, context.now))
    await store.replaceSubscription(tx, caller, before.subscriptionId, { ...facts, now })
    if (before.enabled && !enabled) await endQueued(tx, caller, before.subscriptionId, now)
    const isOtherReceiver = destinationUrl !== before.destinationUrl
    if (isOtherReceiver || (!before.enabled && enabled)) await store.forgetHealth(tx, caller, before.subscriptionId)
    return answer(await recordChange(context, 'updated', before.subscriptionId, before))
  },
})

const remove = operation({
  ...writing,
  id: 'developerWebhooksDelete',
  method: 'DELETE',
  path: one,
  summary: 'End a subscription for good.',
  description: 'Deliveries that wait end as failed. What was delivered stays in the list of deliveries for 30 days.',
  params: schema.SubscriptionParams,
  query: RevisionQuery,
  ifMatch: true,
  responses: { 200: schema.Subscription },
  errors: ['webhook_subscription_not_found', 'revision_conflict'],

  async handler(context, { params, query, ifMatch }) {
    const { tx, caller } = context
    const before = await locked(context, params.subscriptionId)
    requireRevision(before.revision, query.expectedRevision, ifMatch)
    const { subscriptionId } = before
    const shown = rules.subscriptionOf(before, context.now)
    await endQueued(tx, caller, subscriptionId, new Date(context.now).toISOString())
    await store.removeSubscription(tx, caller, subscriptionId)
    const target = { type: 'webhook_subscription', id: subscriptionId }
    const entry = { action: 'webhook_subscription.deleted', target, before: shown, after: null }
    await recordTenantAudit({ ...context, actor: caller.actor }, entry)
    return { status: 200, body: shown }
  },
})

const rotateSecret = operation({
  ...writing,
  id: 'developerWebhooksRotateSecret',
  method: 'POST',
  path: `${one}/rotate-secret`,
  summary: 'Issue a new signing secret and return it once.',
  description: `With \`overlapSeconds\` deliveries are signed with both secrets for so long, so that a receiver can be given
the new one without losing any; otherwise the old one ends at once. There are never more than two. Repeating the request with
its Idempotency-Key shows the secret again.`,
  confidential: true,
  params: schema.SubscriptionParams,
  body: schema.RotateBody,
  bodyOptional: true,
  responses: { 200: schema.SubscriptionWithSecret },
  responseHeaders: etag,
  errors: ['webhook_subscription_not_found'],

  async handler(context, { params, body }) {
    const { tx, caller, secrets, now } = context
    const before = await locked(context, params.subscriptionId)
    const { subscriptionId } = before
    const overlapMs = (body.overlapSeconds ?? 0) * 1000
    const secret = newSigningSecret()
    await store.replaceSecret(tx, caller, subscriptionId, {
      sealed: await secrets.seal(secret, sealedFor(subscriptionId)),
      hint: hintOf(secret),
      now: new Date(now).toISOString(),
      overlapsUntil: overlapMs > 0 ? new Date(now + overlapMs).toISOString() : null,
    })
    const after = await recordChange(context, 'secret_rotated', subscriptionId, before)
    return { ...answer(after), body: { ...after, secret } }
  },
})

const test = operation({
  ...writing,
  id: 'developerWebhooksTest',
  method: 'POST',
  path: `${one}/test`,
  summary: 'Send a test to the destination of a subscription.',
  description:
    'An event `webhook.test`, whatever the subscription asks for, in one attempt. `deliveriesUrl` shows what became of it, within a moment.',
  params: schema.SubscriptionParams,
  responses: { 202: schema.TestSent },
  errors: ['webhook_subscription_not_found', 'webhook_subscription_disabled'],

  async handler(context, { params }) {
    const { tx, caller, now } = context
    const { subscriptionId, enabled } = await locked(context, params.subscriptionId)
    if (!enabled) throw fail('webhook_subscription_disabled')
    const eventId = uuidv7(now)
    await store.insertTest(tx, caller, { eventId, subscriptionId, now: new Date(now).toISOString() })
    const deliveriesUrl = `/v1/apps/${caller.appId}/webhook-deliveries?eventId=${eventId}`
    return { status: 202, body: { subscriptionId, eventId, deliveriesUrl } }
  },
})

async function readableObjects(context: Context): Promise<string[]> {
  return [...withinScopes(await profileOf(context), context.caller).objects.keys()]
}

async function locked({ tx, caller }: Context, subscriptionId: string): Promise<store.SubscriptionRow> {
  const row = await store.lockSubscription(tx, caller, subscriptionId)
  if (!row) throw fail('webhook_subscription_not_found')
  return row
}

function answer(body: schema.SubscriptionView): Reply {
  return { status: 200, body, headers: { etag: `"${body.revision}"` } }
}

/** Writes the change into the audit log; returns the subscription as it is now. */
async function recordChange(
  context: Context,
  what: 'created' | 'updated' | 'secret_rotated',
  subscriptionId: string,
  before: store.SubscriptionRow | null,
): Promise<schema.SubscriptionView> {
  const { tx, caller, now } = context
  const row = await store.findSubscription(tx, caller, subscriptionId)
  const after = rules.subscriptionOf(row!, now)
  await recordTenantAudit(
    { ...context, actor: caller.actor },
    {
      action: `webhook_subscription.${what}`,
      target: { type: 'webhook_subscription', id: subscriptionId },
      before: before && rules.subscriptionOf(before, now),
      after,
    },
  )
  return after
}

export const subscriptionOperations: readonly Operation<Context>[] = [
  list,
  create,
  get,
  replace,
  remove,
  rotateSecret,
  test,
]
