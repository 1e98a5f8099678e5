import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Answer, HttpClient, Sent } from '../../../test/support/http-client.ts'
import { type Platform, startPlatform, type TestBuilder } from '../../../test/support/platform.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import { testModel } from '../../../test/support/test-model.ts'

let now = Date.now()
let platform: Platform
let another: HttpClient
let builder: TestBuilder
let tenant: Awaited<ReturnType<typeof newTenant>>
let base: string

function newTenant(accountId: string) {
  return createTenant(platform.db.database, {
    accountId,
    model: testModel,
    organizations: {
      a: {
        locations: ['north'],
        users: { owner: { owner: true } },
        credentials: { other: {} },
      },
      b: { locations: ['south'], credentials: { other: {} } },
    },
  })
}

beforeAll(async () => {
  platform = await startPlatform({ clock: { now: () => now } })
  another = await platform.startAnother()
  builder = await platform.newAccount('developer')
  tenant = await newTenant(builder.accountId)
  base = `/v1/platform/organizations/${tenant.organizations.a.organizationId}/credentials`
})
afterAll(() => platform.stop())

interface Credential {
  readonly keyId: string
  readonly token: string
  readonly status: string
  readonly lastUsedAt: string | null
  readonly previousSecretExpiresAt: string | null
}
type CredentialAnswer = Answer<
  Credential & { readonly items: readonly Credential[]; readonly nextCursor: string | null }
>

function ask(method: string, path: string, sent: Sent = {}): Promise<CredentialAnswer> {
  return platform.call(method, path, { token: builder.token, ...sent })
}

const order = { kind: 'live', displayName: 'Warehouse', scopes: ['records.read', 'records.write'] }

async function issue(more: object = {}): Promise<Credential> {
  const answer = await ask('POST', base, { body: { ...order, ...more } })
  expect(answer.status, answer.text).toBe(201)
  return answer.json
}

function createDeal(token: string, client: Pick<HttpClient, 'call'> = platform) {
  const body = { fields: { name: 'Pilot' } }
  return client.call('POST', `/v1/apps/${tenant.appId}/objects/deal/records`, { token, body })
}

async function expectEnded(token: string, code = 'credential_invalid'): Promise<void> {
  for (const client of [platform, another]) {
    const answer = await createDeal(token, client)
    expect([answer.status, answer.json.code]).toEqual([401, code])
  }
}

async function expectWorking(token: string): Promise<void> {
  for (const client of [platform, another]) expect((await createDeal(token, client)).status).toBe(201)
}

async function rowOf(keyId: string): Promise<string> {
  const rows = await platform.db.database.as('portico_owner', (tx) =>
    tx.rows<{ row: string }>({
      text: 'SELECT c::text AS row FROM portico.credential c WHERE key_id = $1',
      values: [keyId],
    }),
  )
  return rows[0]!.row
}

test('a credential is issued, shown once, and works', async () => {
  const { token, ...issued } = await issue()
  expect(issued).toMatchObject({
    kind: 'live',
    displayName: 'Warehouse',
    scopes: order.scopes,
    envelope: null,
    status: 'active',
    createdAt: new Date(now).toISOString(),
    createdBy: { kind: 'builder', id: builder.builderId },
    expiresAt: null,
    lastUsedAt: null,
    previousSecretExpiresAt: null,
    revokedAt: null,
  })
  await expectWorking(token)
  const listed = await ask('GET', base)
  expect(listed.json.items).toContainEqual(issued)
  expect(listed.text).not.toContain(token)
  const secret = token.slice(token.lastIndexOf('_') + 1)
  expect(await rowOf(issued.keyId)).not.toContain(secret)
  expect(platform.logLines.join('')).not.toContain(secret)
})

test('a repeated order answers the same token, and no table holds it', async () => {
  const sent = { body: order, headers: { 'idempotency-key': 'first-order' } }
  const first = await ask('POST', base, sent)
  const second = await ask('POST', base, sent)
  expect([first.status, second.status]).toEqual([201, 201])
  expect(second.json).toEqual(first.json)
  expect(second.headers['idempotency-replayed']).toBe('true')
  const kept = await platform.db.database.as('portico_app', async (tx) => {
    await tx.rows({ text: `SELECT set_config('portico.account_id', $1, true)`, values: [builder.accountId] })
    return tx.rows<{ payload: string; sealed: Buffer }>({
      text: `SELECT payload, sealed FROM portico.idempotency_key WHERE key = 'first-order'`,
      values: [],
    })
  })
  expect(kept).toHaveLength(1)
  expect(kept[0]!.payload).toBe('')
  expect(kept[0]!.sealed.toString('latin1')).not.toContain(first.json.token)
})

describe('what fits together', () => {
  test.each([
    [{ kind: 'dat' }, 'kind', 'validation_failed'],
    [{ scopes: ['records.read', 'records.fly'] }, 'scopes[1]', 'validation_failed'],
    [{ scopes: ['records.read', 'audit.read'] }, 'scopes[1]', 'validation_failed'],
    [{ kind: 'draft', scopes: ['pages.draft', 'records.read'] }, 'scopes[1]', 'validation_failed'],
    [
      { kind: 'draft', scopes: ['pages.draft'], envelope: { dataRoleIds: [], locations: 'all' } },
      'envelope',
      'validation_failed',
    ],
    [{ envelope: { locations: 'all' } }, 'envelope.dataRoleIds', 'validation_failed'],
    [
      { envelope: { dataRoleIds: [], dataRoleKeys: [], locations: 'all' } },
      'envelope.dataRoleKeys',
      'validation_failed',
    ],
    [{ expiresAt: new Date(0).toISOString() }, 'expiresAt', 'validation_failed'],
    [{ expiresAt: '2026-12-31T23:59:60Z' }, 'expiresAt', 'validation_failed'],
    [{ expiresAt: '9999-12-31T23:59:59-23:59' }, 'expiresAt', 'validation_failed'],
    [{ displayName: 'nul \0' }, 'displayName', 'validation_failed'],
  ])('%j is refused, naming %s', async (more, field, code) => {
    const answer = await ask('POST', base, { body: { ...order, ...more } })
    expect([answer.status, answer.json.code, answer.json.details?.map((one) => one.field)]).toEqual([
      400,
      code,
      [field],
    ])
  })

  test('roles and locations of another organization are as good as none', async () => {
    const { a, b } = tenant.organizations
    for (const [envelope, field] of [
      [{ dataRoleIds: [a.dataRoles['sales'], b.dataRoles['sales']], locations: 'all' }, 'envelope.dataRoleIds[1]'],
      [{ dataRoleIds: [], locations: [b.locations['south']] }, 'envelope.locations[0]'],
      [{ dataRoleKeys: ['support', 'nobody'], locations: ['north'] }, 'envelope.dataRoleKeys[1]'],
      [{ dataRoleKeys: [], locations: ['north', 'nowhere'] }, 'envelope.locations[1]'],
    ] as const) {
      const answer = await ask('POST', base, { body: { ...order, envelope } })
      expect([answer.status, answer.json.code, answer.json.details?.[0]?.field]).toEqual([
        400,
        'reference_not_found',
        field,
      ])
    }
  })

  test('an envelope holds the credential to its roles and locations', async () => {
    const { a } = tenant.organizations
    const envelope = { dataRoleIds: [a.dataRoles['support']], locations: [a.locations['north']] }
    const issued = await issue({ envelope })
    expect(issued).toMatchObject({ envelope })
    expect(await issue({ envelope: { dataRoleKeys: ['support'], locations: ['north'] } })).toMatchObject({ envelope })
    const answer = await createDeal(issued.token)
    expect([answer.status, answer.json.code]).toEqual([403, 'permission_denied'])
  })

  test('a draft credential opens nothing but page drafts', async () => {
    const { token } = await issue({ kind: 'draft', scopes: ['pages.draft'] })
    expect((await createDeal(token)).json.code).toBe('draft_credential_not_allowed')
  })
})

describe('rotation', () => {
  test('without overlap ends the old secret at once, everywhere', async () => {
    const { keyId, token } = await issue()
    await expectWorking(token)
    const rotated = await ask('POST', `${base}/${keyId}:rotate`)
    expect(rotated.json).toMatchObject({ keyId, previousSecretExpiresAt: null })
    await expectEnded(token)
    await expectWorking(rotated.json.token)
  })

  test('with overlap both secrets hold until it is over', async () => {
    const { keyId, token } = await issue()
    await expectWorking(token)
    const rotated = await ask('POST', `${base}/${keyId}:rotate`, { body: { overlapSeconds: 600 } })
    expect(rotated.json.previousSecretExpiresAt).toBe(new Date(now + 600_000).toISOString())
    await expectWorking(token)
    await expectWorking(rotated.json.token)
    now += 600_000
    await expectEnded(token)
    await expectWorking(rotated.json.token)
    const listed = await ask('GET', base)
    expect(listed.json.items.find((one) => one.keyId === keyId)?.previousSecretExpiresAt).toBe(null)
  })

  test('a second one in the overlap ends the oldest secret', async () => {
    const { keyId, token } = await issue()
    const rotate = () => ask('POST', `${base}/${keyId}:rotate`, { body: { overlapSeconds: 600 } })
    const [second, third] = [await rotate(), await rotate()]
    await expectEnded(token)
    await expectWorking(second.json.token)
    await expectWorking(third.json.token)
  })

  test('the overlap is at most a week', async () => {
    const { keyId } = await issue()
    const answer = await ask('POST', `${base}/${keyId}:rotate`, { body: { overlapSeconds: 604_801 } })
    expect([answer.status, answer.json.details?.[0]?.field]).toEqual([400, 'overlapSeconds'])
  })
})

test('a revocation holds on the next request of every process, and is done once', async () => {
  const { keyId, token } = await issue()
  const { json: rotated } = await ask('POST', `${base}/${keyId}:rotate`, { body: { overlapSeconds: 600 } })
  await expectWorking(token)
  await expectWorking(rotated.token)
  const revoked = await ask('POST', `${base}/${keyId}:revoke`)
  expect(revoked.json).toMatchObject({ status: 'revoked', revokedAt: new Date(now).toISOString() })
  await expectEnded(token)
  await expectEnded(rotated.token)
  now += 1000
  const again = await ask('POST', `${base}/${keyId}:revoke`)
  expect([again.status, again.json]).toEqual([200, revoked.json])
  const rotation = await ask('POST', `${base}/${keyId}:rotate`)
  expect([rotation.status, rotation.json.code]).toEqual([409, 'credential_ended'])
})

test('a credential expires', async () => {
  const { keyId, token } = await issue({ expiresAt: new Date(now + 5000).toISOString() })
  await expectWorking(token)
  now += 5000
  await expectEnded(token, 'credential_expired')
  const rotation = await ask('POST', `${base}/${keyId}:rotate`)
  expect([rotation.status, rotation.json.code]).toEqual([409, 'credential_ended'])
})

test('the list goes by state and in pages, newest first', async () => {
  const path = `/v1/platform/organizations/${tenant.organizations.b.organizationId}/credentials`
  const keyIds: string[] = []
  for (const seconds of [0, 60, 0, 60]) {
    const expiresAt = seconds > 0 ? { expiresAt: new Date(now + seconds * 1000).toISOString() } : {}
    keyIds.unshift((await ask('POST', path, { body: { ...order, ...expiresAt } })).json.keyId)
    now += 1000
  }
  await ask('POST', `${path}/${keyIds[1]}:revoke`)
  now += 60_000
  const listed = async (query: string) => (await ask('GET', `${path}?${query}`)).json.items.map((one) => one.keyId)
  expect((await listed('')).filter((keyId) => keyIds.includes(keyId))).toEqual(keyIds)
  expect(await listed('status=expired')).toEqual([keyIds[0], keyIds[2]])
  expect(await listed('status=revoked')).toEqual([keyIds[1]])
  const active = await listed('status=active')
  expect(new Set(active)).toEqual(new Set([keyIds[3], tenant.organizations.b.credentials.other.keyId]))

  const paged: string[] = []
  let cursor = ''
  do {
    const page = await ask('GET', `${path}?pageSize=2${cursor}`)
    paged.push(...page.json.items.map((one) => one.keyId))
    cursor = page.json.nextCursor === null ? '' : `&cursor=${page.json.nextCursor}`
  } while (cursor !== '')
  expect(paged).toEqual(await listed(''))
})

test('in an archived application nothing is issued, and what there is can be revoked', async () => {
  const own = await newTenant(builder.accountId)
  const { a } = own.organizations
  const path = `/v1/platform/organizations/${a.organizationId}/credentials`
  expect((await ask('DELETE', `/v1/platform/applications/${own.appId}`)).status).toBe(200)
  const refused = await ask('POST', path, { body: order })
  expect([refused.status, refused.json.code]).toEqual([403, 'application_archived'])
  const revoked = await ask('POST', `${path}/${a.credentials.other.keyId}:revoke`)
  expect([revoked.status, revoked.json.status]).toEqual([200, 'revoked'])
})

test('tokens of users are not a matter of this list', async () => {
  const { owner } = tenant.organizations.a.users
  expect((await ask('GET', `${base}?pageSize=200`)).text).not.toContain(owner.keyId)
  const revocation = await ask('POST', `${base}/${owner.keyId}:revoke`)
  expect([revocation.status, revocation.json.code]).toEqual([404, 'credential_not_found'])
  await expectWorking(owner.token)
})

test('the credential of another organization, of the same account or another, does not exist', async () => {
  const { b } = tenant.organizations
  const stranger = await platform.newAccount()
  for (const action of ['rotate', 'revoke']) {
    const answer = await ask('POST', `${base}/${b.credentials.other.keyId}:${action}`)
    expect([answer.status, answer.json.code]).toEqual([404, 'credential_not_found'])
    const foreign = await ask('POST', `${base}/${tenant.organizations.a.credentials.other.keyId}:${action}`, {
      token: stranger.token,
    })
    expect([foreign.status, foreign.json.code]).toEqual([404, 'organization_not_found'])
  }
  expect((await ask('GET', base, { token: stranger.token })).json.code).toBe('organization_not_found')
  await expectWorking(b.credentials.other.token)
})

test('the role billing neither lists nor issues', async () => {
  const billing = await platform.newAccount('billing')
  const own = await newTenant(billing.accountId)
  const path = `/v1/platform/organizations/${own.organizations.a.organizationId}/credentials`
  for (const [method, body] of [
    ['GET', undefined],
    ['POST', order],
  ] as const) {
    const answer = await ask(method, path, { token: billing.token, ...(body && { body }) })
    expect([answer.status, answer.json.code]).toEqual([403, 'scope_missing'])
  }
})

test('each change leaves one entry in the audit log, without a secret', async () => {
  const { keyId, token } = await issue()
  now += 1
  const { json: rotated } = await ask('POST', `${base}/${keyId}:rotate`, { body: { overlapSeconds: 60 } })
  now += 1
  await ask('POST', `${base}/${keyId}:revoke`)
  await ask('POST', `${base}/${keyId}:revoke`)
  const entries = await platform.db.database.as('portico_owner', (tx) =>
    tx.rows<{ action: string; actor_id: string; app_id: string; before: { status: string } | null; after: object }>({
      text: 'SELECT * FROM portico.audit_entry WHERE account_id = $1 AND target_id = $2 ORDER BY entry_id',
      values: [builder.accountId, keyId],
    }),
  )
  expect(entries.map(({ action, before }) => [action, before?.status])).toEqual([
    ['credential.issued', undefined],
    ['credential.rotated', 'active'],
    ['credential.revoked', 'active'],
  ])
  for (const entry of entries) {
    expect(entry).toMatchObject({
      actor_kind: 'builder',
      actor_id: builder.builderId,
      target_type: 'credential',
      app_id: tenant.appId,
      target_organization_id: tenant.organizations.a.organizationId,
      after: { keyId },
    })
  }
  const told = JSON.stringify(entries)
  for (const text of [token, rotated.token]) expect(told).not.toContain(text.slice(text.lastIndexOf('_') + 1))
})
