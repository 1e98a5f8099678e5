import sql from 'sql-template-tag'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type Receiver, startReceiver } from '../../../../test/support/receiver.ts'
import { uuidv7 } from '../../../kernel/ids.ts'
import { applyModel } from '../../../shared/modelling/apply.ts'
import { eventVersion } from '../../../shared/outbox/event-types.ts'
import { lifecycleEventVersion } from '../../../shared/outbox/lifecycle-events.ts'
import { type DeliveryTestbed, startDeliveryTestbed } from './delivery-test-support.ts'
import type { DeliveryWorker } from './worker.ts'

/** What of an event a delivery may carry is decided at each attempt, with the rights of that moment. */
let bed: DeliveryTestbed
let worker: DeliveryWorker
const receivers: Receiver[] = []

beforeAll(async () => {
  bed = await startDeliveryTestbed()
  worker = bed.startWorker()
})
afterEach(async () => {
  await Promise.all(receivers.splice(0).map((receiver) => receiver.close()))
  await bed.forget()
})
afterAll(() => bed.stop())

/** Answers with these statuses in turn, the last one for ever. */
async function receive(...codes: number[]) {
  let turn = 0
  const receiver = await startReceiver((_request, response) =>
    response.writeHead(codes[Math.min(turn++, codes.length - 1)]!).end(),
  )
  receivers.push(receiver)
  return { receiver, url: `http://127.0.0.1:${receiver.port}/` }
}

test('a credential that is revoked between two attempts disables its subscriptions, and no others', async () => {
  const { receiver, url } = await receive(500)
  const { keyId } = bed.a.credentials.second
  const revoked = await bed.subscribe(url, { keyId })
  const kept = await bed.subscribe(url)
  await bed.emit()
  await worker.deliverAll()
  await bed.database.inOrganization(bed.a.organizationId, (tx) =>
    tx.rows(sql`WITH bumped AS (SELECT portico.bump_epoch(${bed.a.organizationId}::uuid))
      UPDATE portico.credential SET revoked_at = now() FROM bumped
      WHERE organization_id = ${bed.a.organizationId} AND key_id = ${keyId}`),
  )
  bed.advance(10_000)
  await worker.deliverAll()
  expect(receiver.requests).toHaveLength(3)
  expect(await bed.subscription(revoked.subscriptionId)).toMatchObject({
    enabled: false,
    disabledReason: 'credential_revoked',
  })
  expect(await bed.delivery(revoked.subscriptionId)).toMatchObject({
    state: 'failed',
    category: 'subscription_disabled',
    attemptCount: 1,
  })
  expect(await bed.subscription(kept.subscriptionId)).toMatchObject({ enabled: true })
})

test('an event of another organisation reaches no subscription of this one, whatever the scope says, unless all may know it', async () => {
  const { receiver, url } = await receive(200)
  const account = await bed.subscribe(url)
  const app = await bed.subscribe(url, { scope: 'app' })
  await bed.emit(1, bed.b.organizationId)
  await worker.deliverAll()
  expect(await bed.deliveries(account.subscriptionId)).toEqual([])
  expect(receiver.requests.map(({ body }) => JSON.parse(body).data.organizationId)).toEqual([bed.b.organizationId])
  expect(await bed.delivery(app.subscriptionId)).toMatchObject({ state: 'delivered' })
})

test('a field that a role may read no more is missing from the next attempt', async () => {
  const { receiver, url } = await receive(500, 200)
  const { keyId } = bed.a.credentials.sales
  await bed.subscribe(url, { keyId, events: ['record.updated'] })
  await emitDealUpdate()
  await worker.deliverAll()
  const hidden = { read: false, write: false }
  const deal = { read: true, fields: { amount: hidden, stage: hidden } }
  await applyModel(bed.database, bed.tenant.appId, {
    objects: [],
    roles: { support: { label: 'Support', objects: { deal } } },
  })
  bed.advance(5000)
  await worker.deliverAll()
  const [first, second] = receiver.requests.map(({ body }) => JSON.parse(body).data)
  expect(first.record.fields).toMatchObject({ name: 'Renewal', stage: 'open' })
  expect(first.record.fields).not.toHaveProperty('amount')
  expect(first.changedFields).toEqual(['stage'])
  expect(second.record.fields).toMatchObject({ name: 'Renewal' })
  expect(second.record.fields).not.toHaveProperty('stage')
  expect(second.changedFields).toEqual([])
})

test('an event of which nobody can say who may know it holds up no other, on its way out and when it is sent', async () => {
  const { receiver, url } = await receive(200)
  const { organizationId, credentials } = bed.a
  const stuck = await bed.subscribe(url, { keyId: credentials.sales.keyId, events: ['relationship.created'] })
  const well = await bed.subscribe(url)
  const end = { fromRecordId: 'none', fromObjectKey: 'deal', toRecordId: 'none', toObjectKey: 'deal' }
  const data = { organizationId, relationship: end }
  await bed.database.inOrganization(organizationId, (tx) =>
    tx.rows(sql`INSERT INTO portico.outbox (organization_id, event_id, app_id, event_key, event_version, occurred_at,
        subject_type, subject_id, actor_kind, actor_id, data)
      VALUES (${organizationId}, ${uuidv7(bed.clock.now())}, ${bed.tenant.appId}, 'relationship.created',
        ${lifecycleEventVersion}, ${bed.iso()}, 'relationship', ${uuidv7(bed.clock.now())}, 'system', 'test',
        ${JSON.stringify(data)})`),
  )
  await bed.emit()
  await worker.deliverAll()
  expect(receiver.requests).toHaveLength(1)
  expect(await bed.delivery(well.subscriptionId)).toMatchObject({ state: 'delivered' })
  expect(await bed.delivery(stuck.subscriptionId)).toMatchObject({ state: 'queued', attemptCount: 0 })
})

/** A record of the whole organisation, of which amount and stage changed. */
async function emitDealUpdate(): Promise<void> {
  const { organizationId } = bed.a
  const recordId = uuidv7(bed.clock.now())
  const fields = { name: 'Renewal', stage: 'open', amount: '12.00' }
  const data = { organizationId, record: { recordId, objectKey: 'deal', fields, revision: 2 } }
  await bed.database.inOrganization(organizationId, (tx) =>
    tx.rows(sql`INSERT INTO portico.outbox (organization_id, event_id, app_id, event_key, event_version, occurred_at,
        subject_type, subject_id, actor_kind, actor_id, object_id, changed_fields, data)
      SELECT ${organizationId}, ${uuidv7(bed.clock.now())}, app_id, 'record.updated', ${eventVersion}, ${bed.iso()},
        'record', ${recordId}, 'system', 'test', object_id, ${['amount', 'stage']}, ${JSON.stringify(data)}
      FROM portico.object_definition WHERE app_id = ${bed.tenant.appId} AND object_key = 'deal'`),
  )
  await bed.dispatch()
}
