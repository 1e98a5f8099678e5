import { fail } from '../../kernel/errors.ts'
import { momentOf } from '../../kernel/moment.ts'
import type { Operation } from '../../kernel/operation.ts'
import { AppParams, Strict } from '../../kernel/schemas.ts'
import { type Context, operation } from '../../shared/context.ts'
import { pageOf } from '../../shared/cursors.ts'
import * as schema from './delivery-schema.ts'
import * as store from './delivery-store.ts'
import { deliveryOf, requireEventType } from './rules.ts'

const base = '/v1/apps/{saasAppId}/webhook-deliveries'
// What receivers answer is theirs to choose: it must not pass through a model's context.
const common = { area: 'Webhooks', credentials: ['live'], mcp: false } as const
const reading = { ...common, scope: 'webhooks.read', rateClass: 'read', transaction: 'read' } as const

const list = operation({
  ...reading,
  id: 'developerWebhookDeliveriesList',
  method: 'GET',
  path: base,
  summary: 'List what was delivered, and what was not, newest first.',
  description: `Deliveries of the last 30 days, also those of subscriptions that were deleted since, with the last attempts of
each. All conditions must hold. A credential with an envelope sees the deliveries of subscriptions that it saved itself.`,
  params: Strict(AppParams),
  query: schema.DeliveryQuery,
  responses: { 200: schema.DeliveryList },
  errors: ['cursor_invalid', 'cursor_mismatch', 'page_size_exceeded', 'webhook_event_unknown'],

  async handler({ tx, caller, cursors }, { query }) {
    if (query.eventKey !== undefined) requireEventType(query.eventKey, 'eventKey')
    const { cursor: _, pageSize: __, createdFrom, createdTo, ...conditions } = query
    const wanted = {
      ...conditions,
      createdFrom: createdFrom && new Date(momentOf(createdFrom, 'createdFrom')).toISOString(),
      createdTo: createdTo && new Date(momentOf(createdTo, 'createdTo')).toISOString(),
    }
    const { subscriptionId, eventId, eventKey, state, category } = wanted
    const { rows, nextCursor } = await pageOf(
      cursors,
      [
        ...['webhook-deliveries', caller.organizationId, subscriptionId?.toLowerCase(), eventId?.toLowerCase()],
        ...[eventKey, state, category, wanted.createdFrom, wanted.createdTo],
      ],
      query,
      (after, limit) => store.findDeliveries(tx, caller, { ...wanted, beforeId: after?.[0], limit }),
      ({ deliveryId }) => [deliveryId],
    )
    return { status: 200, body: { items: rows.map(deliveryOf), nextCursor } }
  },
})

const get = operation({
  ...reading,
  id: 'developerWebhookDeliveriesGet',
  method: 'GET',
  path: `${base}/{deliveryId}`,
  summary: 'Read a delivery, with its last attempts.',
  description: 'Kept for 30 days.',
  params: schema.DeliveryParams,
  responses: { 200: schema.Delivery },
  errors: ['webhook_delivery_not_found'],

  async handler(context, { params }) {
    return { status: 200, body: deliveryOf(await visible(context, params.deliveryId)) }
  },
})

const retry = operation({
  ...common,
  id: 'developerWebhookDeliveriesRetry',
  method: 'POST',
  path: `${base}/{deliveryId}/retry`,
  summary: 'Try a delivery that failed once more, now.',
  description: `The same delivery with the same event, in one attempt. Of two requests at once one answers 200, the other 409:
what is on its way cannot be sent on its way again. Its subscription must be enabled.`,
  scope: 'webhooks.manage',
  rateClass: 'write',
  transaction: 'write',
  params: schema.DeliveryParams,
  responses: { 200: schema.Delivery },
  errors: ['webhook_delivery_not_found', 'webhook_delivery_not_retryable', 'webhook_subscription_disabled'],

  async handler(context, { params }) {
    const { tx, caller, now } = context
    const before = await visible(context, params.deliveryId)
    if (!deliveryOf(before).retryEligible) throw fail('webhook_delivery_not_retryable')
    if (!before.subscriptionEnabled) throw fail('webhook_subscription_disabled')
    const moved = await store.requeue(tx, caller, before.deliveryId, new Date(now).toISOString())
    if (!moved) throw fail('webhook_delivery_not_retryable')
    return { status: 200, body: deliveryOf(await visible(context, params.deliveryId)) }
  },
})

async function visible({ tx, caller }: Context, deliveryId: string): Promise<store.DeliveryRow> {
  const [row] = await store.findDeliveries(tx, caller, { deliveryId, limit: 1 })
  if (!row) throw fail('webhook_delivery_not_found')
  return row
}

export const deliveryOperations: readonly Operation<Context>[] = [list, get, retry]
