import type { Answer, Sent } from '../../../test/support/http-client.ts'
import type { TestService } from '../../../test/support/service.ts'
import type { DeliveryView } from './delivery-schema.ts'
import type { SubscriptionView } from './schema.ts'

/** The webhook operations over HTTP, for tests. */
export interface WithSecret extends SubscriptionView {
  readonly secret: string
}

export interface Page<T> {
  readonly items: readonly T[]
  readonly nextCursor: string | null
}

export interface FeedItem {
  readonly id: string
  readonly type: string
  readonly subject: { readonly type: string; readonly id: string }
  readonly data: Readonly<Record<string, unknown>>
}

export interface FeedPage {
  readonly items: readonly FeedItem[]
  readonly nextCursor: string
  readonly hasMore: boolean
}

export const recordCreated = { eventKey: 'record.created', eventVersion: '2026-11-20' }
export const recordUpdated = { eventKey: 'record.updated', eventVersion: '2026-11-20' }
export const userCreated = { eventKey: 'user.created', eventVersion: '2026-09-14' }
export const newSubscription = {
  displayName: 'Warehouse',
  destinationUrl: 'https://hooks.northwind.example/portico',
  events: [recordUpdated],
}

export function webhookClient({ call, app }: Pick<TestService, 'call' | 'app'>, token: string) {
  const base = `/v1/apps/${app.appId}`
  const ask = <T>(method: string, path: string, sent: Sent = {}) =>
    call<T>(method, `${base}${path}`, { token, ...sent }) as Promise<Answer<T>>
  const one = (subscriptionId: string) => `/webhooks/${subscriptionId}`
  const queryOf = (query: object) =>
    new URLSearchParams(Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]))
  return {
    ask,
    types: () =>
      ask<{ items: readonly { eventKey: string; dataSchema: object; example: object }[] }>(
        'GET',
        '/webhook-event-types',
      ),
    create: (change: object = {}, sent: Sent = {}) =>
      ask<WithSecret>('POST', '/webhooks', { body: { ...newSubscription, ...change }, ...sent }),
    list: (query = {}) => ask<Page<SubscriptionView>>('GET', `/webhooks?${queryOf(query)}`),
    get: (id: string) => ask<SubscriptionView>('GET', one(id)),
    put: (id: string, change: object = {}, sent: Sent = {}) =>
      ask<SubscriptionView>('PUT', one(id), { body: { ...newSubscription, ...change }, ...sent }),
    remove: (id: string, sent: Sent = {}) => ask<SubscriptionView>('DELETE', one(id), sent),
    rotate: (id: string, body: object = {}, sent: Sent = {}) =>
      ask<WithSecret>('POST', `${one(id)}/rotate-secret`, { body, ...sent }),
    test: (id: string) => ask<{ eventId: string; deliveriesUrl: string }>('POST', `${one(id)}/test`),
    deliveries: (query = {}) => ask<Page<DeliveryView>>('GET', `/webhook-deliveries?${queryOf(query)}`),
    delivery: (id: string) => ask<DeliveryView>('GET', `/webhook-deliveries/${id}`),
    retry: (id: string) => ask<DeliveryView>('POST', `/webhook-deliveries/${id}/retry`),
    events: (query: string | object = {}) =>
      ask<FeedPage>('GET', `/events?${typeof query === 'string' ? query : queryOf(query)}`),
  }
}

export type WebhookClient = ReturnType<typeof webhookClient>

/** Status and code of a refusal, with the field that it names. */
export function refusal({ status, json }: Answer<unknown>): readonly unknown[] {
  const field = json.details?.[0]?.field
  return [status, json.code, ...(field === undefined ? [] : [field])]
}
