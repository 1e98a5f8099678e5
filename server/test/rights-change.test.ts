import sql, { type Sql } from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { hashSecret, makeToken } from '../src/shared/identity/tokens.ts'
import { applyModel } from '../src/shared/modelling/apply.ts'
import type { Sent } from './support/http-client.ts'
import { type Instance, startTestService, type TestService } from './support/service.ts'
import { issueCredential, pepper, type TestCredential } from './support/tenants.ts'
import { testModel } from './support/test-model.ts'

/**
 * What a caller may do changes in the database, and the very next request of every process is answered accordingly,
 * whatever it asks and whatever the process remembers of the caller. Each test works with a member of its own.
 */
let service: TestService
let instances: readonly Instance[]
let member: TestCredential & { readonly userId: string }
let live: TestCredential

beforeAll(async () => {
  service = await startTestService()
  instances = [service, await service.startAnother()]
  const { token } = service.app.organizations.a.credentials.live
  for (const name of ['one', 'two']) {
    await service.call('POST', at('/objects/deal/records'), { token, body: { fields: { name } } })
  }
})
afterAll(() => service.stop())

const at = (path: string) => `/v1/apps/${service.app.appId}${path}`

/** A member of role clerk at both locations, and a live credential, known to both processes. */
beforeEach(async () => {
  const { a } = service.app.organizations
  const { users } = a
  const scope = { ...a, appId: service.app.appId }
  await change(
    sql`DELETE FROM portico.membership_data_role WHERE user_id = ${users.clerk.userId}`,
    sql`INSERT INTO portico.membership_data_role VALUES (${a.organizationId}, ${users.clerk.userId}, ${a.dataRoles['clerk']})`,
  )
  await service.db.database.as('portico_owner', async (tx) => {
    const plan = { kind: 'dat', userId: users.clerk.userId, displayName: 'member' } as const
    member = { ...(await issueCredential(tx, scope, plan)), userId: users.clerk.userId }
    live = await issueCredential(tx, scope, { displayName: 'live' })
  })
  for (const { token } of [member, live]) {
    expect(await told(token, 'POST', '/objects/deal/records/search')).toEqual([[200], [200]])
  }
})

/** Changes rows as the service itself would: with the epoch of the organisation, in one transaction. */
async function change(...statements: Sql[]): Promise<void> {
  const { organizationId } = service.app.organizations.a
  await service.db.database.inOrganization(organizationId, async (tx) => {
    for (const statement of statements) await tx.rows(statement)
    await tx.rows(sql`SELECT portico.bump_epoch(${organizationId})`)
  })
}

/** What each process answers: the status, and the code where there is one. */
function told(token: string, method: string, path: string, sent: Sent = {}): Promise<(number | string)[][]> {
  return Promise.all(
    instances.map(async ({ call }) => {
      const { status, json } = await call(method, at(path), { token, ...sent })
      return [status, ...(json.code ? [json.code] : [])]
    }),
  )
}

const both = (...answer: (number | string)[]) => [answer, answer]

/** Requests that get to the database, and requests that are refused long before. */
const requests: [method: string, path: string, sent?: Sent][] = [
  ['POST', '/objects/deal/records/search'],
  ['POST', '/objects/deal/records', { body: { fields: { name: 'x' } } }],
  ['GET', '/auth/context'],
  ['POST', '/objects/deal/records', { raw: '{"broken' }],
  ['GET', '/objects?surprise=1'],
  ['GET', '/objects/deal/records/not-a-uuid'],
  ['POST', '/objects/deal/records', { body: {}, headers: { 'idempotency-key': 'two words' } }],
]

async function expectToldEverywhere(token: string, ...answer: (number | string)[]): Promise<void> {
  for (const [method, path, sent] of requests) {
    expect([method, path, sent, await told(token, method, path, sent)]).toEqual([method, path, sent, both(...answer)])
  }
}

test('a credential that is revoked', async () => {
  for (const { token, keyId } of [member, live]) {
    await change(sql`UPDATE portico.credential SET revoked_at = now() WHERE key_id = ${keyId}`)
    await expectToldEverywhere(token, 401, 'credential_invalid')
    await change(sql`UPDATE portico.credential SET revoked_at = NULL WHERE key_id = ${keyId}`)
    expect(await told(token, 'GET', '/objects')).toEqual(both(200))
  }
})

test('a credential that has expired, and one that was prolonged', async () => {
  await change(sql`UPDATE portico.credential SET expires_at = now() - interval '1 second' WHERE key_id = ${live.keyId}`)
  await expectToldEverywhere(live.token, 401, 'credential_expired')
  await change(sql`UPDATE portico.credential SET expires_at = now() + interval '1 hour' WHERE key_id = ${live.keyId}`)
  expect(await told(live.token, 'GET', '/objects')).toEqual(both(200))
})

test('a secret that was rotated', async () => {
  const { secret, keyId } = makeToken('live')
  const rotated = (token: string, hash: Buffer) => ({ token, hash })
  const [, , , rest] = live.token.split('_') as [string, string, string, string]
  const before = rotated(live.token, hashSecret(pepper, rest.slice(0, 43)))
  // The key stays; a token of another key carries the new secret.
  const other = await service.db.database.as('portico_owner', (tx) =>
    issueCredential(tx, { ...service.app.organizations.a, appId: service.app.appId }, { displayName: 'rotating' }),
  )
  expect(keyId).not.toBe(other.keyId)
  expect(await told(other.token, 'GET', '/objects')).toEqual(both(200))
  const hashOf = (token: string) => hashSecret(pepper, token.split('_')[3]!.slice(0, 43))
  await change(
    sql`UPDATE portico.credential SET secret_hash = ${hashSecret(pepper, secret)} WHERE key_id = ${other.keyId}`,
  )
  await expectToldEverywhere(other.token, 401, 'credential_invalid')
  await change(sql`UPDATE portico.credential SET secret_hash = ${hashOf(other.token)} WHERE key_id = ${other.keyId}`)
  expect(await told(other.token, 'GET', '/objects')).toEqual(both(200))
  // While a rotation overlaps, both hold; afterwards the new one alone.
  await change(sql`UPDATE portico.credential SET secret_hash = ${hashSecret(pepper, secret)},
    previous_secret_hash = ${before.hash}, previous_expires_at = now() + interval '1 hour' WHERE key_id = ${live.keyId}`)
  expect(await told(live.token, 'GET', '/objects')).toEqual(both(200))
  await change(sql`UPDATE portico.credential SET previous_expires_at = now() WHERE key_id = ${live.keyId}`)
  await expectToldEverywhere(live.token, 401, 'credential_invalid')
})

test('a scope that is taken and given back', async () => {
  await change(
    sql`UPDATE portico.credential SET scopes = array_remove(scopes, 'records.read') WHERE key_id = ${live.keyId}`,
  )
  expect(await told(live.token, 'POST', '/objects/deal/records/search')).toEqual(both(403, 'scope_missing'))
  expect(await told(live.token, 'POST', '/objects/deal/records/search', { raw: '{' })).toEqual(
    both(403, 'scope_missing'),
  )
  await change(sql`UPDATE portico.credential SET scopes = scopes || ARRAY['records.read'] WHERE key_id = ${live.keyId}`)
  expect(await told(live.token, 'POST', '/objects/deal/records/search')).toEqual(both(200))
})

test('a user who is deactivated, and active again', async () => {
  const set = (status: string) =>
    sql`UPDATE portico.tenant_user SET status = ${status} WHERE user_id = ${member.userId}`
  await change(set('inactive'))
  await expectToldEverywhere(member.token, 403, 'user_inactive')
  await change(set('active'))
  expect(await told(member.token, 'POST', '/objects/deal/records/search')).toEqual(both(200))
})

test('an organization that is deactivated, and active again', async () => {
  const { organizationId } = service.app.organizations.a
  const set = (status: string) =>
    sql`UPDATE portico.organization SET status = ${status} WHERE organization_id = ${organizationId}`
  await change(set('inactive'))
  for (const { token } of [member, live]) await expectToldEverywhere(token, 403, 'organization_inactive')
  await change(set('active'))
  for (const { token } of [member, live]) expect(await told(token, 'GET', '/objects')).toEqual(both(200))
})

test('a role that is taken, exchanged and given back', async () => {
  const { organizationId, dataRoles } = service.app.organizations.a
  const take = sql`DELETE FROM portico.membership_data_role WHERE user_id = ${member.userId}`
  const give = (role: string) =>
    sql`INSERT INTO portico.membership_data_role VALUES (${organizationId}, ${member.userId}, ${dataRoles[role]})`
  const body = { fields: { name: 'By a member' } }
  expect(await told(member.token, 'POST', '/objects/deal/records', { body })).toEqual(both(201))
  await change(take)
  expect(await told(member.token, 'POST', '/objects/deal/records', { body })).toEqual(both(404, 'object_not_found'))
  expect(await told(member.token, 'GET', '/objects/deal/schema')).toEqual(both(404, 'object_not_found'))
  await change(give('support'))
  expect(await told(member.token, 'POST', '/objects/deal/records', { body })).toEqual(both(403, 'permission_denied'))
  expect(await told(member.token, 'POST', '/objects/deal/records/search')).toEqual(both(200))
  await change(take, give('clerk'))
  expect(await told(member.token, 'POST', '/objects/deal/records', { body })).toEqual(both(201))
})

test('an owner who is one no more', async () => {
  const { owner } = service.app.organizations.a.users
  const body = { fields: { name: 'Private' }, ownerUserId: owner.userId }
  const created = await service.call<{ recordId: string }>('POST', at('/objects/deal/records'), {
    token: owner.token,
    body,
  })
  const path = `/objects/deal/records/${created.json.recordId}`
  expect(await told(member.token, 'GET', path)).toEqual(both(404, 'record_not_found'))
  const set = (isOwner: boolean) =>
    sql`UPDATE portico.membership SET is_owner = ${isOwner} WHERE user_id = ${member.userId}`
  await change(set(true))
  expect(await told(member.token, 'GET', path)).toEqual(both(200))
  await change(set(false))
  expect(await told(member.token, 'GET', path)).toEqual(both(404, 'record_not_found'))
})

test('a location that is taken', async () => {
  const { organizationId, dataRoles, locations } = service.app.organizations.a
  const body = { fields: { name: 'Northern' }, dataRoleId: dataRoles['clerk'], locationId: locations['north'] }
  const created = await service.call<{ recordId: string }>('POST', at('/objects/deal/records'), {
    token: live.token,
    body,
  })
  const path = `/objects/deal/records/${created.json.recordId}`
  expect(await told(member.token, 'GET', path)).toEqual(both(200))
  const narrow = (all: boolean) =>
    sql`UPDATE portico.membership SET all_locations = ${all} WHERE user_id = ${member.userId}`
  const give = sql`INSERT INTO portico.membership_location VALUES (${organizationId}, ${member.userId}, ${locations['south']})`
  await change(narrow(false), give)
  expect(await told(member.token, 'GET', path)).toEqual(both(404, 'record_not_found'))
  await change(narrow(true), sql`DELETE FROM portico.membership_location WHERE user_id = ${member.userId}`)
  expect(await told(member.token, 'GET', path)).toEqual(both(200))
})

test('permissions and fields of the application', async () => {
  const { clerk } = testModel.roles!
  const setClerk = (objects: object) =>
    applyModel(service.db.database, service.app.appId, { objects: [], roles: { clerk: { ...clerk, objects } } })
  const write = { body: { fields: { name: 'Allowed?', stage: 'open' } } }
  const search = { body: { sort: 'stage_asc', fields: ['stage'] } }
  const contract = async () => {
    const headers = instances.map(
      async ({ call }) => (await call('GET', at('/openapi.json'), { token: member.token })).headers,
    )
    const [first, second] = (await Promise.all(headers)).map((one) => one['x-service-contract-sha256'])
    expect(second).toBe(first)
    return first
  }
  expect(await told(member.token, 'POST', '/objects/deal/records', write)).toEqual(both(201))
  const before = await contract()

  await setClerk({ deal: { read: true, update: true } })
  expect(await told(member.token, 'POST', '/objects/deal/records', write)).toEqual(both(403, 'permission_denied'))
  await setClerk({ deal: { read: true, create: true, fields: { stage: { read: true, write: false } } } })
  expect(await told(member.token, 'POST', '/objects/deal/records', write)).toEqual(both(403, 'permission_denied'))
  await setClerk({ deal: { read: true, create: true, fields: { stage: { read: false, write: false } } } })
  expect(await told(member.token, 'POST', '/objects/deal/records', write)).toEqual(both(400, 'unknown_field'))
  expect(await told(member.token, 'POST', '/objects/deal/records/search', search)).toEqual(both(400, 'sort_invalid'))
  const narrower = await contract()
  expect(narrower).not.toBe(before)
  await setClerk({ deal: { read: false } })
  expect(await told(member.token, 'POST', '/objects/deal/records/search')).toEqual(both(404, 'object_not_found'))
  await setClerk(clerk!.objects)
  expect(await told(member.token, 'POST', '/objects/deal/records', write)).toEqual(both(201))
  expect(await contract()).toBe(before)

  const field = { fieldKey: 'brandNew', label: 'Brand new', dataType: 'text' }
  const deal = testModel.objects.find((object) => object.objectKey === 'deal')!
  const named = { body: { fields: { name: 'x', brandNew: 'yes' } } }
  expect(await told(member.token, 'POST', '/objects/deal/records', named)).toEqual(both(400, 'unknown_field'))
  await applyModel(service.db.database, service.app.appId, { objects: [{ ...deal, fields: [field] }] })
  expect(await told(member.token, 'POST', '/objects/deal/records', named)).toEqual(both(201))
  expect(await contract()).not.toBe(before)
})

test('what changes under a stream of requests holds from its commit on', async () => {
  let revokedAt = Number.POSITIVE_INFINITY
  let late = 0
  let early = 0
  const stream = async ({ call }: Instance) => {
    for (let n = 0; n < 200; n++) {
      const startedAt = performance.now()
      const { status } = await call('POST', at('/objects/deal/records'), {
        token: live.token,
        body: { fields: { name: 'stream' } },
      })
      if (status === 201 && startedAt > revokedAt) late++
      if (status === 201) early++
      else expect(status).toBe(401)
      if (startedAt > revokedAt && n > 20) return
    }
  }
  const streams = [...instances, ...instances].map(stream)
  await new Promise((resolve) => setTimeout(resolve, 100))
  await change(sql`UPDATE portico.credential SET revoked_at = now() WHERE key_id = ${live.keyId}`)
  revokedAt = performance.now()
  await Promise.all(streams)
  expect(late).toBe(0)
  expect(early).toBeGreaterThan(0)
})
