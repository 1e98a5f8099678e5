import sql from 'sql-template-tag'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import type { Answer } from '../../../test/support/http-client.ts'
import { type Platform, startPlatform, type TestBuilder } from '../../../test/support/platform.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import { testModel } from '../../../test/support/test-model.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import type { BuilderRole } from '../../kernel/scopes.ts'
import { measureApplication } from '../../shared/usage/measure.ts'
import { takeUsageSnapshots } from '../../shared/usage/snapshots.ts'
import { grantEntitlement } from './store.ts'

const hourMs = 3_600_000
let now: number
const clock = { now: () => now }
let platform: Platform
let builder: TestBuilder
let first: Application
let second: Application

type Application = Awaited<ReturnType<typeof newApplication>>

function newApplication(accountId: string) {
  return createTenant(platform.db.database, {
    accountId,
    model: testModel,
    organizations: { a: { credentials: { live: {} } }, b: { credentials: { live: {} } } },
  })
}

/** With a session that the days of these tests do not outlast. */
async function newAccount(role?: BuilderRole): Promise<TestBuilder> {
  const member = await platform.newAccount(role)
  return { ...member, token: await platform.newSession(member, new Date(now + 1000 * hourMs)) }
}

beforeAll(async () => {
  now = Date.now()
  platform = await startPlatform({ clock })
  builder = await newAccount('billing')
  first = await newApplication(builder.accountId)
  second = await newApplication(builder.accountId)
})
afterAll(() => platform.stop())

interface Item {
  readonly saasAppId: string
  readonly day: string
  readonly resourceKey: string
  readonly quantity: number
  readonly measuredAt: string
}
type Usage = { from: string; to: string; items: Item[]; resources: { resourceKey: string; measured: boolean }[] }

function usage(query = '', { token } = builder): Promise<Answer<Usage>> {
  return platform.call<Usage>('GET', `/v1/platform/billing/resources${query}`, { token })
}

async function recordsOf({ appId }: Application, query = ''): Promise<Record<string, number>> {
  const { items } = (await usage(query)).json
  const own = items.filter(({ saasAppId, resourceKey }) => saasAppId === appId && resourceKey === 'records')
  return Object.fromEntries(own.map(({ day, quantity }) => [day, quantity]))
}

async function addRecords({ appId, organizations }: Application, key: 'a' | 'b', count: number): Promise<void> {
  const items = Array.from({ length: count }, (_, i) => ({ operation: 'create', fields: { name: `Deal ${i}` } }))
  const { token } = organizations[key].credentials.live
  const answer = await platform.call('POST', `/v1/apps/${appId}/objects/deal/records:batch`, { token, body: { items } })
  expect(answer.status, answer.text).toBe(200)
}

const today = () => new Date(now).toISOString().slice(0, 10)
const snapshots = () => takeUsageSnapshots({ database: platform.db.database, clock })

describe('usage', () => {
  /** Every test has a day of its own. */
  beforeEach(() => {
    now += 24 * hourMs
    now -= now % (24 * hourMs)
  })

  test('counts the records of all organizations of each application, now', async () => {
    expect(await recordsOf(first)).toEqual({ [today()]: 0 })
    await addRecords(first, 'a', 3)
    await addRecords(first, 'b', 2)
    await addRecords(second, 'a', 1)
    expect(await recordsOf(first)).toEqual({ [today()]: 5 })
    expect(await recordsOf(second)).toEqual({ [today()]: 1 })
    const { items } = (await usage(`?saasAppId=${second.appId}`)).json
    expect(items.map(({ saasAppId }) => saasAppId)).toEqual([second.appId, second.appId, second.appId])
    expect(items.every(({ measuredAt }) => measuredAt === new Date(now).toISOString())).toBe(true)
  })

  test("storage is the size of the application's own tables, as the database tells it", async () => {
    const { items } = (await usage()).json
    const told = items.find(({ saasAppId, resourceKey }) => saasAppId === first.appId && resourceKey === 'storageBytes')
    const { rows } = await asAdministrator(platform.db.connection, (admin) =>
      admin.query<{ bytes: string }>(
        `SELECT sum(pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass)) AS bytes
         FROM pg_tables WHERE schemaname = $1`,
        [first.schemaName],
      ),
    )
    expect(told?.quantity).toBe(Number(rows[0]!.bytes))
    expect(told?.quantity).toBeGreaterThan(0)
  })

  test('what has no source is said to be not measured, and has no figure', async () => {
    const { items, resources } = (await usage()).json
    expect(resources).toEqual([
      { resourceKey: 'records', measured: true },
      { resourceKey: 'storageBytes', measured: true },
      { resourceKey: 'deliveries', measured: true },
      { resourceKey: 'submissions', measured: false },
      { resourceKey: 'aiChunks', measured: false },
    ])
    expect(new Set(items.map(({ resourceKey }) => resourceKey))).toEqual(
      new Set(['records', 'storageBytes', 'deliveries']),
    )
  })

  test('of a day that is over the last measure stands', async () => {
    const dayBefore = today()
    expect(await snapshots()).toBe(2)
    const { [dayBefore]: atFirst } = await recordsOf(first)
    await addRecords(first, 'a', 4)
    now += 30 * 60 * 1000
    // Within the hour nothing is due.
    expect(await snapshots()).toBe(0)
    now += hourMs
    expect(await snapshots()).toBe(2)
    now += 24 * hourMs
    await addRecords(first, 'a', 1)
    const period = `?from=${dayBefore}&to=${today()}`
    expect(await recordsOf(first, period)).toEqual({ [dayBefore]: atFirst! + 4, [today()]: atFirst! + 5 })
    expect(await recordsOf(first, `?from=${dayBefore}&to=${dayBefore}`)).toEqual({ [dayBefore]: atFirst! + 4 })
  })

  test('what is counted by day is told for its day, also what came after the last measure of it', async () => {
    const attempts = (count: number) =>
      platform.db.database.as('portico_system', (tx) =>
        tx.rows(sql`INSERT INTO portico.webhook_usage (app_id, day, attempts) VALUES (${first.appId}, ${today()}::date, ${count})
          ON CONFLICT (app_id, day) DO UPDATE SET attempts = portico.webhook_usage.attempts + excluded.attempts`),
      )
    const deliveriesOf = async (period: string) => {
      const { items } = (await usage(`?saasAppId=${first.appId}&${period}`)).json
      return items.filter((item) => item.resourceKey === 'deliveries').map(({ day, quantity }) => [day, quantity])
    }
    now += 24 * hourMs
    const dayBefore = today()
    await attempts(3)
    expect(await deliveriesOf(`from=${dayBefore}`)).toEqual([[dayBefore, 3]])
    await snapshots()
    await attempts(2)
    now += 24 * hourMs
    await attempts(1)
    await snapshots()
    expect(await deliveriesOf(`from=${dayBefore}`)).toEqual([
      [today(), 1],
      [dayBefore, 5],
    ])
  })

  test('processes that measure at once measure each application once', async () => {
    const counts = await Promise.all([snapshots(), snapshots(), snapshots()])
    expect(counts.reduce((sum, count) => sum + count)).toBe(2)
  })

  test('a figure that cannot be made in time is absent, or that of the last measure, and never zero', async () => {
    const blocked = await asAdministrator(platform.db.connection, async (admin) => {
      await admin.query('BEGIN')
      await admin.query(`LOCK TABLE "${first.schemaName}".${await tableOf(first)} IN ACCESS EXCLUSIVE MODE`)
      const { items } = (await usage(`?saasAppId=${first.appId}`)).json
      await admin.query('ROLLBACK')
      return items
    })
    const of = (day: string) => blocked.filter((item) => item.day === day).map(({ resourceKey }) => resourceKey)
    expect(of(today())).toEqual(['records', 'deliveries'])
    await snapshots()
    now += 60_000
    const again = await asAdministrator(platform.db.connection, async (admin) => {
      await admin.query('BEGIN')
      await admin.query(`LOCK TABLE "${first.schemaName}".${await tableOf(first)} IN ACCESS EXCLUSIVE MODE`)
      const { items } = (await usage(`?saasAppId=${first.appId}&from=${today()}`)).json
      await admin.query('ROLLBACK')
      return items
    })
    expect(again.map(({ resourceKey, measuredAt }) => [resourceKey, measuredAt])).toEqual([
      ['records', new Date(now).toISOString()],
      ['deliveries', new Date(now).toISOString()],
      ['storageBytes', new Date(now - 60_000).toISOString()],
    ])
  })

  test('measuring leaves the transaction bound to what it was bound to', async () => {
    const { organizationId } = first.organizations.a
    const bound = await platform.db.database.as('portico_app', async (tx) => {
      await tx.rows(sql`SELECT set_config('portico.account_id', ${builder.accountId}, true),
        set_config('portico.organization_id', ${organizationId}, true)`)
      await tx.rows(sql`SELECT portico.count_records(${first.appId})`)
      return tx.rows<{ id: string }>(sql`SELECT portico.current_organization() AS id`)
    })
    expect(bound).toEqual([{ id: organizationId }])
  })

  test("another account's application has no figures, not zero ones", async () => {
    const stranger = await newAccount()
    expect((await usage('', stranger)).json.items).toEqual([])
    const named = await usage(`?saasAppId=${first.appId}`, stranger)
    expect([named.status, named.json.code]).toEqual([404, 'application_not_found'])
    const counted = await platform.db.database.as('portico_app', async (tx) => {
      await tx.rows(sql`SELECT set_config('portico.account_id', ${stranger.accountId}, true)`)
      const application = { saasAppId: first.appId, schemaName: first.schemaName }
      return measureApplication(tx, application, '2026-09-14', () => 1000)
    })
    expect(counted.map(({ resourceKey }) => resourceKey)).toEqual(['storageBytes'])
  })

  test.each([
    ['?from=2026-01-01&to=2026-04-03', 'from'],
    ['?from=2026-02-02&to=2026-02-01', 'from'],
    ['?from=2026-02-30', 'from'],
    ['?from=0000-01-01', 'from'],
    ['?to=0000-12-31', 'to'],
    ['?to=tomorrow', 'to'],
    ['?saasAppId=1', 'saasAppId'],
  ])('%s is refused, naming %s', async (query, field) => {
    const answer = await usage(query)
    expect([answer.status, answer.json.details?.[0]?.field]).toEqual([400, field])
  })

  test('the last 30 days are told unless said otherwise, and 92 at most', async () => {
    const { from, to } = (await usage()).json
    expect([to, (Date.parse(to) - Date.parse(from)) / (24 * hourMs)]).toEqual([today(), 29])
    expect((await usage('?from=2026-01-01&to=2026-04-02')).status).toBe(200)
  })
})

async function tableOf({ schemaName }: Application): Promise<string> {
  const [table] = await platform.db.database.as('portico_owner', (tx) =>
    tx.rows<{ name: string }>(
      sql`SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = ${schemaName}`,
    ),
  )
  return table!.name
}

test('the catalog names the plan of the account, the plans on offer and what is metered', async () => {
  const { json } = await platform.call<{
    currentPlanKey: string
    plans: { planKey: string }[]
    resources: { resourceKey: string; measured: boolean }[]
  }>('GET', '/v1/platform/billing/catalog', { token: builder.token })
  expect(json.currentPlanKey).toBe('free')
  expect(json.plans.map(({ planKey }) => planKey)).toEqual(['free'])
  expect(json.resources.map(({ resourceKey, measured }) => [resourceKey, measured])).toContainEqual(['aiChunks', false])
})

test('entitlements: none at first, then what was granted, active until it ends, and nobody else sees them', async () => {
  const list = async ({ token }: TestBuilder) =>
    (await platform.call('GET', '/v1/platform/marketplace/entitlements', { token })).json['items']
  expect(await list(builder)).toEqual([])
  const grant = (listingKey: string, expiresAt: string | null) =>
    platform.db.database.as('portico_owner', (tx) =>
      grantEntitlement(tx, {
        accountId: builder.accountId,
        entitlementId: uuidv7(now),
        listingKey,
        listingName: listingKey,
        grantedAt: new Date(now).toISOString(),
        expiresAt,
      }),
    )
  await grant('invoice-reader', new Date(now + hourMs).toISOString())
  await grant('forms', null)
  const states = async () => ((await list(builder)) as { listingKey: string; state: string }[]).map(stateOf)
  const stateOf = ({ listingKey, state }: { listingKey: string; state: string }) => [listingKey, state]
  expect(await states()).toEqual([
    ['forms', 'active'],
    ['invoice-reader', 'active'],
  ])
  now += hourMs
  expect(await states()).toEqual([
    ['forms', 'active'],
    ['invoice-reader', 'expired'],
  ])
  await grant('invoice-reader', new Date(now + hourMs).toISOString())
  expect(await states()).toContainEqual(['invoice-reader', 'active'])
  expect(await list(await newAccount())).toEqual([])
})

test('an account cannot grant itself anything, nor change what another used', async () => {
  const asAccount = (statement: string) =>
    platform.db.database.as('portico_app', async (tx) => {
      await tx.rows(sql`SELECT set_config('portico.account_id', ${builder.accountId}, true)`)
      return tx.rows({ text: statement, values: [] })
    })
  await expect(asAccount('DELETE FROM portico.entitlement')).rejects.toThrow(/permission denied/)
  await expect(asAccount('UPDATE portico.entitlement SET expires_at = NULL')).rejects.toThrow(/permission denied/)
  const { accountId } = await newAccount()
  const { appId } = await newApplication(accountId)
  await expect(
    asAccount(`INSERT INTO portico.usage_daily VALUES ('${accountId}', '${appId}', '2026-01-01', 'records', 1, now())`),
  ).rejects.toThrow(/row-level security/)
})

test('the role developer does not see what is billed', async () => {
  const { token } = await newAccount('developer')
  for (const path of ['billing/catalog', 'billing/resources', 'marketplace/entitlements']) {
    const answer = await platform.call('GET', `/v1/platform/${path}`, { token })
    expect([answer.status, answer.json.code]).toEqual([403, 'scope_missing'])
  }
})
