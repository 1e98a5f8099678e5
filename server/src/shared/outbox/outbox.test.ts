import { randomBytes } from 'node:crypto'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { objectOf } from '../../../test/support/application.ts'
import { type RecordClient, type RecordService, startRecordService } from '../../../test/support/record-service.ts'
import { createTenant, type Tenant } from '../../../test/support/tenants.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import { noBehaviours } from '../catalogue/behaviour.ts'
import { createCatalogue } from '../catalogue/catalogue.ts'
import type { ModelDocument } from '../modelling/document.ts'
import { envelopeOf } from './disclosure.ts'
import { dispatchBatch } from './dispatch.ts'
import { emitEvents } from './emit.ts'
import { lifecycleOf as emitChange } from './outbox-test-support.ts'
import { createStandings, holderKey } from './standings.ts'
import { type StoredEvent, storedEventColumns } from './stored-event.ts'

const full = { read: true, create: true, update: true, archive: true }
const version = '2026-11-20'
const model: ModelDocument = {
  objects: [
    objectOf('company', [{ fieldKey: 'name', dataType: 'text' }]),
    objectOf('deal', [
      { fieldKey: 'name', dataType: 'text', required: true },
      { fieldKey: 'amount', dataType: 'decimal' },
      { fieldKey: 'secret', dataType: 'text' },
      { fieldKey: 'number', dataType: 'autoNumber' },
      { fieldKey: 'company', dataType: 'reference', references: 'company' },
    ]),
    objectOf('vault', [{ fieldKey: 'name', dataType: 'text' }]),
  ],
  relationships: {
    parties: {
      label: 'Parties',
      inverseLabel: 'Deals',
      from: 'deal',
      to: 'company',
      cardinality: 'many-to-many',
      deleteRule: 'unlink',
    },
  },
  roles: {
    sales: {
      label: 'Sales',
      objects: { deal: { ...full, fields: { secret: { read: false, write: false } } }, company: { read: true } },
    },
  },
}

const plan = {
  model,
  organizations: {
    a: {
      locations: ['north', 'south'],
      users: { owner: { owner: true } },
      credentials: {
        live: {},
        north: { envelope: { roles: ['sales'], locations: ['north'] } },
        deaf: { scopes: ['webhooks.manage'] },
        revoked: {},
      },
    },
    b: { users: { owner: { owner: true } }, credentials: { live: {} } },
  },
} as const

let running: RecordService
let tenant: Tenant<typeof plan>
let deals: RecordClient
beforeAll(async () => {
  running = await startRecordService()
  tenant = await createTenant(running.db.database, plan)
  deals = running.records(tenant.appId, tenant.organizations.a.users.owner, 'deal')
})
afterAll(() => running?.close())
beforeEach(async () => {
  await dispatch()
  await asSystem(sql`DELETE FROM portico.webhook_queue`)
  await asSystem(sql`DELETE FROM portico.event`)
  await asSystem(sql`UPDATE portico.webhook_subscription SET enabled = false, disabled_at = now() WHERE enabled`)
})

const database = () => running.db.database
const asSystem = <Row>(statement: ReturnType<typeof sql>) =>
  database().as('portico_system', (tx) => tx.rows<Row>(statement))
const dispatch = () => running.service.dispatcher.dispatchAll()
const events = () =>
  asSystem<StoredEvent>(sql`SELECT ${storedEventColumns} FROM portico.event AS e ORDER BY e.position`)
const clock = { now: Date.now }
const log = { warn: () => undefined }
const inOutbox = async () => (await asSystem(sql`SELECT FROM portico.outbox`)).length

type Key = 'live' | 'north' | 'deaf' | 'revoked'
async function subscribe(
  wanted: readonly string[],
  { scope = 'account', key = 'live', of = 'a' }: { scope?: 'account' | 'app'; key?: Key; of?: 'a' | 'b' } = {},
): Promise<string> {
  const organization = tenant.organizations[of]
  const keyId = (organization.credentials as unknown as Record<Key, { keyId: string }>)[key].keyId
  const subscriptionId = uuidv7(Date.now())
  const list = wanted.map((one) => ({
    eventKey: one,
    eventVersion: /^(record|relationship|webhook)/.test(one) ? version : '2026-09-14',
  }))
  await database().inOrganization(organization.organizationId, (tx) =>
    tx.rows(sql`INSERT INTO portico.webhook_subscription (organization_id, subscription_id, app_id, display_name,
        destination_url, scope, events, key_id, secret_sealed, secret_hint)
      VALUES (${organization.organizationId}, ${subscriptionId}, ${tenant.appId}, 'Test', 'https://receiver.example/',
        ${scope}, ${JSON.stringify(list)}, ${keyId}, ${Buffer.from('sealed')}, 'aled')`),
  )
  return subscriptionId
}
const queued = async (subscriptionId: string) =>
  (
    await asSystem<{ eventKey: string }>(sql`SELECT event_key AS "eventKey" FROM portico.webhook_queue
      WHERE subscription_id = ${subscriptionId} ORDER BY delivery_id`)
  ).map(({ eventKey }) => eventKey)

const lifecycleOf = (of: 'a' | 'b', name: string) =>
  emitChange(database(), tenant.appId, tenant.organizations[of].organizationId, name)

describe('events of records', () => {
  test('creating, changing, archiving and restoring each leave one, with the record as it was then', async () => {
    const { body: created } = await deals.create({ fields: { name: 'Renewal', amount: '12345678901234567.89' } })
    await deals.update(created.recordId, {
      fields: { amount: '2' },
      ownerUserId: tenant.organizations.a.users.owner.userId,
    })
    await deals.archive(created.recordId)
    await deals.restore(created.recordId)
    await dispatch()
    const found = await events()
    expect(found.map((event) => event.eventKey)).toEqual([
      'record.created',
      'record.updated',
      'record.archived',
      'record.restored',
    ])
    const [first, second, third] = found.map((event) => event.data['record'] as Record<string, unknown>)
    expect(first).toMatchObject({ recordId: created.recordId, revision: 1, objectKey: 'deal' })
    expect(first!['fields']).toMatchObject({
      name: 'Renewal',
      amount: '12345678901234567.89',
      number: expect.anything(),
    })
    expect(second).toMatchObject({ revision: 2, fields: { amount: '2' } })
    expect([...found[1]!.changedFields!].sort()).toEqual(['amount', 'ownerUserId'])
    expect(third).toMatchObject({ revision: 3, archivedAt: expect.any(String) })
    expect(new Set(found.map((event) => event.eventId)).size).toBe(4)
    expect(await inOutbox()).toBe(0)
  })

  test('a change that changes nothing, and one that is refused, leave none', async () => {
    const { body: created } = await deals.create({ fields: { name: 'Quiet' } })
    await deals.update(created.recordId, { fields: { name: 'Quiet' } })
    await deals.create({ fields: { amount: '1' } })
    await deals.batch(
      [
        { operation: 'create', fields: { name: 'Undone' } },
        { operation: 'create', fields: {} },
      ],
      true,
    )
    await dispatch()
    expect((await events()).map((event) => event.subjectId)).toEqual([created.recordId])
  })

  test('several changes to a record in one transaction collapse to the last, with all that they changed', async () => {
    const { body: created } = await deals.create({ fields: { name: 'Busy' } })
    const item = (fields: object) => ({ operation: 'update', recordId: created.recordId, fields })
    await deals.batch([item({ name: 'One' }), item({ amount: '2' }), item({ name: 'Three' })])
    await dispatch()
    const [, update, ...rest] = await events()
    expect(rest).toEqual([])
    expect(update!.data['record']).toMatchObject({ revision: 4, fields: { name: 'Three', amount: '2' } })
    expect([...update!.changedFields!].sort()).toEqual(['amount', 'name'])
  })

  test('a batch of 200 leaves 200, in its order', async () => {
    const items = Array.from({ length: 200 }, (_, index) => ({
      operation: 'create',
      fields: { name: `Item ${index}` },
    }))
    const { body } = await deals.batch(items)
    await dispatch()
    expect((await events()).map((event) => event.subjectId)).toEqual(body.results.map((one) => one.record!.recordId))
  })

  test('links that come and go leave theirs, also when archiving a record ends them', async () => {
    const owner = tenant.organizations.a.users.owner
    const companies = running.records(tenant.appId, owner, 'company')
    const { body: deal } = await deals.create({ fields: { name: 'Linked' } })
    const { body: company } = await companies.create({ fields: { name: 'Northwind' } })
    const link = () =>
      running.send<{ relationshipId: string }>('developerRelationshipsCreate', owner, {
        params: { saasAppId: tenant.appId },
        body: { relationshipKey: 'parties', fromRecordId: deal.recordId, toRecordId: company.recordId },
      })
    const { body: made } = await link()
    // There already: nothing happens, and nothing is told.
    await link()
    await deals.archive(deal.recordId)
    await dispatch()
    const told = (await events()).filter((event) => event.subjectType === 'relationship')
    expect(told.map((event) => event.eventKey)).toEqual(['relationship.created', 'relationship.deleted'])
    expect(told.map((event) => event.subjectId)).toEqual([made.relationshipId, made.relationshipId])
    expect(told[0]!.data['relationship']).toMatchObject({
      relationshipKey: 'parties',
      fromObjectKey: 'deal',
      fromRecordId: deal.recordId,
      toObjectKey: 'company',
      toRecordId: company.recordId,
    })
  })
})

describe('fan-out', () => {
  test('reaches the subscriptions that ask for the event, of its own organization only', async () => {
    const created = await subscribe(['record.created'])
    const archived = await subscribe(['record.archived'])
    const other = await subscribe(['record.created'], { of: 'b' })
    await deals.create({ fields: { name: 'Told' } })
    await dispatch()
    expect(await Promise.all([created, archived, other].map(queued))).toEqual([['record.created'], [], []])
  })

  test('of scope app reaches lifecycle events of every organization, and no record of any', async () => {
    const app = await subscribe(['organization.updated', 'record.created'], { scope: 'app', of: 'b' })
    const account = await subscribe(['organization.updated'], { of: 'b' })
    await lifecycleOf('a', 'A')
    await lifecycleOf('b', 'B')
    await deals.create({ fields: { name: 'Private' } })
    await dispatch()
    expect(await queued(app)).toEqual(['organization.updated', 'organization.updated'])
    expect(await queued(account)).toEqual(['organization.updated'])
  })

  test('a credential with an envelope is told of the records in it', async () => {
    const enveloped = await subscribe(['record.created', 'record.updated', 'relationship.created'], { key: 'north' })
    const { locations, dataRoles, users } = tenant.organizations.a
    const placed = (more: object) => deals.create({ fields: { name: 'Placed' }, ...more })
    await placed({ dataRoleId: dataRoles['sales'], locationId: locations['south'] })
    await placed({ ownerUserId: users.owner.userId })
    await running
      .records(tenant.appId, users.owner, 'vault')
      .create({ fields: { name: 'Not for the role, whoever it belongs to' } })
    await dispatch()
    expect(await queued(enveloped)).toEqual([])

    const { body: north } = await placed({ dataRoleId: dataRoles['sales'], locationId: locations['north'] })
    await deals.update(north.recordId, { locationId: locations['south'] })
    await deals.update(north.recordId, { locationId: locations['north'] })
    await dispatch()
    expect(await queued(enveloped)).toEqual(['record.created', 'record.updated'])
  })

  test('a link is told of where both of its ends are seen', async () => {
    const enveloped = await subscribe(['relationship.created'], { key: 'north' })
    const { locations, dataRoles, users } = tenant.organizations.a
    const companies = running.records(tenant.appId, users.owner, 'company')
    const { body: deal } = await deals.create({ fields: { name: 'Placed' } })
    const link = (toRecordId: string) =>
      running.send('developerRelationshipsCreate', users.owner, {
        params: { saasAppId: tenant.appId },
        body: { relationshipKey: 'parties', fromRecordId: deal.recordId, toRecordId },
      })
    const hidden = { dataRoleId: dataRoles['sales'], locationId: locations['south'] }
    await link((await companies.create({ fields: { name: 'Hidden' }, ...hidden })).body.recordId)
    await dispatch()
    expect(await queued(enveloped)).toEqual([])
    await link((await companies.create({ fields: { name: 'Seen' } })).body.recordId)
    await dispatch()
    expect(await queued(enveloped)).toEqual(['relationship.created'])
  })

  test('a credential with an envelope is not told who the people of its organization are', async () => {
    const enveloped = await subscribe(['organization.updated'], { key: 'north' })
    const whole = await subscribe(['organization.updated'])
    await lifecycleOf('a', 'A')
    await dispatch()
    expect(await Promise.all([enveloped, whole].map(queued))).toEqual([[], ['organization.updated']])
  })

  test('a credential without the scope is told nothing; one that is revoked ends its subscription', async () => {
    const deaf = await subscribe(['record.created'], { key: 'deaf' })
    const lost = await subscribe(['record.created'], { key: 'revoked' })
    const { organizationId, credentials } = tenant.organizations.a
    await database().inOrganization(organizationId, async (tx) => {
      await tx.rows(sql`UPDATE portico.credential SET revoked_at = now() WHERE key_id = ${credentials.revoked.keyId}`)
      await tx.rows(sql`SELECT portico.bump_epoch(${organizationId})`)
    })
    await deals.create({ fields: { name: 'Unheard' } })
    await dispatch()
    expect(await Promise.all([deaf, lost].map(queued))).toEqual([[], []])
    const [row] = await asSystem<object>(sql`SELECT enabled, disabled_reason AS reason FROM portico.webhook_subscription
      WHERE subscription_id = ${lost}`)
    expect(row).toEqual({ enabled: false, reason: 'credential_revoked' })
  })

  test('what is told leaves out the fields that the credential may not read', async () => {
    await subscribe(['record.created', 'record.updated'], { key: 'north' })
    const { body: created } = await deals.create({ fields: { name: 'Open', secret: 'canary', amount: '1' } })
    await deals.update(created.recordId, { fields: { secret: 'canary two', amount: '2' } })
    await dispatch()
    const catalogue = createCatalogue({ behaviours: noBehaviours })
    const standings = createStandings({ database: database(), catalogue, clock: { now: Date.now } })
    const { organizationId, credentials } = tenant.organizations.a
    const holder = { keyId: credentials.north.keyId, organizationId, appId: tenant.appId }
    const standing = (await standings.of([holder])).get(holderKey(holder))!
    const [first, second] = (await events()).map((event) => envelopeOf(event, standing))
    expect(JSON.stringify([first, second])).not.toContain('canary')
    expect(JSON.stringify([first, second])).not.toContain('secret')
    const { fields } = (first!.data as { record: { fields: object } }).record
    // Those without a value too.
    expect(fields).toEqual({ name: 'Open', amount: '1', number: expect.anything(), company: null })
    expect(first).toMatchObject({
      type: 'record.created',
      version,
      appId: tenant.appId,
      subject: { type: 'record', id: created.recordId },
      data: { record: { displayName: 'Open', fields: { name: 'Open', amount: '1' } } },
    })
    expect(second).toMatchObject({ data: { changedFields: ['amount'] } })
    expect(Object.keys(first!)).toEqual(['id', 'type', 'version', 'occurredAt', 'appId', 'subject', 'actor', 'data'])
  })
})

describe('nothing is lost and nothing is doubled', () => {
  test('events are the commits: with a fifth rolled back, commits out of order, and three dispatchers at once', async () => {
    const subscription = await subscribe(['record.created'])
    const kept: string[] = []
    const { organizationId } = tenant.organizations.a
    const others = Array.from({ length: 3 }, () =>
      createStandings({
        database: database(),
        catalogue: createCatalogue({ behaviours: noBehaviours }),
        clock: { now: Date.now },
      }),
    )
    let writing = true
    const dispatching = others.map(async (standings) => {
      while (writing) await dispatchBatch({ database: database(), standings, clock, log }, 7)
    })
    await Promise.all(
      Array.from({ length: 8 }, async (_, writer) => {
        for (let index = 0; index < 25; index++) {
          const undone = index % 5 === writer % 5
          const eventId = uuidv7(Date.now())
          const work = database().inOrganization(organizationId, async (tx) => {
            await tx.rows(sql`INSERT INTO portico.outbox (organization_id, app_id, event_key, event_version, subject_type,
                actor_kind, actor_id, event_id, occurred_at, subject_id, object_id, data)
              SELECT ${organizationId}, ${tenant.appId}, 'record.created', ${version}, 'record', 'system', 'test', ${eventId},
                now(), ${eventId}, o.object_id, '{}' FROM portico.object_definition o
              WHERE o.app_id = ${tenant.appId} AND o.object_key = 'deal'`)
            await tx.rows(sql`SELECT pg_sleep(${Math.random() * 0.01})`)
            if (undone) throw new Error('undone')
          })
          if (undone) await work.catch(() => {})
          else await work.then(() => kept.push(eventId))
        }
      }),
    )
    writing = false
    await Promise.all(dispatching)
    await dispatch()
    const stored = await asSystem<{ id: string }>(sql`SELECT event_id AS id FROM portico.event`)
    expect(stored.map(({ id }) => id).sort()).toEqual([...kept].sort())
    const deliveries = await asSystem<{ id: string }>(sql`SELECT event_id AS id FROM portico.webhook_queue
      WHERE subscription_id = ${subscription}`)
    expect(deliveries.map(({ id }) => id).sort()).toEqual([...kept].sort())
  })

  test('the events of one organization do not keep those of another one waiting, and leave in their order', async () => {
    const emit = async (of: 'a' | 'b', count: number) => {
      const { organizationId } = tenant.organizations[of]
      const heading = { organizationId, appId: tenant.appId, eventKey: 'record.created', subjectType: 'record' }
      const actor = { kind: 'system', id: 'test' } as const
      for (let index = 0; index < count; index += 1000) {
        const events = Array.from({ length: Math.min(1000, count - index) }, () => ({
          event_id: uuidv7(Date.now()),
          occurred_at: new Date().toISOString(),
          subject_id: uuidv7(Date.now()),
          data: {},
        }))
        await database().inOrganization(organizationId, (tx) => emitEvents(tx, { ...heading, actor }, events))
      }
    }
    await emit('a', 3000)
    await emit('b', 40)
    const standings = { of: () => Promise.resolve(new Map()) }
    const first = await dispatchBatch({ database: database(), standings, clock, log }, 100)
    expect(first.moved).toBe(100)
    const moved = await events()
    const byOrganization = Map.groupBy(moved, (event) => event.organizationId)
    expect(byOrganization.get(tenant.organizations.b.organizationId)).toHaveLength(40)
    expect(byOrganization.get(tenant.organizations.a.organizationId)).toHaveLength(60)
    await dispatch()
    const ofA = (await events()).filter((event) => event.organizationId === tenant.organizations.a.organizationId)
    expect(ofA).toHaveLength(3000)
    // Ids were made in the order of writing.
    expect(ofA.map((event) => event.eventId)).toEqual(ofA.map((event) => event.eventId).toSorted())
  })

  test('large events leave a few at a time', async () => {
    const text = randomBytes(9 * 1024 * 1024).toString('base64')
    const { organizationId } = tenant.organizations.a
    for (const size of [1, text.length, text.length, text.length, 1]) {
      const data = { eventKey: 'record.created', subjectType: 'record', actor: { kind: 'system', id: 'test' } } as const
      const event = {
        event_id: uuidv7(Date.now()),
        occurred_at: new Date().toISOString(),
        subject_id: uuidv7(Date.now()),
      }
      await database().inOrganization(organizationId, (tx) =>
        emitEvents(tx, { organizationId, appId: tenant.appId, ...data }, [
          { ...event, data: { text: text.slice(0, size) } },
        ]),
      )
    }
    const standings = { of: () => Promise.resolve(new Map()) }
    const turns: unknown[] = []
    for (let turn = 0; turn < 3; turn++)
      turns.push(await dispatchBatch({ database: database(), standings, clock, log }, 500))
    expect(turns).toMatchObject([
      { moved: 3, unfinished: true },
      { moved: 2, unfinished: true },
      { moved: 0, unfinished: false },
    ])
  })

  test('more deliveries than one statement takes are all queued, each once', async () => {
    const { organizationId } = tenant.organizations.a
    const subscriptions = await Promise.all(Array.from({ length: 11 }, () => subscribe(['record.created'])))
    const heading = {
      eventKey: 'record.created',
      subjectType: 'record',
      actor: { kind: 'system', id: 'test' },
    } as const
    const list = Array.from({ length: 500 }, () => {
      const at = Date.now()
      return { event_id: uuidv7(at), occurred_at: new Date(at).toISOString(), subject_id: uuidv7(at), data: {} }
    })
    await database().inOrganization(organizationId, (tx) =>
      emitEvents(tx, { organizationId, appId: tenant.appId, ...heading }, list),
    )
    await dispatch()
    const rows = await asSystem<{ id: string; count: number; events: number }>(sql`SELECT subscription_id AS id,
      count(*), count(DISTINCT event_id) AS events FROM portico.webhook_queue GROUP BY 1`)
    expect(new Map(rows.map(({ id, ...counts }) => [id, counts]))).toEqual(
      new Map(subscriptions.map((id) => [id, { count: 500, events: 500 }])),
    )
  })

  test('a dispatcher that dies in the middle leaves everything in the outbox', async () => {
    const subscription = await subscribe(['record.created'])
    await deals.create({ fields: { name: 'Survivor' } })
    const standings = { of: () => Promise.reject(new Error('killed')) }
    const parts = { database: database(), standings, clock, log }
    await expect(dispatchBatch(parts, 500)).rejects.toThrow('killed')
    expect([await inOutbox(), await events(), await queued(subscription)]).toEqual([1, [], []])
    await dispatch()
    expect(await queued(subscription)).toEqual(['record.created'])
  })
})
