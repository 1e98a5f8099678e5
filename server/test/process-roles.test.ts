import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createService, type Service } from '../src/service.ts'
import { createLog } from '../src/shared/log.ts'
import { eventVersion } from '../src/shared/outbox/event-types.ts'
import { createMailbox } from './support/mailbox.ts'
import { type Receiver, startReceiver } from './support/receiver.ts'
import { openTestSecrets } from './support/secrets.ts'
import { startTestService, type TestService } from './support/service.ts'
import { pepper } from './support/tenants.ts'

/** One process that answers requests and sends nothing, and one that sends and answers nothing. */
let api: TestService
let worker: Service
let port: number
let receiver: Receiver

beforeAll(async () => {
  api = await startTestService()
  receiver = await startReceiver()
  worker = createService({
    connection: api.db.login,
    poolSize: 4,
    keys: { pepper, cursors: randomBytes(32) },
    secrets: await openTestSecrets(api.db.database),
    mail: createMailbox(),
    baseUrl: 'http://127.0.0.1:8080',
    rateLimitScale: 0,
    log: createLog({ level: 'silent', pretty: false }),
    allowPrivateDestinations: true,
    answers: false,
  })
  const at = await worker.http.listen({ host: '127.0.0.1', port: 0 })
  port = at.port
})
afterAll(async () => {
  await worker.http.drain(1000)
  await worker.close()
  await receiver.close()
  await api.stop()
})

test('a worker answers for itself, and nothing else', async () => {
  const status = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status
  const paths = [
    '/healthz',
    '/readyz',
    '/metrics',
    '/',
    '/docs',
    `/v1/apps/${api.app.appId}/objects`,
    '/v1/platform/account',
  ]
  expect(await Promise.all(paths.map(status))).toEqual([200, 200, 200, 404, 404, 404, 404])
})

test('what is changed through one process is delivered by the other', async () => {
  const { token } = api.app.organizations.a.credentials.live
  const post = (path: string, body: object) => api.call('POST', `/v1/apps/${api.app.appId}${path}`, { token, body })
  const subscribed = await post('/webhooks', {
    displayName: 'Worker',
    destinationUrl: `http://127.0.0.1:${receiver.port}/`,
    events: [{ eventKey: 'record.created', eventVersion }],
  })
  expect(subscribed.status).toBe(201)
  expect((await post('/objects/deal/records', { fields: { name: 'Renewal' } })).status).toBe(201)
  await worker.dispatcher.dispatchAll()
  await worker.deliveries.deliverAll()
  expect(receiver.requests.map(({ body }) => JSON.parse(body).data.record.fields.name)).toEqual(['Renewal'])
})
