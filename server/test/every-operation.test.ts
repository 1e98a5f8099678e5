import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { modules } from '../src/features/modules/descriptors.ts'
import type { ErrorCode } from '../src/kernel/errors.ts'
import { uuidv7 } from '../src/kernel/ids.ts'
import { type Operation, takesIdempotencyKey } from '../src/kernel/operation.ts'
import { allScopes, type Scope } from '../src/kernel/scopes.ts'
import { validatorOf } from '../src/kernel/validation.ts'
import { registry } from '../src/operations.ts'
import type { Context } from '../src/shared/context.ts'
import { insertOperation } from '../src/shared/operations/store.ts'
import type { RecordView } from '../src/shared/records/record.ts'
import {
  brokenBodies,
  brokenIdempotencyKeys,
  brokenJson,
  brokenParameters,
  brokenQueries,
  brokenRevisions,
} from './support/broken-input.ts'
import { seedDelivery } from './support/deliveries.ts'
import { authorizationsThatNobodyIssued } from './support/forged-tokens.ts'
import type { Answer, Sent } from './support/http-client.ts'
import { type ModuleRecords, moduleRequests, newRecord } from './support/module-requests.ts'
import { expectNamed, expectRefusal, withoutIds } from './support/refusals.ts'
import { type Instance, startTestService, type TestService } from './support/service.ts'
import { callerOf, issueCredential } from './support/tenants.ts'

/**
 * What the contract promises of every operation, generated from the registry. A new operation is covered by being in the
 * registry; it needs one line in `goodRequests`, and fails without it.
 */
interface GoodRequest {
  /** Path parameters beside saasAppId. */
  readonly params?: Readonly<Record<string, string>>
  readonly body?: unknown
  /** The status to expect. */
  readonly status?: number
}

const newSubscription = {
  displayName: 'Warehouse',
  destinationUrl: 'https://hooks.northwind.example/portico',
  events: [{ eventKey: 'record.updated', eventVersion: '2026-11-20' }],
}
/** Each is good for one request, but the last, which serves those that are refused whatever they name. */
const spare = (ids: string[]) => (ids.length > 1 ? ids.pop()! : ids[0]!)
const record = (recordId = world.deal) => ({ objectKey: 'deal', recordId })
const goodRequests: Record<string, () => GoodRequest> = {
  ...moduleRequests(() => world.modules),
  developerModulesGlobalSearchList: () => ({}),
  developerModulesGlobalSearchCount: () => ({}),
  developerModulesGlobalSearchSuggest: () => ({}),
  developerModulesGlobalSearchListRecent: () => ({}),
  developerAuthGetContext: () => ({}),
  developerContractGet: () => ({}),
  developerObjectsList: () => ({}),
  developerObjectsGetSchema: () => ({ params: { objectKey: 'deal' } }),
  developerRecordsSearch: () => ({ params: { objectKey: 'deal' }, body: { pageSize: 5, sort: 'name_asc' } }),
  developerRecordsCount: () => ({ params: { objectKey: 'deal' }, body: { search: 'pilot' } }),
  developerRecordsGet: () => ({ params: record() }),
  developerRecordsGetByKey: () => ({ params: { objectKey: 'deal', externalKey: world.externalKey } }),
  developerRecordsGetHistory: () => ({ params: record() }),
  developerRecordsListParticipants: () => ({ params: record() }),
  developerRecordsCreate: () => ({ params: { objectKey: 'deal' }, body: { fields: { name: 'New' } }, status: 201 }),
  developerRecordsUpdate: () => ({ params: record(), body: { fields: { stage: 'open' } } }),
  developerRecordsArchive: () => ({ params: record(world.archivedDeal) }),
  developerRecordsRestore: () => ({ params: record(), body: {} }),
  developerRecordsUpsert: () => ({
    params: { objectKey: 'deal', externalKey: uuidv7(Date.now()) },
    body: { fields: { name: 'Upserted' } },
    status: 201,
  }),
  developerRecordsSetParticipants: () => ({ params: record(), body: { participants: [] } }),
  developerRecordsBatch: () => ({
    params: { objectKey: 'deal' },
    body: { items: [{ operation: 'create', fields: { name: 'In a batch' } }] },
  }),
  developerRecordsListRelationships: () => ({ params: record() }),
  developerRelationshipsList: () => ({}),
  developerRelationshipsCreate: () => ({
    body: { relationshipKey: 'partners', fromRecordId: world.deal, toRecordId: world.company },
    status: 201,
  }),
  // Each is good for one request: what is gone is not found.
  developerRelationshipsDelete: () => ({ params: { relationshipId: world.relationshipIds.pop()! } }),
  developerWebhookEventTypesList: () => ({}),
  developerEventsList: () => ({}),
  developerWebhooksList: () => ({}),
  developerWebhooksCreate: () => ({ body: newSubscription, status: 201 }),
  developerWebhooksGet: () => ({ params: { subscriptionId: world.subscriptionId } }),
  developerWebhooksUpdate: () => ({
    params: { subscriptionId: world.subscriptionId },
    body: { ...newSubscription, enabled: true },
  }),
  developerWebhooksDelete: () => ({ params: { subscriptionId: spare(world.spareSubscriptionIds) } }),
  developerWebhooksRotateSecret: () => ({
    params: { subscriptionId: world.subscriptionId },
    body: { overlapSeconds: 60 },
  }),
  developerWebhooksTest: () => ({ params: { subscriptionId: world.subscriptionId }, status: 202 }),
  developerWebhooksRecover: () => ({
    params: { subscriptionId: world.subscriptionId },
    body: { since: new Date(Date.now() - 60_000).toISOString() },
    status: 202,
  }),
  developerWebhookDeliveriesList: () => ({}),
  developerWebhookDeliveriesGet: () => ({ params: { deliveryId: world.deliveryId } }),
  developerWebhookDeliveriesRetry: () => ({ params: { deliveryId: spare(world.failedDeliveryIds) } }),
  developerRecordsExport: () => ({ params: { objectKey: 'deal' }, body: { format: 'csv' }, status: 202 }),
  developerRecordsImport: () => ({
    params: { objectKey: 'deal' },
    body: { format: 'csv', content: 'externalKey\n' },
    status: 202,
  }),
  developerOperationsList: () => ({}),
  developerOperationsGet: () => ({ params: { operationId: world.exported } }),
  developerOperationsGetErrors: () => ({ params: { operationId: world.exported } }),
  developerOperationsGetFile: () => ({ params: { operationId: world.exported } }),
  developerOperationsCancel: () => ({ params: { operationId: world.cancelled } }),
  developerLogsGetCorrelation: () => ({ params: { correlationId: world.correlationId } }),
}

interface World {
  readonly deal: string
  readonly externalKey: string
  readonly archivedDeal: string
  readonly modules: ModuleRecords
  readonly company: string
  readonly relationshipIds: string[]
  readonly correlationId: string
  /** Operations that are over. */
  readonly exported: string
  readonly cancelled: string
  readonly subscriptionId: string
  readonly spareSubscriptionIds: string[]
  readonly deliveryId: string
  readonly failedDeliveryIds: string[]
  /** Path parameters that mean something to somebody else: another organisation, another application. */
  readonly foreign: Readonly<Record<string, readonly string[]>>
  readonly lacking: Readonly<Record<Scope, string>>
  /** Credentials that are wrong in more than one way. */
  readonly wrong: Readonly<Record<WrongCredential, string>>
}

type WrongCredential =
  | 'spent'
  | 'expiredDraft'
  | 'dormantDraft'
  | 'dormantLive'
  | 'inactiveRefresh'
  | 'inactiveUser'
  | 'refresh'

let service: TestService
/** Grants one request of each class in a minute. */
let limited: Instance
let world: World
beforeAll(async () => {
  service = await startTestService({ modules: true })
  limited = await service.startAnother({ rateLimitScale: 1e-9 })
  world = await makeWorld()
})
afterAll(() => service.stop())

async function makeWorld(): Promise<World> {
  const { app, otherApp } = service
  const { a, b, dormant } = app.organizations
  const { c } = otherApp.organizations
  const create = async (appId: string, token: string, objectKey: string) => {
    const body = { fields: { name: 'Pilot' }, externalKey: `key-${uuidv7(Date.now())}` }
    const answer = await service.call<RecordView>('POST', `/v1/apps/${appId}/objects/${objectKey}/records`, {
      token,
      body,
    })
    expect(answer.status).toBe(201)
    return { recordId: answer.json.recordId, externalKey: body.externalKey, correlationId: answer.correlationId }
  }
  const own = await create(app.appId, a.credentials.live.token, 'deal')
  const archived = await send(registry.get('developerRecordsCreate')!, { token: a.credentials.live.token })
  const archivedDeal = (archived.json as unknown as RecordView).recordId
  await service.call('DELETE', pathOf('/objects/deal/records/{recordId}', { recordId: archivedDeal }), {
    token: a.credentials.live.token,
  })
  const sameObject = await create(app.appId, a.credentials.live.token, 'company')
  const foreignContacts = [
    await makeModuleRecords(app.appId, b.credentials.live.token),
    await makeModuleRecords(otherApp.appId, c.credentials.live.token),
  ].map((records) => records['contacts']!)
  const others = [
    await create(app.appId, b.credentials.live.token, 'deal'),
    await create(otherApp.appId, c.credentials.live.token, 'deal'),
  ]
  const webhooks = await makeWebhooks(app.appId, a, 35)
  const foreignWebhooks = [await makeWebhooks(app.appId, b, 1), await makeWebhooks(otherApp.appId, c, 1)]
  return {
    deal: own.recordId,
    externalKey: own.externalKey,
    archivedDeal,
    modules: {
      live: await makeModuleRecords(app.appId, a.credentials.live.token),
      archived: await makeModuleRecords(app.appId, a.credentials.live.token, true),
      otherContact: (await makeModuleRecords(app.appId, a.credentials.live.token))['contacts']!,
    },
    company: sameObject.recordId,
    relationshipIds: await relate(app.appId, a.credentials.live.token, 20),
    correlationId: own.correlationId,
    exported: await exportDeals(app.appId, a.credentials.live.token),
    cancelled: await cancelledOperation(app),
    ...webhooks,
    foreign: {
      subscriptionId: [...foreignWebhooks.map((one) => one.subscriptionId), own.recordId],
      deliveryId: [...foreignWebhooks.map((one) => one.deliveryId), webhooks.subscriptionId],
      recordId: [...others.map((other) => other.recordId), ...foreignContacts, sameObject.recordId, b.organizationId],
      externalKey: others.map((other) => other.externalKey),
      correlationId: others.map((other) => other.correlationId),
      relationshipId: [
        ...(await relate(app.appId, b.credentials.live.token, 1)),
        ...(await relate(otherApp.appId, c.credentials.live.token, 1)),
        own.recordId,
      ],
      operationId: [
        await exportDeals(app.appId, b.credentials.live.token),
        await exportDeals(otherApp.appId, c.credentials.live.token),
        own.recordId,
      ],
      objectKey: ['gadget', 'constructor', '__proto__'],
    },
    lacking: await lackingScopes(),
    wrong: await service.db.database.as('portico_owner', async (tx) => {
      const past = new Date(0)
      const issue = async (
        scope: typeof a | typeof dormant,
        plan: Omit<Parameters<typeof issueCredential>[2], 'displayName'>,
      ) =>
        (await issueCredential(tx, { ...scope, appId: app.appId }, { scopes: [], displayName: 'wrong', ...plan })).token
      return {
        spent: await issue(dormant, { kind: 'draft', revoked: true, expiresAt: past }),
        expiredDraft: await issue(dormant, { kind: 'draft', expiresAt: past }),
        dormantDraft: await issue(dormant, { kind: 'draft' }),
        dormantLive: await issue(dormant, {}),
        inactiveRefresh: await issue(a, { kind: 'drt', userId: a.users.inactive.userId }),
        inactiveUser: await issue(a, { kind: 'dat', userId: a.users.inactive.userId }),
        refresh: await issue(a, { kind: 'drt', userId: a.users.owner.userId }),
      }
    }),
  }
}

/** A subscription with failed deliveries, and further subscriptions: as many as are asked for of each. */
async function makeWebhooks(
  appId: string,
  organization: { organizationId: string; credentials: { live: { token: string } } },
  count: number,
) {
  const { organizationId, credentials } = organization
  const ids: string[] = []
  for (let made = 0; made <= count; made++) {
    const sent = { token: credentials.live.token, body: newSubscription }
    const answer = await service.call<{ subscriptionId: string }>('POST', `/v1/apps/${appId}/webhooks`, sent)
    expect(answer.status, answer.text).toBe(201)
    ids.push(answer.json.subscriptionId)
  }
  const [subscriptionId, ...spareSubscriptionIds] = ids
  const [deliveryId, ...failedDeliveryIds] = await Promise.all(
    Array.from({ length: count + 1 }, () =>
      seedDelivery(service.db.database, { organizationId, appId, subscriptionId: subscriptionId! }),
    ),
  )
  return { subscriptionId: subscriptionId!, spareSubscriptionIds, deliveryId: deliveryId!, failedDeliveryIds }
}

/** The id of an export that has ended. */
async function exportDeals(appId: string, token: string): Promise<string> {
  const base = `/v1/apps/${appId}`
  const begun = await service.call<{ operationId: string }>('POST', `${base}/objects/deal/records:export`, {
    token,
    body: { format: 'csv' },
  })
  const { operationId } = begun.json
  const status = async () => (await service.call('GET', `${base}/operations/${operationId}`, { token })).json['status']
  // Either process may carry it on.
  while ((await status()) !== 'succeeded') await pause(20)
  return operationId
}

/** One that nobody carries on, cancelled. */
async function cancelledOperation({ appId, organizations: { a } }: TestService['app']): Promise<string> {
  const operationId = uuidv7(Date.now())
  const caller = await callerOf(service.db.database, a.credentials.live)
  const work = { operationId, type: 'nothing', scope: 'records.read', input: null, correlationId: operationId }
  await service.db.database.inOrganization(a.organizationId, (tx) =>
    insertOperation(tx, caller, { ...work, now: Date.now() }, 'queued'),
  )
  const { live } = a.credentials
  const answer = await service.call('POST', `/v1/apps/${appId}/operations/${operationId}:cancel`, { token: live.token })
  expect(answer.json).toMatchObject({ status: 'cancelled' })
  return operationId
}

/** Relates each of so many new deals to each of as many new companies; returns the ids of the relationships. */
async function relate(appId: string, token: string, count: number): Promise<string[]> {
  const ask = async <T>(path: string, body: unknown) => {
    const answer = await service.call<T>('POST', `/v1/apps/${appId}${path}`, { token, body })
    expect(answer.status, answer.text).toBeLessThan(300)
    return answer.json
  }
  const make = async (objectKey: string) => {
    const items = Array.from({ length: count }, () => ({ operation: 'create', fields: { name: 'Related' } }))
    const { results } = await ask<{ results: { record: RecordView }[] }>(`/objects/${objectKey}/records:batch`, {
      items,
    })
    return results.map(({ record: made }) => made.recordId)
  }
  const [deals, companies] = [await make('deal'), await make('company')]
  const ids: string[] = []
  for (const fromRecordId of deals) {
    const made = companies.map((toRecordId) =>
      ask<{ relationshipId: string }>('/relationships', { relationshipKey: 'partners', fromRecordId, toRecordId }),
    )
    ids.push(...(await Promise.all(made)).map(({ relationshipId }) => relationshipId))
  }
  return ids
}

/** A record of every module, by its key. */
async function makeModuleRecords(appId: string, token: string, archived = false): Promise<Record<string, string>> {
  const ids: Record<string, string> = {}
  for (const module of modules) {
    const base = `/v1/apps/${appId}/modules/${module.key}`
    const body = newRecord(module)
    const answer = await service.call<{ recordId: string }>('POST', base, { token, body })
    expect(answer.status, answer.text).toBe(201)
    ids[module.key] = answer.json.recordId
    if (archived) await service.call('DELETE', `${base}/${answer.json.recordId}`, { token })
  }
  return ids
}

/** For each scope a credential that has all others. */
async function lackingScopes(): Promise<Record<Scope, string>> {
  const scope = { ...service.app.organizations.a, appId: service.app.appId }
  const used = new Set(registry.operations.flatMap((operation) => operation.scope ?? []))
  return service.db.database.as('portico_owner', async (tx) => {
    const tokens: Partial<Record<Scope, string>> = {}
    for (const lacked of used) {
      const plan = { displayName: `all but ${lacked}`, scopes: allScopes.filter((one) => one !== lacked) }
      tokens[lacked] = (await issueCredential(tx, scope, plan)).token
    }
    return tokens as Record<Scope, string>
  })
}

function pathOf(path: string, params: Readonly<Record<string, string>>, appId = service.app.appId): string {
  const whole = path.startsWith('/v1/') ? path : `/v1/apps/{saasAppId}${path}`
  const values: Readonly<Record<string, string>> = { saasAppId: appId, ...params }
  return whole.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name]!))
}

interface Change extends Sent {
  readonly params?: Readonly<Record<string, string>>
  readonly appId?: string
  readonly query?: string
}

/** The operation's good request, by the live credential of `a`, with what a test changes about it. */
async function send<T = Readonly<Record<string, unknown>>>(
  operation: Operation<Context>,
  change: Change = {},
): Promise<Answer<T>> {
  const good = goodRequests[operation.id]!()
  const { params, appId, query, ...sent } = change
  const path = pathOf(operation.path, { ...good.params, ...params }, appId)
  const token = service.app.organizations.a.credentials.live.token
  const body = good.body !== undefined && sent.raw === undefined && !('body' in sent) ? { body: good.body } : {}
  const address = query === undefined ? path : `${path}?${query}`
  const answer = await service.call<T>(operation.method, address, { token, ...body, ...sent })
  // An organization has a hundred operations at work, and no more.
  if (answer.status === 202) await service.service.operationRunner!.wake()
  return answer
}

test('every operation has a good request', () => {
  expect(Object.keys(goodRequests).sort()).toEqual(registry.operations.map((operation) => operation.id).sort())
})

describe.each(registry.operations.map((operation) => [operation.id, operation] as const))('%s', (id, operation) => {
  test('answers a good request as it declares', async () => {
    const { status: expected = 200 } = goodRequests[id]!()
    const answer = await send(operation)
    expect(answer.status, answer.text).toBe(expected)
    const schema = operation.responses[expected]!
    expect(validatorOf(schema).Errors(answer.json)).toEqual([])
    for (const [name, { sometimes }] of Object.entries(operation.responseHeaders ?? {})) {
      if (sometimes) continue
      const isOfCreation = name === 'Location' && expected !== 201
      if (!isOfCreation) expect(answer.headers[name.toLowerCase()], name).toBeTruthy()
    }
    if (operation.method !== 'GET') return
    const head = await service.call('HEAD', pathOf(operation.path, goodRequests[id]!().params ?? {}), {
      token: service.app.organizations.a.credentials.live.token,
    })
    expect([head.status, head.text]).toEqual([expected, ''])
    expect(head.headers['content-type']).toBe(answer.headers['content-type'])
  })

  test('asks for a credential, and says where to get one', async () => {
    const { live } = service.app.organizations.a.credentials
    const path = pathOf(operation.path, goodRequests[id]!().params ?? {})
    const challenge = `Bearer resource_metadata="http://127.0.0.1:8080/.well-known/oauth-protected-resource/v1/apps/${service.app.appId}/mcp"`
    for (const [authorization, code] of [
      [undefined, 'credential_missing'],
      ...authorizationsThatNobodyIssued(live.token, ['live', 'dat', 'draft', 'drt', 'bld']).map(
        (text) => [text, 'credential_invalid'] as const,
      ),
      [`Bearer ${service.app.organizations.a.credentials.revoked.token}`, 'credential_invalid'],
      [`Bearer ${service.app.organizations.a.credentials.expired.token}`, 'credential_expired'],
      [`Bearer ${service.builderTokens.expired}`, 'credential_expired'],
    ] as const) {
      const answer = await service.call(operation.method, path, { headers: { authorization } })
      expectRefusal(operation, answer, code, authorization)
      expect(answer.headers['www-authenticate']).toBe(challenge)
    }
    const twice = await service.call(operation.method, path, {
      headers: { authorization: [`Bearer ${live.token}`, `Bearer ${live.token}`] },
    })
    expectRefusal(operation, twice, 'credential_invalid')
    const inQuery = await service.call(operation.method, `${path}?access_token=${live.token}&token=${live.token}`)
    expectRefusal(operation, inQuery, 'credential_missing')
  })

  test('refuses credentials of the wrong kind', async () => {
    const { users, credentials } = service.app.organizations.a
    expectRefusal(
      operation,
      await send(operation, { token: service.builderTokens.valid }),
      'credential_kind_not_allowed',
    )
    expectRefusal(operation, await send(operation, { token: world.wrong.refresh }), 'credential_kind_not_allowed')
    const kinds = { live: credentials.live.token, dat: users.owner.token, draft: credentials.draft.token }
    for (const [kind, token] of Object.entries(kinds)) {
      const answer = await send(operation, { token })
      if (operation.credentials.some((allowed) => allowed === kind))
        expect(answer.status, answer.text).toBeLessThan(300)
      else {
        const code = kind === 'draft' ? 'draft_credential_not_allowed' : 'credential_kind_not_allowed'
        expectRefusal(operation, answer, code)
      }
    }
  })

  test('refuses another application, an inactive organization and an inactive user', async () => {
    const { c } = service.otherApp.organizations
    const { a, dormant } = service.app.organizations
    const appIds = [service.otherApp.appId, uuidv7(Date.now()), 'not-a-uuid', a.organizationId, '\0', '__proto__']
    for (const appId of appIds) {
      const answer = await send(operation, { appId })
      expectRefusal(operation, answer, 'application_not_found', appId)
    }
    expectRefusal(operation, await send(operation, { token: c.credentials.live.token }), 'application_not_found')
    const takesUsers = operation.credentials.includes('dat')
    for (const { token } of [dormant.credentials.live, ...(takesUsers ? [dormant.users.owner] : [])]) {
      expectRefusal(operation, await send(operation, { token }), 'organization_inactive')
    }
    if (takesUsers) expectRefusal(operation, await send(operation, { token: a.users.inactive.token }), 'user_inactive')
    expect((await send(operation, { appId: service.app.appId.toUpperCase() })).status).toBeLessThan(300)
  })

  test('asks for its scope by name', async () => {
    const { noScopes } = service.app.organizations.a.credentials
    const { scope } = operation
    if (scope === null) {
      expect((await send(operation, { token: noScopes.token })).status).toBeLessThan(300)
      return
    }
    for (const token of [noScopes.token, world.lacking[scope]]) {
      const answer = await send(operation, { token })
      expectRefusal(operation, answer, 'scope_missing')
      expect(answer.json.error).toContain(scope)
      expect(answer.headers['www-authenticate']).toBe(`Bearer error="insufficient_scope", scope="${scope}"`)
    }
  })

  test('refuses what is beyond its budget, before it looks at the request', async () => {
    const path = pathOf(operation.path, goodRequests[id]!().params ?? {})
    const { users, credentials } = service.app.organizations.a
    const { token } = operation.credentials.includes('dat') ? users.support : credentials.enveloped
    const ask = () => limited.call(operation.method, `${path}?surprise=1`, { token, raw: '{"broken' })
    await ask()
    const answer = await ask()
    expectRefusal(operation, answer, 'rate_limited')
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(answer.headers['retry-after']).toMatch(/^\d+$/)
    expect(answer.headers['ratelimit']).toBe(`"${operation.rateClass}";r=0;t=${answer.headers['retry-after']}`)
    expect(answer.headers['ratelimit-policy']).toBe(`"${operation.rateClass}";q=1;w=60`)
  })

  test('refuses in the order of the contract', async () => {
    const { wrong } = world
    const { noScopes } = service.app.organizations.a.credentials
    const foreignApp = service.otherApp.appId
    const ladder: [token: string | undefined, appId: string, code: ErrorCode][] = [
      [undefined, foreignApp, 'credential_missing'],
      [wrong.spent, foreignApp, 'credential_invalid'],
      [wrong.expiredDraft, foreignApp, 'credential_expired'],
      [service.builderTokens.expired, foreignApp, 'credential_expired'],
      [wrong.inactiveRefresh, foreignApp, 'credential_kind_not_allowed'],
      [wrong.dormantLive, foreignApp, 'application_not_found'],
      [wrong.dormantLive, service.app.appId, 'organization_inactive'],
    ]
    if (operation.credentials.includes('dat')) ladder.push([wrong.inactiveUser, service.app.appId, 'user_inactive'])
    if (!operation.credentials.includes('draft')) {
      ladder.push([wrong.dormantDraft, foreignApp, 'draft_credential_not_allowed'])
    }
    if (operation.scope) ladder.push([noScopes.token, service.app.appId, 'scope_missing'])
    const parameters = Object.keys(goodRequests[id]!().params ?? {}).map((name) => [name, 'x'.repeat(300)])
    for (const [token, appId, code] of ladder) {
      const answer = await service.call(
        operation.method,
        `${pathOf(operation.path, Object.fromEntries(parameters), appId)}?surprise=1`,
        {
          raw: '{"broken',
          headers: {
            authorization: token && `Bearer ${token}`,
            'content-type': 'image/png',
            'idempotency-key': 'not visible',
            'if-match': 'x',
          },
        },
      )
      expectRefusal(operation, answer, code)
    }
  })

  test("answers another tenant's ids as ids of nothing", async () => {
    const { params = {} } = goodRequests[id]!()
    const { live, enveloped } = service.app.organizations.a.credentials
    // Some operations are for servers alone.
    const sales = operation.credentials.includes('dat') ? [service.app.organizations.a.users.sales] : []
    for (const name of Object.keys(params)) {
      const isUuid = name.endsWith('Id')
      // A key that nobody has yet is made, and then it is known.
      for (const { token } of name === 'externalKey' ? [live] : [live, enveloped, ...sales]) {
        const answerTo = async (value: string) => {
          const answer = await send(operation, { token, params: { [name]: value } })
          return { status: answer.status, text: withoutIds(answer.text.replaceAll(value, 'value')) }
        }
        const unknown = await answerTo(isUuid ? uuidv7(Date.now()) : `nothing-${uuidv7(Date.now()).slice(-12)}`)
        if (isUuid) expect(unknown.status).toBe(404)
        for (const value of world.foreign[name]!) expect(await answerTo(value), `${name} ${value}`).toEqual(unknown)
      }
    }
  })

  test('names what is wrong with the path, the query and the headers', async () => {
    const { params = {} } = goodRequests[id]!()
    for (const [name, good] of Object.entries(params)) {
      for (const value of brokenParameters(operation.params, name, good)) {
        expectNamed(await send(operation, { params: { [name]: value } }), name, `${name}=${value}`)
      }
    }
    for (const { query, field } of brokenQueries(operation.query)) {
      const answer = await send(operation, { query })
      expectNamed(answer, field, query)
      expectRefusal(operation, answer, answer.json.code!)
    }
    if (operation.ifMatch) {
      for (const value of brokenRevisions) {
        expectNamed(await send(operation, { headers: { 'if-match': value } }), 'If-Match', value)
      }
    }
    if (takesIdempotencyKey(operation)) {
      for (const key of brokenIdempotencyKeys) {
        const answer = await send(operation, { headers: { 'idempotency-key': key } })
        expectNamed(answer, 'Idempotency-Key', key)
        expectRefusal(operation, answer, 'idempotency_key_invalid')
      }
    }
  })

  const { body: bodySchema } = operation
  test.runIf(bodySchema)('names what is wrong with the body', async () => {
    for (const { label, value, field } of brokenBodies(bodySchema!, goodRequests[id]!().body)) {
      const answer = await send(operation, { body: value })
      expectNamed(answer, field, label)
      expectRefusal(operation, answer, answer.json.code!, label)
    }
  })

  test.runIf(bodySchema)('refuses bodies that are no JSON of bounded size', async () => {
    for (const [change, code] of brokenJson(operation)) {
      expectRefusal(operation, await send(operation, change), code, String(change.raw).slice(0, 30))
    }
  })
})
