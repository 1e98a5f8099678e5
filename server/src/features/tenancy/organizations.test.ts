import { setTimeout as pause } from 'node:timers/promises'
import sql from 'sql-template-tag'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { newSlug, refusal, startTenancy, type Tenancy, unknownId } from './testing.ts'

let tenancy: Tenancy
beforeAll(async () => {
  tenancy = await startTenancy()
})
afterAll(() => tenancy.platform.stop())

const list = () => `/applications/${tenancy.appId}/organizations`
const create = (body: object) => tenancy.ask('POST', list(), { body: { name: 'Northwind', slug: newSlug(), ...body } })

describe('provisioning', () => {
  test('an organization gets a DataRole and a location for each template, and those that were asked for', async () => {
    const slug = newSlug()
    const billingEmail = 'billing@northwind.example'
    const locations = [
      { locationKey: 'north', name: 'North' },
      { locationKey: 'head', name: 'Its own head office' },
    ]
    const answer = await create({ slug, billingEmail, customDomain: 'CRM.Northwind.example', locations })
    expect(answer.status, answer.text).toBe(201)
    expect(answer.headers.etag).toBe('"1"')
    const { organizationId } = answer.json
    expect(answer.headers.location).toBe(`/v1/platform/organizations/${organizationId}`)
    expect(answer.json).toMatchObject({
      saasAppId: tenancy.appId,
      slug,
      billingEmail,
      status: 'active',
      customDomain: 'crm.northwind.example',
      tenantOrigin: `http://${slug}.localhost:8080`,
      revision: 1,
      counts: { activeUsers: 0, inactiveUsers: 0, openInvitations: 0 },
    })
    const roles = answer.json.dataRoles.map(({ key, label }: Record<string, string>) => [key, label])
    expect(roles).toContainEqual(['audit', 'audit'])
    const named = answer.json.locations.map(({ locationKey, name }: Record<string, string>) => [locationKey, name])
    expect(named).toEqual([
      ['head', 'Its own head office'],
      ['north', 'North'],
    ])
    expect(await tenancy.done('GET', `/organizations/${organizationId}`)).toEqual(answer.json)
  })

  test('its credentials work at once, on every process', async () => {
    const { organizationId } = await tenancy.newOrganization()
    const token = await tenancy.newToken(organizationId)
    for (const client of [tenancy.platform, tenancy.another]) {
      const { status, json } = await client.call('GET', `/v1/apps/${tenancy.appId}/auth/context`, { token })
      expect([status, json['organization']]).toEqual([200, expect.objectContaining({ organizationId })])
    }
  })

  test('one that is made while a release adds a DataRole has it too', async () => {
    const { database } = tenancy.platform.db
    const isSomebodyWaiting = () =>
      database.as('portico_owner', (tx) => tx.rows(sql`SELECT FROM pg_locks WHERE NOT granted`))
    const { made } = await database.as('portico_owner', async (tx) => {
      await tx.rows(sql`INSERT INTO portico.data_role_template (app_id, template_key, label)
        VALUES (${tenancy.appId}, 'latecomer', 'Latecomer')`)
      const made = create({})
      while ((await isSomebodyWaiting()).length === 0) await pause(5)
      return { made }
    })
    const { json } = await made
    expect(json.dataRoles.map(({ key }: { key: string }) => key)).toContain('latecomer')
  })

  test('the owner is invited, and nothing is sent for an organization that was refused', async () => {
    const owner = { email: 'first-owner@northwind.example', displayName: 'First Owner' }
    const { organizationId, slug } = await tenancy.newOrganization({ owner })
    const { items } = await tenancy.done('GET', `/organizations/${organizationId}/invitations`)
    expect(items).toEqual([
      expect.objectContaining({ ...owner, isOwner: true, locations: 'all', status: 'pending', userTypeKey: 'owner' }),
    ])
    expect(tenancy.platform.mailbox.newestTo(owner.email).text).toContain(`http://${slug}.localhost:8080/`)
    const sent = tenancy.platform.mailbox.received.length
    expect(refusal(await create({ slug, owner }))).toEqual([409, 'slug_taken', 'slug'])
    expect(tenancy.platform.mailbox.received).toHaveLength(sent)
  })

  test.each(['www', 'api', 'admin', 'localhost', 'autodiscover'])('nobody gets the slug %s', async (slug) => {
    expect(refusal(await create({ slug }))).toEqual([400, 'slug_reserved', 'slug'])
  })

  test.each(['a', 'North', '-north', 'north-', 'no_rth', 'xn--north', 'a'.repeat(64)])(
    '%j is no slug',
    async (slug) => {
      expect(refusal(await create({ slug }))).toEqual([400, 'validation_failed', 'slug'])
    },
  )

  test.each([
    'northwind',
    '127.0.0.1',
    'a..example',
    'a.example:8080',
    'a.example.',
    '*.example',
    'ä.example',
    'localhost',
    'x.localhost',
    'a.b.LOCALHOST',
  ])('%j is no domain to have', async (customDomain) => {
    expect(refusal(await create({ customDomain }))).toEqual([400, 'validation_failed', 'customDomain'])
  })

  test('a slug belongs to one organization of all accounts; of many that race one gets it', async () => {
    const slug = newSlug()
    const answers = await Promise.all(Array.from({ length: 6 }, () => create({ slug })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409])
    expect(refusal(await create({ slug: tenancy.foreign.slug }))).toEqual([409, 'slug_taken', 'slug'])
  })

  test('two locations of one key are refused, and nothing is left', async () => {
    const slug = newSlug()
    const north = { locationKey: 'north', name: 'North' }
    const answer = await create({ slug, locations: [north, north] })
    expect(refusal(answer)).toEqual([400, 'validation_failed', 'locations[1].locationKey'])
    expect((await create({ slug })).status).toBe(201)
  })

  test('an archived application gets no more organizations', async () => {
    const archive = (at: string) =>
      tenancy.platform.db.database.as('portico_owner', (tx) =>
        tx.rows({
          text: `UPDATE portico.application SET archived_at = ${at} WHERE app_id = $1`,
          values: [tenancy.appId],
        }),
      )
    await archive('now()')
    expect(refusal(await create({}))).toEqual([403, 'application_archived'])
    await archive('NULL')
  })
})

describe('lists', () => {
  test('go by name, page by page, narrowed by status and words', async () => {
    const word = newSlug()
    const names = ['beta', 'Alpha', 'gamma', 'alpha', '100% Delta']
    const made = await Promise.all(names.map((name) => tenancy.newOrganization({ name: `${name} ${word}` })))
    const seen: string[] = []
    let cursor: string | null = null
    do {
      const at: string = cursor === null ? '' : `&cursor=${cursor}`
      const page = await tenancy.done('GET', `${list()}?search=${word.toUpperCase()}&pageSize=2${at}`)
      seen.push(...page.items.map(({ name }: { name: string }) => name.split(' ')[0]!.toLowerCase()))
      cursor = page.nextCursor
    } while (cursor !== null)
    expect(seen).toEqual(['100%', 'alpha', 'alpha', 'beta', 'gamma'])
    await tenancy.done('PATCH', `/organizations/${made[0]!.organizationId}`, { status: 'inactive' })
    const inactive = await tenancy.done('GET', `${list()}?search=${word}&status=inactive`)
    expect(inactive.items.map(({ organizationId }: { organizationId: string }) => organizationId)).toEqual([
      made[0]!.organizationId,
    ])
    const literal = await tenancy.done('GET', `${list()}?search=${encodeURIComponent(`0% Delta ${word}`)}`)
    expect(literal.items).toHaveLength(1)
    expect((await tenancy.done('GET', `${list()}?search=${made[1]!.slug}`)).items).toHaveLength(1)
  })

  test('a cursor holds for the list that it came from', async () => {
    const word = newSlug()
    await Promise.all([1, 2].map((n) => tenancy.newOrganization({ name: `${word} ${n}` })))
    const { nextCursor } = await tenancy.done('GET', `${list()}?search=${word}&pageSize=1`)
    expect(refusal(await tenancy.ask('GET', `${list()}?cursor=${nextCursor}`))).toEqual([
      400,
      'cursor_mismatch',
      'cursor',
    ])
  })
})

describe('changes', () => {
  test('say what changed, raise the revision and are guarded by it', async () => {
    const { organizationId, ...before } = await tenancy.newOrganization({ billingEmail: 'old@northwind.example' })
    const path = `/organizations/${organizationId}`
    const renamed = await tenancy.ask('PATCH', path, { body: { name: 'Southwind', expectedRevision: 1 } })
    expect([renamed.status, renamed.headers.etag]).toEqual([200, '"2"'])
    expect(renamed.json).toEqual({ ...before, organizationId, name: 'Southwind', revision: 2 })
    const late = await tenancy.ask('PATCH', path, { body: { name: 'Late' }, headers: { 'if-match': '"1"' } })
    expect(refusal(late)).toEqual([409, 'revision_conflict', 'If-Match'])
    const same = await tenancy.done('PATCH', path, { name: 'Southwind' })
    expect(same.revision).toBe(2)
    const cleared = await tenancy.done('PATCH', path, { billingEmail: null })
    expect(cleared).toMatchObject({ billingEmail: null, revision: 3 })
    const entries = await tenancy.audit(organizationId)
    expect(entries.map(({ action }) => action)).toEqual([
      'organization.created',
      'organization.updated',
      'organization.updated',
    ])
    expect(entries[1]).toMatchObject({
      actorKind: 'builder',
      actorId: tenancy.builder.builderId,
      saasAppId: tenancy.appId,
      organizationId,
      before: { name: 'Northwind' },
      after: { name: 'Southwind' },
    })
  })

  test('deactivation and reactivation hold from the next request on, in every process', async () => {
    const { organizationId, slug } = await tenancy.newOrganization()
    const token = await tenancy.newToken(organizationId)
    const expectEverywhere = async (status: number, code?: string) => {
      for (const client of [tenancy.platform, tenancy.another]) {
        const answer = await client.call('GET', `/v1/apps/${tenancy.appId}/auth/context`, { token })
        expect([answer.status, answer.json.code]).toEqual([status, code])
      }
    }
    await expectEverywhere(200)
    await tenancy.done('PATCH', `/organizations/${organizationId}`, { status: 'inactive' })
    await expectEverywhere(403, 'organization_inactive')
    const body = { token: 'whatever', password: 'correct horse battery staple' }
    expect(refusal(await tenancy.accept(slug, body))).toEqual([403, 'organization_inactive'])
    await tenancy.done('PATCH', `/organizations/${organizationId}`, { status: 'active' })
    await expectEverywhere(200)
    const actions = (await tenancy.audit(organizationId)).map(({ action }) => action)
    expect(actions).toEqual(['organization.created', 'organization.deactivated', 'organization.reactivated'])
  })

  test('locations are added, renamed and limited', async () => {
    const { organizationId } = await tenancy.newOrganization()
    const path = `/organizations/${organizationId}/locations/north`
    const added = await tenancy.ask('PUT', path, { body: { name: 'North' } })
    expect([added.status, added.json]).toEqual([201, expect.objectContaining({ locationKey: 'north', name: 'North' })])
    const renamed = await tenancy.ask('PUT', path, { body: { name: 'Far north' } })
    expect([renamed.status, renamed.json]).toEqual([200, { ...added.json, name: 'Far north' }])
    expect((await tenancy.ask('PUT', path, { body: { name: 'Far north' } })).json).toEqual(renamed.json)
    const actions = (await tenancy.audit(added.json.locationId)).map(({ action }) => action)
    expect(actions).toEqual(['location.created', 'location.updated'])
    await tenancy.platform.db.database.inOrganization(organizationId, (tx) =>
      tx.rows({
        text: `INSERT INTO portico.location SELECT $1, gen_random_uuid(), 'l' || n, 'Location' FROM generate_series(1, 998) n`,
        values: [organizationId],
      }),
    )
    const beyond = await tenancy.ask('PUT', `/organizations/${organizationId}/locations/beyond`, {
      body: { name: 'B' },
    })
    expect(refusal(beyond)).toEqual([409, 'location_limit_reached'])
  })
})

test('what is not of the account answers as what does not exist', async () => {
  const { foreign } = tenancy
  for (const id of [foreign.organizationId, unknownId]) {
    for (const [method, path, body] of [
      ['GET', ''],
      ['PATCH', '', { name: 'Mine' }],
      ['PUT', '/locations/north', { name: 'Mine' }],
      ['GET', '/users'],
      ['GET', '/invitations'],
    ] as const) {
      const answer = await tenancy.ask(method, `/organizations/${id}${path}`, body && { body })
      expect(refusal(answer), `${method} ${path}`).toEqual([404, 'organization_not_found'])
    }
  }
  const path = `/applications/${foreign.appId}/organizations`
  expect(refusal(await tenancy.ask('GET', path))).toEqual([404, 'application_not_found'])
  const body = { name: 'Mine', slug: newSlug() }
  expect(refusal(await tenancy.ask('POST', path, { body }))).toEqual([404, 'application_not_found'])
})

test('a member of the team without the scope may neither look nor change', async () => {
  const { token } = await tenancy.platform.newMember(tenancy.builder.accountId, 'billing')
  expect((await tenancy.ask('GET', list(), { token })).json.code).toBe('scope_missing')
  const body = { name: 'Northwind', slug: newSlug() }
  expect((await tenancy.ask('POST', list(), { token, body })).json.code).toBe('scope_missing')
})
