import { readFileSync } from 'node:fs'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { attemptOf, seedDelivery, seedQueued } from '../../../test/support/deliveries.ts'
import { openTestSecrets } from '../../../test/support/secrets.ts'
import { startTestService, type TestService } from '../../../test/support/service.ts'
import { issueCredential } from '../../../test/support/tenants.ts'
import { validatorOf } from '../../kernel/validation.ts'
import { eventTypes } from '../../shared/outbox/event-types.ts'
import { sealedFor } from './signing-secret.ts'
import { newSubscription, recordUpdated, refusal, userCreated, type WebhookClient, webhookClient } from './testing.ts'

let service: TestService
let live: WebhookClient
let enveloped: WebhookClient
let foreign: WebhookClient
beforeAll(async () => {
  service = await startTestService({ allowPrivateDestinations: false })
  const { a, b } = service.app.organizations
  live = webhookClient(service, a.credentials.live.token)
  enveloped = webhookClient(service, a.credentials.enveloped.token)
  foreign = webhookClient(service, b.credentials.live.token)
})
afterAll(() => service.stop())
beforeEach(async () => {
  await inA((tx) => tx.rows(sql`DELETE FROM portico.webhook_subscription`))
})

function inA<T>(work: Parameters<TestService['db']['database']['inOrganization']>[1]): Promise<T> {
  return service.db.database.inOrganization(service.app.organizations.a.organizationId, work) as Promise<T>
}

async function made(change: object = {}, client = live) {
  const answer = await client.create(change)
  expect(answer.status, answer.text).toBe(201)
  return answer.json
}

const clientWith = (scopes: readonly string[]) => clientOf({ scopes })

async function clientOf(plan: Partial<Parameters<typeof issueCredential>[2]>): Promise<WebhookClient> {
  const { a } = service.app.organizations
  const { token } = await service.db.database.as('portico_owner', (tx) =>
    issueCredential(tx, { ...a, appId: service.app.appId }, { displayName: 'other', ...plan }),
  )
  return webhookClient(service, token)
}

async function audited(subscriptionId: string) {
  return service.db.database.as('portico_owner', (tx) =>
    tx.rows<{ action: string; actor: string; text: string }>(sql`
      SELECT action, actor_id AS actor, coalesce(before::text, '') || coalesce(after::text, '') AS text
      FROM portico.audit_entry WHERE target_id = ${subscriptionId} ORDER BY entry_id`),
  )
}

describe('event types', () => {
  test('are all there, with an example that fits the schema', async () => {
    const { items } = (await live.types()).json
    expect(items.map(({ eventKey }) => eventKey)).toEqual(eventTypes.map(({ eventKey }) => eventKey))
    for (const [i, { example, dataSchema }] of items.entries()) {
      expect(validatorOf(eventTypes[i]!.data).Errors(example)).toEqual([])
      expect(dataSchema).toMatchObject({ type: 'object', properties: expect.any(Object) })
    }
  })
})

describe('a new subscription', () => {
  test('answers with its secret, and nothing shows it again', async () => {
    const answer = await live.create()
    const { secret, ...shown } = answer.json
    expect(Buffer.from(secret.replace(/^whsec_/, ''), 'base64')).toHaveLength(32)
    expect(shown).toEqual({
      ...newSubscription,
      subscriptionId: expect.any(String),
      scope: 'account',
      enabled: true,
      disabledReason: null,
      disabledAt: null,
      health: { consecutiveFailures: 0, firstFailureAt: null, lastSuccessAt: null },
      secretHint: secret.slice(-4),
      secretRotatedAt: null,
      previousSecretExpiresAt: null,
      revision: 1,
      createdAt: expect.any(String),
      updatedAt: shown.createdAt,
    })
    expect(answer.headers).toMatchObject({
      etag: '"1"',
      location: `/v1/apps/${service.app.appId}/webhooks/${shown.subscriptionId}`,
    })
    expect((await live.get(shown.subscriptionId)).json).toEqual(shown)
    expect((await live.list()).json).toEqual({ items: [shown], nextCursor: null })
    const kept = JSON.stringify([await audited(shown.subscriptionId), service.logLines])
    expect(kept).not.toContain(secret)
    expect(kept).not.toContain(secret.slice(6, 30))
  })

  test('has its secret sealed, for itself alone', async () => {
    const { subscriptionId, secret } = await made()
    const [row] = await inA<[{ sealed: Buffer; text: string }]>((tx) =>
      tx.rows(sql`SELECT secret_sealed AS sealed, s::text AS text FROM portico.webhook_subscription s`),
    )
    const secrets = await openTestSecrets(service.db.database)
    expect((await secrets.open(row.sealed, sealedFor(subscriptionId))).toString()).toBe(secret)
    await expect(secrets.open(row.sealed, sealedFor(newSubscription.displayName))).rejects.toThrow()
    expect(row.text).not.toContain(Buffer.from(secret).toString('hex'))
  })

  test('is made once for one key, and what is kept of the answer is sealed', async () => {
    const sent = { headers: { 'idempotency-key': 'once' } }
    const first = await live.create({}, sent)
    const again = await live.create({}, sent)
    expect([again.status, again.text]).toEqual([201, first.text])
    expect(again.headers['idempotency-replayed']).toBe('true')
    const [kept] = await inA<[{ payload: string }]>((tx) =>
      tx.rows(sql`SELECT payload FROM portico.idempotency_key WHERE key = 'once'`),
    )
    expect(kept.payload).toBe('')
    expect((await live.list()).json.items).toHaveLength(1)
  })

  test('can be disabled from the start', async () => {
    const { disabledAt, ...rest } = await made({ enabled: false })
    expect(rest).toMatchObject({ enabled: false, disabledReason: 'manual' })
    expect(disabledAt).toBe(rest.createdAt)
  })

  test('is refused as the fifty-first, also when two come at once', async () => {
    await Promise.all(Array.from({ length: 49 }, () => made()))
    const answers = await Promise.all([live.create(), live.create(), live.create()])
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409])
    expect(refusal(await live.create())).toEqual([409, 'webhook_subscription_limit_reached'])
    expect((await foreign.create()).status).toBe(201)
  })
})

describe('a destination', () => {
  const vectors = new URL('../../../test/vectors/blocked-destinations.json', import.meta.url)
  const { blocked } = JSON.parse(readFileSync(vectors, 'utf8')) as { blocked: string[] }

  test.each(blocked)('%s is refused when it is saved', async (destinationUrl) => {
    const { subscriptionId } = await made()
    for (const answer of [await live.create({ destinationUrl }), await live.put(subscriptionId, { destinationUrl })]) {
      expect(refusal(answer)[2]).toBe('destinationUrl')
      expect(['validation_failed', 'webhook_destination_not_https', 'webhook_destination_blocked']).toContain(
        answer.json.code,
      )
    }
    expect((await live.list()).json.items.map((one) => one.destinationUrl)).toEqual([newSubscription.destinationUrl])
  })

  test.each([
    ['http://example.com/', 422, 'webhook_destination_not_https'],
    ['https://user:pass@example.com/', 422, 'webhook_destination_blocked'],
    ['https://10.0.0.1/', 422, 'webhook_destination_blocked'],
    ['example.com/hook', 400, 'validation_failed'],
    // Below the limit as it is sent, above it as it would be called.
    [`https://example.com/${'ä'.repeat(1000)}`, 400, 'validation_failed'],
  ])('%s answers %i %s', async (destinationUrl, status, code) => {
    expect(refusal(await live.create({ destinationUrl }))).toEqual([status, code, 'destinationUrl'])
  })

  test('is kept in the spelling that was checked', async () => {
    const { destinationUrl } = await made({ destinationUrl: 'HTTPS://Hooks.Example.COM:443/a/../b?c=1' })
    expect(destinationUrl).toBe('https://hooks.example.com/b?c=1')
  })
})

describe('events of a subscription', () => {
  const asked = (events: object[], more: object = {}) => live.create({ events, ...more })

  test('must exist in that version, once each', async () => {
    expect(refusal(await asked([recordUpdated, { ...recordUpdated, eventKey: 'record.sung' }]))).toEqual([
      422,
      'webhook_event_unknown',
      'events[1].eventKey',
    ])
    expect(refusal(await asked([{ ...recordUpdated, eventVersion: '2026-09-14' }]))).toEqual([
      422,
      'webhook_event_version_unknown',
      'events[0].eventVersion',
    ])
    expect(refusal(await asked([recordUpdated, recordUpdated]))).toEqual([
      400,
      'validation_failed',
      'events[1].eventKey',
    ])
    expect(refusal(await asked([{ eventKey: 'record.updated' }]))).toEqual([
      400,
      'validation_failed',
      'events[0].eventVersion',
    ])
  })

  test('of the whole application are lifecycle events, for credentials without an envelope', async () => {
    expect(refusal(await asked([userCreated, recordUpdated], { scope: 'app' }))).toEqual([
      422,
      'webhook_scope_event_conflict',
      'events[1].eventKey',
    ])
    expect(refusal(await enveloped.create({ events: [userCreated], scope: 'app' }))).toEqual([403, 'permission_denied'])
    expect(refusal(await enveloped.create({ events: [userCreated] }))).toEqual([403, 'permission_denied'])
    const { subscriptionId, scope } = await made({ events: [userCreated], scope: 'app' })
    expect(scope).toBe('app')
    expect(refusal(await live.put(subscriptionId, { events: [recordUpdated] }))).toEqual([
      422,
      'webhook_scope_event_conflict',
      'events[0].eventKey',
    ])
    expect(refusal(await live.put(subscriptionId, { events: [userCreated], scope: 'account' }))).toEqual([
      400,
      'validation_failed',
      'scope',
    ])
    expect((await live.put(subscriptionId, { events: [userCreated], scope: 'app' })).status).toBe(200)
  })

  test('take the scope that shows the same', async () => {
    const bare = await clientWith(['webhooks.manage', 'webhooks.read'])
    const refused = await bare.create()
    expect(refusal(refused)).toEqual([403, 'scope_missing'])
    expect(refused.json.error).toContain('records.read')
    expect(refused.headers['www-authenticate']).toContain('scope="records.read"')
    const { subscriptionId } = await made()
    expect(refusal(await bare.put(subscriptionId))).toEqual([403, 'scope_missing'])
    expect((await bare.create({ events: [userCreated] })).status).toBe(201)
  })
})

describe('objects of an event', () => {
  const about = (objectKeys: unknown, eventKey = 'record.updated', client = live) =>
    client.create({ events: [{ eventKey, eventVersion: recordUpdated.eventVersion, objectKeys }] })

  test('are kept, and changing them is a change', async () => {
    const of = (...objectKeys: string[]) => ({ events: [{ ...recordUpdated, objectKeys }] })
    const { subscriptionId, events } = await made(of('deal', 'company'))
    expect(events).toEqual(of('deal', 'company').events)
    expect((await live.put(subscriptionId, of('deal', 'company'))).json.revision).toBe(1)
    expect((await live.put(subscriptionId, of('deal'))).json).toMatchObject({ ...of('deal'), revision: 2 })
    expect((await live.put(subscriptionId)).json.events).toEqual([recordUpdated])
  })

  test('that are gone by now do not keep anybody from saving the rest', async () => {
    const events = [{ ...recordUpdated, objectKeys: ['deal'] }]
    const { subscriptionId } = await made({ events })
    const gone = [{ ...recordUpdated, objectKeys: ['sales-order'] }]
    expect(refusal(await live.put(subscriptionId, { events: gone }))).toEqual([
      ...[400, 'validation_failed', 'events[0].objectKeys[0]'],
    ])
    await inA((tx) => tx.rows(sql`UPDATE portico.webhook_subscription SET events = ${JSON.stringify(gone)}`))
    expect((await live.put(subscriptionId, { events: gone, displayName: 'Renamed' })).json).toMatchObject({
      displayName: 'Renamed',
      events: gone,
    })
  })

  test.each([
    ['an object that is not there', ['deal', 'deel'], 'record.updated', 'events[0].objectKeys[1]'],
    ['none', [], 'record.updated', 'events[0].objectKeys'],
    ['one twice', ['deal', 'deal'], 'record.updated', 'events[0].objectKeys[1]'],
    ['what is no key', ["deal'--"], 'record.updated', 'events[0].objectKeys[0]'],
    ['of an event that is not about records', ['deal'], 'operation.completed', 'events[0].objectKeys'],
  ])('%s is refused', async (_, objectKeys, eventKey, field) => {
    expect(refusal(await about(objectKeys, eventKey))).toEqual([400, 'validation_failed', field])
  })

  test('are those that the credential may read: of others it does not learn that they are there', async () => {
    const support = await clientOf({ envelope: { roles: ['support'], locations: ['north'] } })
    const hidden = await about(['vault'], 'record.updated', support)
    const absent = await about(['vanlt'], 'record.updated', support)
    expect(refusal(hidden)).toEqual([400, 'validation_failed', 'events[0].objectKeys[0]'])
    expect(hidden.json.details![0]!.message.replace('vault', 'vanlt')).toBe(absent.json.details![0]!.message)
    expect((await about(['vault'])).status).toBe(201)
  })
})

describe('replacing a subscription', () => {
  test('changes what it names, guards its revision and leaves alone what stays', async () => {
    const { subscriptionId, revision, createdAt } = await made()
    const change = { displayName: 'Lake', destinationUrl: 'https://lake.example/', events: [userCreated] }
    const answer = await live.put(subscriptionId, { ...change, expectedRevision: revision })
    expect(answer.json).toMatchObject({ ...change, enabled: true, revision: 2, createdAt })
    expect(answer.headers['etag']).toBe('"2"')
    expect(refusal(await live.put(subscriptionId, { expectedRevision: 1 }))).toEqual([
      409,
      'revision_conflict',
      'expectedRevision',
    ])
    expect(refusal(await live.put(subscriptionId, {}, { headers: { 'if-match': '"1"' } }))).toEqual([
      409,
      'revision_conflict',
      'If-Match',
    ])
    expect((await live.put(subscriptionId, change)).json.revision).toBe(2)
    expect((await audited(subscriptionId)).map(({ action }) => action)).toEqual([
      'webhook_subscription.created',
      'webhook_subscription.updated',
    ])
  })

  test('makes it the one of the credential that saves it', async () => {
    const { subscriptionId } = await made()
    const other = await clientWith(['webhooks.manage', 'webhooks.read', 'records.read'])
    expect((await other.put(subscriptionId)).json.revision).toBe(2)
    const [row] = await inA<[{ key: string }]>((tx) =>
      tx.rows(sql`SELECT key_id AS key FROM portico.webhook_subscription`),
    )
    expect(row.key).not.toBe(service.app.organizations.a.credentials.live.keyId)
    const [, updated] = await audited(subscriptionId)
    expect(updated!.actor).toBe(row.key)
  })

  test('disables and enables: what waits ends, what is under way does not, and health begins anew', async () => {
    const { subscriptionId } = await made()
    const { organizationId } = service.app.organizations.a
    const seed = { organizationId, appId: service.app.appId, subscriptionId }
    const { database } = service.db
    const waiting = await seedQueued(database, { ...seed, attempts: [attemptOf()] })
    const underWay = await seedQueued(database, { ...seed, leasedUntil: new Date(Date.now() + 60_000).toISOString() })
    await database.as('portico_system', (tx) =>
      tx.rows(sql`INSERT INTO portico.webhook_health VALUES (${organizationId}, ${subscriptionId}, 3, now(), NULL)`),
    )
    const disabled = (await live.put(subscriptionId, { enabled: false })).json
    expect(disabled).toMatchObject({ enabled: false, disabledReason: 'manual', health: { consecutiveFailures: 3 } })
    expect(disabled.disabledAt).toBe(disabled.updatedAt)
    expect((await live.delivery(waiting)).json).toMatchObject({ state: 'failed', retryEligible: true, attemptCount: 1 })
    expect((await live.deliveries({ category: 'subscription_disabled' })).json.items).toHaveLength(1)
    expect((await live.delivery(underWay)).json).toMatchObject({ state: 'delivering', nextAttemptAt: null })
    expect(refusal(await live.retry(waiting))).toEqual([409, 'webhook_subscription_disabled'])
    expect(refusal(await live.test(subscriptionId))).toEqual([409, 'webhook_subscription_disabled'])

    await inA((tx) => tx.rows(sql`UPDATE portico.webhook_subscription SET disabled_reason = 'gone'`))
    const renamed = await live.put(subscriptionId, { displayName: 'Still off' })
    expect(renamed.json).toMatchObject({ enabled: false, disabledReason: 'gone', disabledAt: disabled.disabledAt })
    const enabled = await live.put(subscriptionId, { enabled: true })
    expect(enabled.json).toMatchObject({ enabled: true, disabledReason: null, disabledAt: null })
    expect(enabled.json.health).toEqual({ consecutiveFailures: 0, firstFailureAt: null, lastSuccessAt: null })
    expect((await live.retry(waiting)).status).toBe(200)
  })
})

test('another destination begins with a clean record, the same one does not', async () => {
  const { subscriptionId } = await made()
  await service.db.database.as('portico_system', (tx) =>
    tx.rows(sql`INSERT INTO portico.webhook_health
      VALUES (${service.app.organizations.a.organizationId}, ${subscriptionId}, 3, now(), NULL)`),
  )
  expect((await live.put(subscriptionId, { displayName: 'Renamed' })).json.health.consecutiveFailures).toBe(3)
  const moved = await live.put(subscriptionId, { destinationUrl: 'https://new.example/' })
  expect(moved.json.health.consecutiveFailures).toBe(0)
})

test('a rotation brings a new secret, beside the old one for as long as is asked for', async () => {
  const { subscriptionId, secret } = await made()
  const rotated = (await live.rotate(subscriptionId, { overlapSeconds: 3600 })).json
  expect(rotated.secret).not.toBe(secret)
  expect(rotated).toMatchObject({ secretHint: rotated.secret.slice(-4), revision: 2 })
  expect(Date.parse(rotated.previousSecretExpiresAt!) - Date.parse(rotated.secretRotatedAt!)).toBe(3_600_000)
  const sealed = () =>
    inA<[{ current: Buffer; previous: Buffer | null }]>((tx) =>
      tx.rows(
        sql`SELECT secret_sealed AS current, previous_secret_sealed AS previous FROM portico.webhook_subscription`,
      ),
    )
  const secrets = await openTestSecrets(service.db.database)
  const opened = async (bytes: Buffer) => (await secrets.open(bytes, sealedFor(subscriptionId))).toString()
  const [both] = await sealed()
  expect([await opened(both.current), await opened(both.previous!)]).toEqual([rotated.secret, secret])

  const sent = { headers: { 'idempotency-key': 'rotation' } }
  const last = await live.rotate(subscriptionId, {}, sent)
  expect(last.json).toMatchObject({ previousSecretExpiresAt: null, revision: 3 })
  expect((await live.rotate(subscriptionId, {}, sent)).text).toBe(last.text)
  const [one] = await sealed()
  expect([await opened(one.current), one.previous]).toEqual([last.json.secret, null])
  expect((await live.get(subscriptionId)).text).not.toContain('whsec_')
  const entries = await audited(subscriptionId)
  expect(entries.at(-1)!.action).toBe('webhook_subscription.secret_rotated')
  for (const told of [secret, rotated.secret, last.json.secret]) {
    expect(JSON.stringify([entries, service.logLines])).not.toContain(told.slice(6, 30))
  }
})

test('a deleted subscription is gone, and its deliveries stay', async () => {
  const { subscriptionId } = await made()
  const { organizationId } = service.app.organizations.a
  const seed = { organizationId, appId: service.app.appId, subscriptionId }
  const failed = await seedDelivery(service.db.database, seed)
  const waiting = await seedQueued(service.db.database, seed)
  await service.db.database.as('portico_system', (tx) =>
    tx.rows(sql`INSERT INTO portico.webhook_health VALUES (${organizationId}, ${subscriptionId}, 3, now(), NULL)`),
  )
  expect(refusal(await live.remove(subscriptionId, { headers: { 'if-match': '"2"' } }))).toEqual([
    409,
    'revision_conflict',
    'If-Match',
  ])
  expect((await live.remove(subscriptionId)).json.subscriptionId).toBe(subscriptionId)
  expect(refusal(await live.get(subscriptionId))).toEqual([404, 'webhook_subscription_not_found'])
  expect(refusal(await live.remove(subscriptionId))).toEqual([404, 'webhook_subscription_not_found'])
  const { items } = (await live.deliveries({ subscriptionId })).json
  expect(items.map(({ deliveryId, state, retryEligible }) => [deliveryId, state, retryEligible])).toEqual([
    [waiting, 'failed', false],
    [failed, 'failed', false],
  ])
  expect(refusal(await live.retry(failed))).toEqual([409, 'webhook_delivery_not_retryable'])
  expect((await audited(subscriptionId)).map(({ action }) => action)).toContain('webhook_subscription.deleted')
})

describe('a credential with an envelope', () => {
  test('manages what it saved itself, and knows of nothing else', async () => {
    const whole = await made()
    const own = await made({ displayName: 'Own' }, enveloped)
    expect((await enveloped.list()).json.items.map((one) => one.subscriptionId)).toEqual([own.subscriptionId])
    expect((await live.list()).json.items).toHaveLength(2)
    const { subscriptionId } = whole
    for (const answer of [
      await enveloped.get(subscriptionId),
      await enveloped.put(subscriptionId),
      await enveloped.remove(subscriptionId),
      await enveloped.rotate(subscriptionId),
      await enveloped.test(subscriptionId),
    ]) {
      expect(refusal(answer)).toEqual([404, 'webhook_subscription_not_found'])
    }
    expect((await live.get(subscriptionId)).json.revision).toBe(1)
    expect((await enveloped.rotate(own.subscriptionId)).status).toBe(200)
    // Whoever saves it last decides whose it is.
    expect((await live.put(own.subscriptionId, { displayName: 'Own' })).status).toBe(200)
    expect((await enveloped.get(own.subscriptionId)).status).toBe(404)
  })
})

test('another organization, an application-wide subscription among it, is not to be known of', async () => {
  const { subscriptionId } = await made({ events: [userCreated], scope: 'app' })
  for (const ask of [foreign.get, foreign.put, foreign.remove, foreign.rotate, foreign.test]) {
    expect(refusal(await ask(subscriptionId))).toEqual([404, 'webhook_subscription_not_found'])
  }
  expect((await foreign.list()).text).not.toContain(subscriptionId)
})

test('a list goes on where the page before ended', async () => {
  const ids = []
  for (let n = 0; n < 5; n++) ids.unshift((await made()).subscriptionId)
  const first = (await live.list({ pageSize: 3 })).json
  const second = (await live.list({ pageSize: 3, cursor: first.nextCursor })).json
  expect([...first.items, ...second.items].map((one) => one.subscriptionId)).toEqual(ids)
  expect(second.nextCursor).toBeNull()
})
