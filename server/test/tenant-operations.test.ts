import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { insertInvitation } from '../src/features/tenancy/invitation-store.ts'
import { type ErrorCode, errorTable } from '../src/kernel/errors.ts'
import { uuidv7 } from '../src/kernel/ids.ts'
import type { Operation } from '../src/kernel/operation.ts'
import { errorCodesOf } from '../src/kernel/registry.ts'
import { tenantRegistry, tenantVisitorRegistry } from '../src/operations.ts'
import { createMint } from '../src/shared/identity/mint.ts'
import { makeToken } from '../src/shared/identity/tokens.ts'
import { brokenBodies, brokenIdempotencyKeys, brokenJson, brokenQueries } from './support/broken-input.ts'
import type { Answer } from './support/http-client.ts'
import { type Instance, startTestService, type TestService } from './support/service.ts'
import { cookieName, hostOf, onHost, openSession, password, setPassword, type Visit } from './support/tenant-host.ts'
import { pepper } from './support/tenants.ts'

/**
 * What is promised of every operation on a tenant host, generated from its registries. A new operation is covered by being
 * there; it needs one line in `goodRequests`, and fails without it.
 */
interface GoodRequest {
  readonly body?: unknown
  /** The status to expect. */
  readonly status?: number
}

const organization = () => service.app.organizations.a
const user = () => organization().users.sales

/** Each prepares what it uses up. The session is a new one every time. */
const goodRequests: Record<string, () => GoodRequest | Promise<GoodRequest>> = {
  developerTenantModulesContactsCount: () => ({}),
  developerTenantGlobalSearchCount: () => ({}),
  developerTenantSessionGet: () => ({}),
  developerTenantSessionDelete: () => ({}),
  async developerTenantSessionChangePassword() {
    await setPassword(service.db, organization().organizationId, user().userId)
    return { body: { currentPassword: password, newPassword: 'another good password' } }
  },
  async developerTenantSessionCreate() {
    await setPassword(service.db, organization().organizationId, user().userId)
    return { body: { email: user().email, password }, status: 201 }
  },
  developerTenantPasswordResetsCreate: () => ({ body: { email: user().email }, status: 202 }),
  async developerTenantPasswordResetsComplete() {
    const token = uuidv7(Date.now())
    const { organizationId } = organization()
    const values = [organizationId, user().userId, createMint(pepper).hashOf(token)]
    await service.db.database.inOrganization(organizationId, (tx) =>
      tx.rows({
        text: `INSERT INTO portico.password_reset (organization_id, user_id, token_hash, created_at, expires_at)
          VALUES ($1, $2, $3, now(), now() + '1 hour')`,
        values,
      }),
    )
    return { body: { token, newPassword: 'another good password' } }
  },
  async developerTenantInvitationsAccept() {
    const [token, invitationId] = [uuidv7(Date.now()), uuidv7(Date.now())]
    const { organizationId } = organization()
    const times = { sentAt: new Date().toISOString(), expiresAt: new Date(Date.now() + 3_600_000).toISOString() }
    const invited = { email: `${invitationId}@portico.example`, displayName: 'Invited', userTypeKey: 'member' }
    const rights = { isOwner: false, dataRoleIds: [], locations: 'all' } as const
    const tokenHash = createMint(pepper).hashOf(token)
    await service.db.database.inOrganization(organizationId, (tx) =>
      insertInvitation(tx, { organizationId, invitationId, ...invited, ...rights, ...times, tokenHash }),
    )
    return { body: { token, password: 'another good password', displayName: 'Ada Lovelace' }, status: 201 }
  },
}

let service: TestService
/** Grants one request of each class in a minute. */
let limited: Instance
beforeAll(async () => {
  service = await startTestService({ modules: true })
  limited = await service.startAnother({ rateLimitScale: 1e-9 })
})
afterAll(() => service.stop())

type AnyOperation = Operation<never>
const withSession = tenantRegistry.operations as unknown as readonly AnyOperation[]
const withoutSession = tenantVisitorRegistry.operations as unknown as readonly AnyOperation[]
const all = [...withSession, ...withoutSession]
const byId = (operations: readonly AnyOperation[]) => operations.map((operation) => [operation.id, operation] as const)
const isChange = ({ method }: AnyOperation) => method !== 'GET'

interface Change extends Visit {
  readonly host?: string
  readonly query?: string
  readonly client?: Pick<Instance, 'call'>
}

/** The operation's good request, in a session of its own where it takes one, with what a test changes about it. */
async function send(operation: AnyOperation, change: Change = {}): Promise<Answer> {
  const { host = hostOf(organization()), query, client = service, ...sent } = change
  const good = await goodRequests[operation.id]!()
  const session = 'session' in sent || !withSession.includes(operation) ? {} : { session: await newSession() }
  const body = good.body !== undefined && sent.raw === undefined && !('body' in sent) ? { body: good.body } : {}
  const path = query === undefined ? operation.path : `${operation.path}?${query}`
  return onHost(client, host)(operation.method, path, { ...session, ...body, ...sent })
}

const newSession = () => openSession(service.db, service.app, organization(), user())

function expectRefusal(operation: AnyOperation, answer: Answer, code: ErrorCode, context = ''): void {
  expect(answer.json, `${context} ${answer.text}`).toMatchObject({ code })
  expect(answer.status).toBe(errorTable[code].status)
  expect(errorCodesOf(operation)).toContain(code)
  expect(answer.headers['cache-control']).toBe('no-store')
  expect(answer.headers['set-cookie']).toBeUndefined()
}

function expectNamed(operation: AnyOperation, answer: Answer, field: string, context: string): void {
  expect(answer.status, `${context}: ${answer.text}`).toBe(400)
  expectRefusal(operation, answer, answer.json.code!, context)
  expect((answer.json.details ?? []).map((detail) => detail.field)).toContainEqual(
    expect.stringMatching(new RegExp(`^${field.replaceAll(/[[\].]/g, '\\$&')}($|[.[])`)),
  )
}

test('every operation has a good request', () => {
  expect(Object.keys(goodRequests).sort()).toEqual(all.map(({ id }) => id).sort())
})

describe.each(byId(all))('%s', (id, operation) => {
  test('answers as it declares, for this user alone', async () => {
    const { status = 200 } = await goodRequests[id]!()
    const answer = await send(operation)
    expect(answer.status, answer.text).toBe(status)
    expect(operation.responses[status]).toBeDefined()
    expect(answer.headers['cache-control']).toBe('no-store')
    for (const header of ['access-control-allow-origin', 'access-control-allow-credentials', 'etag']) {
      expect(answer.headers[header], header).toBeUndefined()
    }
    const declared = Object.keys(operation.responseHeaders ?? {}).includes('Set-Cookie')
    expect(answer.headers['set-cookie'] !== undefined).toBe(declared)
  })

  test('does not exist on the API host', async () => {
    for (const host of ['127.0.0.1:8080', 'localhost', 'portico', 'api.unknown.example', 'a.b.localhost']) {
      const answer = await send(operation, { host })
      expect(answer, host).toMatchObject({ status: 404, json: { code: 'route_not_found' } })
    }
  })

  test('is not asked for by another site', async () => {
    const { slug } = organization()
    const sites: Readonly<Record<string, string>>[] = [
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', origin: `http://${slug}.localhost:8080` },
      { origin: 'https://evil.example' },
      { origin: `http://${service.app.organizations.b.slug}.localhost:8080` },
      { origin: `http://${slug}.localhost:8081` },
      { origin: 'null' },
    ]
    for (const headers of sites) {
      const answer = await send(operation, { headers })
      if (isChange(operation)) expectRefusal(operation, answer, 'cross_site_request', JSON.stringify(headers))
      else expect(answer.status).toBeLessThan(300)
    }
    const page = { 'sec-fetch-site': 'same-origin', origin: `http://${slug}.localhost:8080` }
    expect((await send(operation, { headers: page })).status).toBeLessThan(300)
  })

  test('no other site may ask whether it may', async () => {
    const headers = { origin: 'https://evil.example', 'access-control-request-method': operation.method }
    const answer = await onHost(service, hostOf(organization()))('OPTIONS', operation.path, { headers })
    expect(answer.status).toBe(405)
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
  })

  test.runIf(operation.method === 'POST')('takes nothing that a form can send', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      const answer = await send(operation, { headers: { 'content-type': type } })
      expect(answer, type).toMatchObject({ status: 415, json: { code: 'unsupported_media_type' } })
    }
  })

  test('exists in an organization that is active, of an application that is not archived', async () => {
    const { dormant, b } = service.app.organizations
    const { c } = service.otherApp.organizations
    const setArchived = (at: Date | null) =>
      service.db.database.as('portico_owner', async (tx) => {
        const { appId } = service.otherApp
        await tx.rows({
          text: 'UPDATE portico.application SET archived_at = $1 WHERE app_id = $2',
          values: [at?.toISOString() ?? null, appId],
        })
        await tx.rows({ text: 'SELECT portico.bump_epoch($1)', values: [appId] })
      })
    const inside = async (there: typeof b | typeof c, appId: string) =>
      withSession.includes(operation)
        ? { host: hostOf(there), session: await openSession(service.db, { appId }, there, there.users.owner) }
        : { host: hostOf(there) }
    const inactive = await send(operation, await inside(dormant, service.app.appId))
    expectRefusal(operation, inactive, 'organization_inactive')
    await setArchived(new Date())
    const archived = await send(operation, await inside(c, service.otherApp.appId))
    expectRefusal(operation, archived, 'application_archived')
    await setArchived(null)
  })

  test('belongs to an organization', async () => {
    const answer = await send(operation, { host: 'nobody-of-this-name.localhost' })
    expectRefusal(operation, answer, 'organization_not_found')
  })

  test('refuses what is beyond its budget, before it looks at the request', async () => {
    const session = withSession.includes(operation) ? { session: await newSession() } : {}
    const ask = () => send(operation, { client: limited, query: 'surprise=1', raw: '{"broken', ...session })
    await ask()
    expectRefusal(operation, await ask(), 'rate_limited')
  })

  test('names what is wrong with the query and the headers', async () => {
    for (const { query, field } of brokenQueries(operation.query)) {
      expectNamed(operation, await send(operation, { query }), field, query)
    }
    if (operation.transaction !== 'write') return
    for (const key of brokenIdempotencyKeys) {
      expectNamed(operation, await send(operation, { headers: { 'idempotency-key': key } }), 'Idempotency-Key', key)
    }
  })

  test.runIf(operation.body)('names what is wrong with the body', async () => {
    const { body } = await goodRequests[id]!()
    const session = withSession.includes(operation) ? { session: await newSession() } : {}
    for (const { label, value, field } of brokenBodies(operation.body!, body)) {
      expectNamed(operation, await send(operation, { body: value, ...session }), field, label)
    }
    for (const [sent, code] of brokenJson(operation)) {
      expectRefusal(operation, await send(operation, { ...sent, ...session }), code, String(sent.raw).slice(0, 30))
    }
  })
})

describe.each(byId(withSession))('%s', (_, operation) => {
  test('wants the cookie of a session, and nothing else in its place', async () => {
    const { live } = organization().credentials
    const missing: Change[] = [
      {},
      { token: live.token },
      { token: await newSession() },
      { query: `session=${await newSession()}` },
      { headers: { cookie: 'other=1' } },
      // Somebody has put a second one beside the user's own: whose is whose cannot be told.
      { headers: { cookie: `${cookieName}=${await newSession()}; ${cookieName}=${await newSession()}` } },
    ]
    for (const change of missing) {
      const answer = await send(operation, { session: undefined, ...change })
      expectRefusal(operation, answer, 'credential_missing')
      expect(answer.headers['www-authenticate']).toBe('Session')
    }
  })

  test('refuses a session that is none, that is over, or that is not of this host', async () => {
    const { a, b, dormant } = service.app.organizations
    const { c } = service.otherApp.organizations
    const good = await newSession()
    const open = (there: typeof a, state = {}) => openSession(service.db, service.app, there, there.users.sales, state)
    const invalid = [
      '',
      'null',
      good.slice(0, -1),
      `${good}0`,
      `"${good}"`,
      makeToken('ses').text,
      'x'.repeat(4000),
      await open(a, { revoked: true }),
      await open(b),
      await open(dormant),
      await openSession(service.db, service.otherApp, c, c.users.owner),
    ]
    for (const session of invalid) {
      expectRefusal(operation, await send(operation, { session }), 'credential_invalid', session.slice(0, 60))
    }
    const expired = await open(a, { expiresAt: new Date(0) })
    expectRefusal(operation, await send(operation, { session: expired }), 'credential_expired')
  })

  test('takes no other credential in the cookie', async () => {
    const { credentials, users } = organization()
    const codes: [token: string, code: ErrorCode][] = [
      [credentials.live.token, 'credential_kind_not_allowed'],
      [users.owner.token, 'credential_kind_not_allowed'],
      [service.builderTokens.valid, 'credential_kind_not_allowed'],
      [credentials.draft.token, 'draft_credential_not_allowed'],
    ]
    for (const [session, code] of codes) expectRefusal(operation, await send(operation, { session }), code)
  })

  test('refuses a user who is inactive', async () => {
    const session = await openSession(service.db, service.app, organization(), organization().users.inactive)
    expectRefusal(operation, await send(operation, { session }), 'user_inactive')
  })
})
