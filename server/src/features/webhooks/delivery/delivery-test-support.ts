import sql from 'sql-template-tag'
import { createTestDatabase } from '../../../../test/support/database.ts'
import { openTestSecrets } from '../../../../test/support/secrets.ts'
import { makeSeverable } from '../../../../test/support/severable.ts'
import { createTenant } from '../../../../test/support/tenants.ts'
import { testModel } from '../../../../test/support/test-model.ts'
import { uuidv7 } from '../../../kernel/ids.ts'
import { createCatalogue } from '../../../shared/catalogue/catalogue.ts'
import { openDatabase } from '../../../shared/database/database.ts'
import { keepPresence } from '../../../shared/database/presence.ts'
import { createLog } from '../../../shared/log.ts'
import { createMetrics } from '../../../shared/metrics.ts'
import { createDispatcher } from '../../../shared/outbox/dispatcher.ts'
import { eventVersion } from '../../../shared/outbox/event-types.ts'
import { emitLifecycle } from '../../../shared/outbox/lifecycle.ts'
import { lifecycleEventVersion } from '../../../shared/outbox/lifecycle-events.ts'
import { createStandings } from '../../../shared/outbox/standings.ts'
import { createSafeFetch } from '../../../shared/safe-fetch/safe-fetch.ts'
import type { DeliveryView } from '../delivery-schema.ts'
import { newSigningSecret, sealedFor } from '../signing-secret.ts'
import { createDeliveryWorker, type DeliveryWorker, type DeliveryWorkerParts } from './worker.ts'

/** A database with two organisations, a clock that only tests move, and as many workers as a test wants. */
export type DeliveryTestbed = Awaited<ReturnType<typeof startDeliveryTestbed>>

export interface TestSubscription {
  readonly organizationId: string
  readonly subscriptionId: string
  readonly secret: string
}

type StoredDelivery = Pick<DeliveryView, 'deliveryId' | 'attemptCount' | 'maxAttempts' | 'attempts'> & {
  /** `queued` and `leased` of those that are not over. */
  readonly state: 'queued' | 'leased' | 'delivered' | 'failed'
  readonly category: string | null
  readonly dueAt: string | null
  readonly leaseNumber: number | null
}

const iso = (time: number) => new Date(time).toISOString()

export async function startDeliveryTestbed() {
  const testbed = await createTestDatabase({ poolSize: 20 })
  const { database } = testbed
  const tenant = await createTenant(database, {
    model: testModel,
    organizations: {
      a: {
        locations: ['north'],
        credentials: { live: {}, second: {}, sales: { envelope: { roles: ['support'], locations: 'all' } } },
      },
      b: { credentials: { live: {} } },
    },
  })
  let now = Date.now()
  const clock = { now: () => now }
  const logLines: string[] = []
  const log = createLog({ level: 'debug', pretty: false, destination: { write: (line) => void logLines.push(line) } })
  const secrets = await openTestSecrets(database)
  const standings = createStandings({ database, catalogue: createCatalogue({ behaviours: new Map() }), clock })
  const dispatcher = createDispatcher({ database, standings, clock, log, onDeliveries: () => {} })
  const safeFetch = createSafeFetch({ allowLoopback: true })
  const workers: DeliveryWorker[] = []
  const sever = await makeSeverable(testbed.login)
  const severed = openDatabase({ connection: sever.connection, poolSize: 2 })
  const { a, b } = tenant.organizations

  function startPresentWorker(options: Partial<DeliveryWorkerParts> = {}) {
    const presence = keepPresence(testbed.login)
    const worker = createDeliveryWorker({
      presence,
      metrics: createMetrics(),
      database,
      standings,
      secrets,
      safeFetch,
      clock,
      log,
      random: () => 0.5,
      ...options,
    })
    workers.push(worker)
    return { worker, presence }
  }

  async function subscribe(
    destinationUrl: string,
    {
      organization = a as { organizationId: string },
      keyId = a.credentials.live.keyId as string,
      scope = 'account',
      events = ['user.created'],
    } = {},
  ): Promise<TestSubscription> {
    const { organizationId } = organization
    const subscriptionId = uuidv7(now)
    const secret = newSigningSecret()
    const sealed = await secrets.seal(secret, sealedFor(subscriptionId))
    const wanted = events.map((eventKey) => ({
      eventKey,
      eventVersion: eventKey.startsWith('record.') ? eventVersion : lifecycleEventVersion,
    }))
    await database.inOrganization(organizationId, (tx) =>
      tx.rows(sql`INSERT INTO portico.webhook_subscription (organization_id, subscription_id, app_id, display_name,
          destination_url, scope, events, key_id, secret_sealed, secret_hint)
        VALUES (${organizationId}, ${subscriptionId}, ${tenant.appId}, 'Test', ${destinationUrl}, ${scope},
          ${JSON.stringify(wanted)}, ${keyId}, ${sealed}, ${secret.slice(-4)})`),
    )
    return { organizationId, subscriptionId, secret }
  }

  /** Facts about that many users, each with a delivery to every subscription that they are for. */
  async function emit(count = 1, organizationId: string = a.organizationId): Promise<void> {
    await database.inOrganization(organizationId, async (tx) => {
      for (let n = 0; n < count; n++) {
        const userId = uuidv7(now)
        const person = { email: `u${n}@a.example`, displayName: `Zoë ${n}`, userTypeKey: 'staff' }
        await emitLifecycle(
          { tx, actor: { kind: 'system', id: 'test' }, now },
          {
            eventKey: 'user.created',
            saasAppId: tenant.appId,
            data: { organizationId, userId, ...person, isOwner: false, status: 'active' },
          },
        )
      }
    })
    await dispatcher.dispatchAll()
  }

  /** Of one subscription, or of all; the oldest first. */
  function deliveries(subscriptionId?: string): Promise<StoredDelivery[]> {
    const wanted = subscriptionId ?? null
    return database.as('portico_system', (tx) =>
      tx.rows<StoredDelivery>(sql`
        SELECT delivery_id AS "deliveryId", attempt_count AS "attemptCount", max_attempts AS "maxAttempts", attempts,
          CASE WHEN leased_until IS NULL THEN 'queued' ELSE 'leased' END AS state, NULL AS category, due_at AS "dueAt",
          lease_number AS "leaseNumber"
        FROM portico.webhook_queue WHERE ${wanted}::uuid IS NULL OR subscription_id = ${wanted}
        UNION ALL
        SELECT delivery_id, attempt_count, max_attempts, attempts, state, category, NULL, NULL
        FROM portico.webhook_delivery WHERE ${wanted}::uuid IS NULL OR subscription_id = ${wanted}
        ORDER BY 1`),
    )
  }

  return {
    ...testbed,
    tenant,
    a,
    b,
    clock,
    secrets,
    standings,
    safeFetch,
    /** The same database, over a connection that a test can cut. */
    severed,
    sever,
    logLines,
    startPresentWorker,
    startWorker: (options?: Partial<DeliveryWorkerParts>): DeliveryWorker => startPresentWorker(options).worker,
    subscribe,
    emit,
    deliveries,
    dispatch: () => dispatcher.dispatchAll(),
    advance(ms: number) {
      now += ms
    },
    iso: (ms = 0) => iso(now + ms),
    /** What a test leaves must not reach the next. */
    async forget() {
      await database.as('portico_system', async (tx) => {
        await tx.rows(sql`DELETE FROM portico.webhook_queue`)
        await tx.rows(sql`UPDATE portico.webhook_subscription SET enabled = false, disabled_at = now()`)
      })
    },
    /** The only delivery of a subscription. */
    async delivery(subscriptionId: string): Promise<StoredDelivery> {
      const [one, ...more] = await deliveries(subscriptionId)
      if (!one || more.length > 0) throw new Error(`There is not one delivery but ${more.length + 1}.`)
      return one
    },
    async subscription(subscriptionId: string) {
      const [row] = await database.as('portico_system', (tx) =>
        tx.rows<{
          enabled: boolean
          disabledReason: string | null
          revision: number
          consecutiveFailures: number | null
          firstFailureAt: string | null
          lastSuccessAt: string | null
        }>(sql`SELECT s.enabled, s.disabled_reason AS "disabledReason", s.revision,
            h.consecutive_failures AS "consecutiveFailures", h.first_failure_at AS "firstFailureAt",
            h.last_success_at AS "lastSuccessAt"
          FROM portico.webhook_subscription s LEFT JOIN portico.webhook_health h USING (organization_id, subscription_id)
          WHERE s.subscription_id = ${subscriptionId}`),
      )
      return row
    },
    async stop() {
      await Promise.all(workers.map((worker) => worker.close()))
      await safeFetch.close()
      await severed.close()
      await sever.cut()
      await testbed.drop()
    },
  }
}
