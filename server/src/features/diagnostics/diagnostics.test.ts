import { afterAll, beforeAll, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { openTestSecrets } from '../../../test/support/secrets.ts'
import { createTenant, pepper, type TestCredential } from '../../../test/support/tenants.ts'
import type { Response } from '../../kernel/exchange.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { BaseContext } from '../../kernel/operation.ts'
import { createPipeline, type Invoke } from '../../kernel/pipeline.ts'
import { requireToken } from '../../kernel/steps.ts'
import type { Context } from '../../shared/context.ts'
import { createDiagnostics, type Diagnostics, type RequestDiagnostics } from '../../shared/diagnostics.ts'
import { createIdempotency } from '../../shared/idempotency.ts'
import { createAuthenticator } from '../../shared/identity/authenticate.ts'
import { createFailedCredentials } from '../../shared/identity/failed-credentials.ts'
import { createLog } from '../../shared/log.ts'
import { createRateLimits } from '../../shared/rate-limits.ts'
import { diagnosticsOperations } from './operations.ts'

const [getCorrelation] = diagnosticsOperations
let db: TestDatabase
let diagnostics: Diagnostics
let invoke: Invoke<Context>
let appId: string
let live: TestCredential
let user: TestCredential
let readOnly: TestCredential
let foreign: TestCredential
let now = Date.now()
const clock = { now: () => now }

beforeAll(async () => {
  db = await createTestDatabase({ poolSize: 10 })
  const { database } = db
  const tenant = await createTenant(database, {
    organizations: {
      a: { users: { owner: { owner: true } }, credentials: { live: {}, readOnly: { scopes: ['records.read'] } } },
      b: { credentials: { live: {} } },
    },
  })
  appId = tenant.appId
  live = tenant.organizations.a.credentials.live
  readOnly = tenant.organizations.a.credentials.readOnly
  user = tenant.organizations.a.users.owner
  foreign = tenant.organizations.b.credentials.live
  diagnostics = createDiagnostics({ database, clock, log: createLog({ level: 'silent', pretty: false }) })
  const failed = createFailedCredentials({ scale: 0 })
  const authenticator = createAuthenticator({ database, clock, pepper, failed })
  invoke = createPipeline<Context>({
    clock,
    authenticate: (request) => authenticator.authenticate(requireToken(request), request.address),
    forget: authenticator.forget,
    ...createRateLimits({ scale: 1 }),
    transact: database.transact,
    idempotency: createIdempotency({ clock, secrets: await openTestSecrets(database) }),
    services: { diagnostics } as unknown as Omit<Context, keyof BaseContext>,
    record: diagnostics.record,
    checkResponses: true,
  })
})
afterAll(async () => {
  await diagnostics.close()
  await db.drop()
})

/** Asks for a request, and returns the answer with the correlation id of the asking itself. */
async function ask(credential: TestCredential, wanted: string): Promise<Response & { readonly correlationId: string }> {
  const correlationId = uuidv7(Date.now())
  const response = await invoke(getCorrelation!, {
    correlationId,
    token: credential.token,
    address: '127.0.0.1',
    host: '127.0.0.1',
    userAgent: 'test',
    params: { saasAppId: appId, correlationId: wanted },
    query: {},
    readBody: () => undefined,
    idempotencyKey: undefined,
    ifMatch: undefined,
  })
  return { ...response, correlationId }
}

/** A request to ask for: one that found nothing. */
const failedRequest = async () => (await ask(live, uuidv7(Date.now()))).correlationId

const expected = (correlationId: string) => ({
  correlationId,
  occurredAt: new Date(now).toISOString(),
  operationId: 'developerLogsGetCorrelation',
  method: 'GET',
  route: '/v1/apps/{saasAppId}/logs/correlations/{correlationId}',
  status: 404,
  code: 'correlation_not_found',
  durationMs: expect.any(Number),
  credentialKind: 'live',
  stages: [
    'authenticate',
    'allow the credential kind',
    'match the application',
    'require activity',
    'require the scope',
    'limit the rate',
    'validate',
    'execute',
  ].map((name) => ({ name, durationMs: expect.any(Number) })),
  entries: [
    {
      level: 'warning',
      code: 'correlation_not_found',
      field: null,
      message: 'No request with this correlation id was found.',
    },
  ],
})

test('a request can be looked up right after its answer, and reads the same from the queue and from the database', async () => {
  const correlationId = await failedRequest()
  const queued = await ask(live, correlationId)
  expect(queued.status).toBe(200)
  expect(queued.body).toStrictEqual(expected(correlationId))
  await diagnostics.flush()
  const stored = await ask(live, correlationId)
  expect(stored.body).toStrictEqual(queued.body)
  expect((await ask(user, correlationId.toUpperCase())).body).toStrictEqual(queued.body)
})

test('a request that succeeded is known too', async () => {
  const first = await ask(live, await failedRequest())
  const { body } = await ask(user, first.correlationId)
  expect(body).toMatchObject({ status: 200, code: null, entries: [] })
})

test('a request of another organization is as unknown as one that never was', async () => {
  const correlationId = await failedRequest()
  const queued = await ask(foreign, correlationId)
  await diagnostics.flush()
  const stored = await ask(foreign, correlationId)
  const unknown = await ask(foreign, uuidv7(Date.now()))
  for (const { status, body } of [queued, stored, unknown]) {
    expect({ status, body }).toMatchObject({
      status: 404,
      body: { code: 'correlation_not_found', error: 'No request with this correlation id was found.' },
    })
  }
  expect(JSON.stringify([queued.body, stored.body])).not.toContain(correlationId)
})

test('what is no correlation id is named', async () => {
  const { status, body } = await ask(live, 'not-a-uuid')
  expect({ status, body }).toMatchObject({
    status: 400,
    body: { code: 'validation_failed', details: [{ field: 'correlationId' }] },
  })
})

test('the scope is required, and the refusal itself can be looked up', async () => {
  const refused = await ask(readOnly, await failedRequest())
  expect(refused).toMatchObject({ status: 403, body: { code: 'scope_missing' } })
  expect((await ask(live, refused.correlationId)).body).toMatchObject({ status: 403, code: 'scope_missing' })
})

test('after 7 days a request is forgotten', async () => {
  const correlationId = await failedRequest()
  await diagnostics.flush()
  await asAdministrator(db.connection, async (admin) => {
    await admin.query(`CREATE TABLE portico.request_log_old PARTITION OF portico.request_log
      FOR VALUES FROM (now() - interval '9 days') TO (now() - interval '6 days')`)
    const age = (days: string) =>
      admin.query(
        `UPDATE portico.request_log SET occurred_at = to_timestamp($2 / 1000.0) - interval '7 days' + $3::interval
          WHERE correlation_id = $1`,
        [correlationId, now, days],
      )
    await age('1 minute')
    expect((await ask(live, correlationId)).status).toBe(200)
    await age('0')
    expect((await ask(live, correlationId)).status).toBe(404)
  })
})

test('a flood of look-ups and of writes does not stand still for want of connections', async () => {
  const ids = await Promise.all(Array.from({ length: 100 }, failedRequest))
  const answers = await Promise.all([
    ...ids.map((id) => ask(live, id)),
    ...Array.from({ length: 20 }, () => diagnostics.flush()),
    ...ids.map((id) => ask(live, id)),
  ])
  const bodies = answers.flatMap((answer) => (answer ? [answer.body as RequestDiagnostics] : []))
  expect(bodies.map((body) => body.correlationId)).toEqual([...ids, ...ids])
})

test('diagnostics take the clock of the service', async () => {
  now += 1000
  const correlationId = await failedRequest()
  expect((await ask(live, correlationId)).body).toStrictEqual(expected(correlationId))
})
