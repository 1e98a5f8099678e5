import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Platform, startPlatform, type TestBuilder } from '../../../test/support/platform.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import type { Actor } from '../../kernel/caller.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import { recordAudit, recordTenantAudit } from '../../shared/audit.ts'

let platform: Platform
let builder: TestBuilder
/** What the entries tell, newest first. */
let written: readonly Written[]
let tenant: Awaited<ReturnType<typeof newTenant>>

const start = Date.parse('2026-09-14T00:00:00.000Z')
const hourMs = 3_600_000
const correlationId = uuidv7(start)
const robot: Actor = { kind: 'system', id: 'robot' }

interface Written {
  readonly action: string
  readonly at: number
}

interface Entry {
  readonly entryId: string
  readonly occurredAt: string
  readonly actor: Actor
  readonly action: string
  readonly target: { readonly type: string; readonly id: string }
  readonly saasAppId: string | null
  readonly organizationId: string | null
  readonly before: object | null
  readonly after: object | null
}

function newTenant(accountId: string) {
  return createTenant(platform.db.database, { accountId, organizations: { a: {}, b: {} } })
}

beforeAll(async () => {
  platform = await startPlatform()
  builder = await platform.newAccount()
  tenant = await newTenant(builder.accountId)
  const { a } = tenant.organizations
  await write(0, { kind: 'builder', id: builder.builderId }, 'account.updated', 'account', builder.accountId)
  await write(1, robot, 'application.created', 'application', tenant.appId, { saasAppId: tenant.appId })
  const place = { saasAppId: tenant.appId, organizationId: a.organizationId }
  await write(2, robot, 'organization.updated', 'organization', a.organizationId, {
    ...place,
    before: { name: 'Old', token: 'ptc_live_abc', passwordHash: '$argon2id$', nested: [{ clientSecret: 'x' }] },
    after: { name: 'New, with ptc_live_4fGh6JkLm8Np_abc in it' },
  })
  await write(3, { kind: 'builder', id: builder.builderId }, 'account.updated', 'account', builder.accountId)
  await platform.db.database.inOrganization(a.organizationId, (tx) =>
    recordTenantAudit(
      { tx, actor: { kind: 'user', id: 'somebody' }, correlationId, now: start + 4 * hourMs },
      { action: 'user.updated', target: { type: 'user', id: 'somebody' }, before: { password: 'x' }, after: {} },
    ),
  )
  written = [
    { action: 'user.updated', at: 4 },
    { action: 'account.updated', at: 3 },
    { action: 'organization.updated', at: 2 },
    { action: 'application.created', at: 1 },
    { action: 'account.updated', at: 0 },
  ]
  const stranger = await platform.newAccount()
  await write(2, robot, 'account.updated', 'account', builder.accountId, {}, stranger)
})
afterAll(() => platform.stop())

async function write(
  hours: number,
  actor: Actor,
  action: string,
  type: string,
  id: string,
  more: object = {},
  { accountId } = builder,
): Promise<void> {
  await platform.db.database.as('portico_app', async (tx) => {
    await bind(tx, accountId)
    const occasion = { tx, caller: { accountId, actor }, correlationId, now: start + hours * hourMs }
    await recordAudit(occasion, { action, target: { type, id }, ...more })
  })
}

function bind(tx: { rows(statement: object): Promise<unknown> }, accountId: string): Promise<unknown> {
  return tx.rows(sql`SELECT set_config('portico.account_id', ${accountId}, true)`)
}

async function read(query = '', { token } = builder) {
  const answer = await platform.call<{ items: Entry[]; nextCursor: string | null }>(
    'GET',
    `/v1/platform/audit${query}`,
    { token },
  )
  expect(answer.status, answer.text).toBe(200)
  return answer.json
}

const told = (items: readonly Entry[]): Written[] =>
  items.map(({ action, occurredAt }) => ({ action, at: (Date.parse(occurredAt) - start) / hourMs }))

test('entries are read newest first, in pages', async () => {
  expect(told((await read()).items)).toEqual(written)
  const paged: Entry[] = []
  let cursor: string | null = ''
  do {
    const page: Awaited<ReturnType<typeof read>> = await read(`?pageSize=2${cursor && `&cursor=${cursor}`}`)
    paged.push(...page.items)
    cursor = page.nextCursor
  } while (cursor !== null)
  expect(told(paged)).toEqual(written)
})

test('conditions narrow, and all of them hold', async () => {
  const { appId, organizations } = tenant
  const hour = (count: number) => new Date(start + count * hourMs).toISOString()
  const expected: readonly (readonly [string, readonly number[]])[] = [
    [`actorId=${builder.builderId}`, [3, 0]],
    ['actorId=robot', [2, 1]],
    ['action=account.updated', [3, 0]],
    ['targetType=user', [4]],
    [`targetId=${appId}`, [1]],
    [`targetType=application&targetId=${organizations.a.organizationId}`, []],
    [`saasAppId=${appId}`, [4, 2, 1]],
    [`saasAppId=${appId.toUpperCase()}&actorId=robot`, [2, 1]],
    [`organizationId=${organizations.a.organizationId}`, [4, 2]],
    [`organizationId=${organizations.b.organizationId}`, []],
    [`from=${hour(2)}`, [4, 3, 2]],
    [`to=${hour(2)}`, [1, 0]],
    [`from=${hour(1)}&to=${hour(3)}`, [2, 1]],
    ['from=1969-12-31T23:59:59.000Z&to=1970-01-01T00:00:00.000Z', []],
    ['to=9999-12-31T23:59:59.999Z&actorId=robot', [2, 1]],
  ]
  for (const [query, hours] of expected) {
    expect([query, told((await read(`?${query}`)).items).map(({ at }) => at)]).toEqual([query, hours])
  }
})

test('a cursor belongs to its conditions', async () => {
  const { nextCursor } = await read('?pageSize=1&actorId=robot')
  const answer = await platform.call('GET', `/v1/platform/audit?pageSize=1&cursor=${nextCursor}`, {
    token: builder.token,
  })
  expect([answer.status, answer.json.code]).toEqual([400, 'cursor_mismatch'])
})

test.each([
  ['from=2026-12-31T23:59:60Z', 'from'],
  ['to=0000-01-01T00:00:00Z', 'to'],
  ['to=yesterday', 'to'],
  ['saasAppId=1', 'saasAppId'],
  ['pageSize=0', 'pageSize'],
  ['actorId=a%00b', 'actorId'],
  ['action=', 'action'],
])('%s is refused, naming %s', async (query, field) => {
  const answer = await platform.call('GET', `/v1/platform/audit?${query}`, { token: builder.token })
  expect([answer.status, answer.json.details?.[0]?.field]).toEqual([400, field])
})

test('an entry tells who did what to what, where, without secrets', async () => {
  const { items } = await read('?action=organization.updated')
  const { organizationId } = tenant.organizations.a
  expect(items).toEqual([
    {
      entryId: items[0]!.entryId,
      occurredAt: new Date(start + 2 * hourMs).toISOString(),
      actor: robot,
      action: 'organization.updated',
      target: { type: 'organization', id: organizationId },
      saasAppId: tenant.appId,
      organizationId,
      before: {
        name: 'Old',
        token: '[redacted]',
        passwordHash: '[redacted]',
        nested: [{ clientSecret: '[redacted]' }],
      },
      after: { name: 'New, with ptc_[redacted] in it' },
      correlationId,
    },
  ])
})

test('what users do inside an organization is in the log of its account', async () => {
  const { items } = await read('?targetType=user')
  expect(items).toMatchObject([{ saasAppId: tenant.appId, organizationId: tenant.organizations.a.organizationId }])
  expect(items[0]!.before).toEqual({ password: '[redacted]' })
})

test('another account sees none of it, whatever it asks for', async () => {
  const stranger = await platform.newAccount()
  for (const query of ['', `?saasAppId=${tenant.appId}`, `?actorId=${builder.builderId}`]) {
    expect((await read(query, stranger)).items).toEqual([])
  }
})

test.each(['portico_app', 'portico_system'] as const)('%s cannot change, remove or forge an entry', async (role) => {
  const attempt = (statement: string) =>
    platform.db.database.as(role, async (tx) => {
      await bind(tx, builder.accountId)
      return tx.rows({ text: statement, values: [] })
    })
  for (const statement of [
    `UPDATE portico.audit_entry SET action = 'nothing'`,
    'DELETE FROM portico.audit_entry',
    'TRUNCATE portico.audit_entry',
  ]) {
    await expect(attempt(statement), statement).rejects.toThrow(/permission denied/)
  }
  const forged = `INSERT INTO portico.audit_entry (account_id, entry_id, actor_kind, actor_id, action, target_type, target_id,
    correlation_id) SELECT gen_random_uuid(), gen_random_uuid(), 'builder', 'x', 'x', 'x', 'x', gen_random_uuid()`
  await expect(attempt(forged)).rejects.toThrow(/permission denied|row-level security/)
  expect((await read()).items).toHaveLength(written.length)
})

test('only owners and admins read it', async () => {
  for (const [role, status] of [
    ['owner', 200],
    ['admin', 200],
    ['developer', 403],
    ['billing', 403],
  ] as const) {
    const { token } = await platform.newAccount(role)
    expect((await platform.call('GET', '/v1/platform/audit', { token })).status).toBe(status)
  }
})
