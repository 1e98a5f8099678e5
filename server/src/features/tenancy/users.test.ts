import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createMember } from './members.ts'
import { password, refusal, startTenancy, type Tenancy, type TestOrganization, unknownId } from './testing.ts'

let tenancy: Tenancy
let organization: TestOrganization
let users: string
beforeAll(async () => {
  tenancy = await startTenancy()
  organization = await tenancy.newOrganization({ locations: [{ locationKey: 'north', name: 'North' }] })
  users = `/organizations/${organization.organizationId}/users`
})
afterAll(() => tenancy.platform.stop())

const roleOf = (key: string) => organization.dataRoles.find((role) => role.key === key)!
const locationOf = (key: string) => organization.locations.find(({ locationKey }) => locationKey === key)!.locationId
const newUser = (body?: object) => tenancy.newUser(organization.organizationId, body)

describe('creating', () => {
  test('a user has what was asked for and nothing more', async () => {
    const email = 'Grace@northwind.example'
    const body = { email, displayName: 'Grace Hopper', userTypeKey: 'staff', dataRoleKeys: ['audit', 'audit'] }
    const answer = await tenancy.ask('POST', users, { body: { ...body, locations: [locationOf('north')] } })
    expect(answer.status, answer.text).toBe(201)
    const { userId, createdAt } = answer.json
    expect(answer.headers).toMatchObject({ etag: '"1"', location: `/v1/platform${users}/${userId}` })
    expect(answer.json).toEqual({
      organizationId: organization.organizationId,
      userId,
      email,
      displayName: 'Grace Hopper',
      status: 'active',
      userTypeKey: 'staff',
      isOwner: false,
      dataRoles: [roleOf('audit')],
      locations: [locationOf('north')],
      revision: 1,
      createdAt,
    })
    expect(await tenancy.done('GET', `${users}/${userId}`)).toEqual(answer.json)
    const [entry] = await tenancy.audit(userId)
    expect(entry).toMatchObject({ action: 'user.created', before: null, after: { email } })
  })

  test('without more it is a member without rights', async () => {
    expect(await newUser()).toMatchObject({ userTypeKey: 'member', isOwner: false, dataRoles: [], locations: [] })
  })

  test('an address belongs to one user of an organization, however it is written, and to one of each', async () => {
    const email = 'Twice@northwind.example'
    await newUser({ email })
    const body = { email: 'twice@NORTHWIND.example', displayName: 'Again' }
    expect(refusal(await tenancy.ask('POST', users, { body }))).toEqual([409, 'email_taken', 'email'])
    const { userId } = await newUser()
    const change = { body: { email: body.email } }
    expect(refusal(await tenancy.ask('PATCH', `${users}/${userId}`, change))).toEqual([409, 'email_taken', 'email'])
    const other = await tenancy.newOrganization()
    expect(await tenancy.newUser(other.organizationId, { email })).toMatchObject({ email })
  })

  test('roles and locations of others are named as unknown, with their places', async () => {
    const other = await tenancy.newOrganization()
    const body = { email: 'x@northwind.example', displayName: 'X' }
    const dataRoleIds = [roleOf('audit').dataRoleId, other.dataRoles[0]!.dataRoleId, unknownId]
    const locations = [other.locations[0]!.locationId]
    const answer = await tenancy.ask('POST', users, { body: { ...body, dataRoleIds, locations } })
    const named = ['dataRoleIds[1]', 'dataRoleIds[2]', 'locations[0]']
    expect(refusal(answer)).toEqual([400, 'reference_not_found', ...named])
    const byKey = await tenancy.ask('POST', users, { body: { ...body, dataRoleKeys: ['audit', 'nobody'] } })
    expect(refusal(byKey)).toEqual([400, 'reference_not_found', 'dataRoleKeys[1]'])
    const both = await tenancy.ask('POST', users, { body: { ...body, dataRoleKeys: [], dataRoleIds: [] } })
    expect(refusal(both)).toEqual([400, 'validation_failed', 'dataRoleKeys'])
    const { userId } = await newUser()
    const change = await tenancy.ask('PATCH', `${users}/${userId}`, { body: { dataRoleIds: [unknownId] } })
    expect(refusal(change)).toEqual([400, 'reference_not_found', 'dataRoleIds[0]'])
    const places = await tenancy.ask('PATCH', `${users}/${userId}`, { body: { locations: ['north', 'nowhere'] } })
    expect(refusal(places)).toEqual([400, 'reference_not_found', 'locations[1]'])
    const wrong = await tenancy.ask('PATCH', `${users}/${userId}`, { body: { locations: 'north' } })
    expect(wrong.json.details).toEqual([
      { field: 'locations', code: 'enum', message: 'Expected "all" or a list such as ["north"].' },
    ])
  })

  test('a change names roles and locations by key as well', async () => {
    const { userId } = await newUser()
    const body = { dataRoleKeys: ['audit'], locations: ['north', locationOf('head'), locationOf('north')] }
    const changed = await tenancy.done('PATCH', `${users}/${userId}`, body)
    expect(changed.dataRoles).toEqual([roleOf('audit')])
    expect(changed.locations).toEqual([locationOf('north'), locationOf('head')].sort())
    const both = await tenancy.ask('PATCH', `${users}/${userId}`, { body: { ...body, dataRoleIds: [] } })
    expect(refusal(both)).toEqual([400, 'validation_failed', 'dataRoleKeys'])
  })

  test.each([
    ['email', { email: 'nobody' }],
    ['email', { email: 'two@one@northwind.example' }],
    ['displayName', { displayName: ' ' }],
    ['displayName', { displayName: 'a\u0000b' }],
    ['userTypeKey', { userTypeKey: 'Not A Key' }],
  ])('%s: %j is refused', async (field, wrong) => {
    const body = { email: 'y@northwind.example', displayName: 'Y', ...wrong }
    expect(refusal(await tenancy.ask('POST', users, { body }))).toEqual([400, 'validation_failed', field])
  })
})

test('lists go by name, page by page, narrowed by status and words', async () => {
  const { organizationId } = await tenancy.newOrganization()
  for (const displayName of ['bea', 'Ada', 'cleo', 'ada']) await tenancy.newUser(organizationId, { displayName })
  const path = `/organizations/${organizationId}/users`
  const first = await tenancy.done('GET', `${path}?pageSize=3`)
  const second = await tenancy.done('GET', `${path}?pageSize=3&cursor=${first.nextCursor}`)
  const names = [...first.items, ...second.items].map(({ displayName }) => displayName.toLowerCase())
  expect([names, second.nextCursor]).toEqual([['ada', 'ada', 'bea', 'cleo'], null])
  const { userId } = first.items[2]
  await tenancy.done('PATCH', `${path}/${userId}`, { status: 'inactive' })
  const only = async (query: string) => (await tenancy.done('GET', `${path}?${query}`)).items
  expect(await only('status=inactive')).toEqual([expect.objectContaining({ userId, displayName: 'bea' })])
  expect(await only('search=ADA')).toHaveLength(2)
  expect(await only('search=%25')).toEqual([])
  const { counts } = await tenancy.done('GET', `/organizations/${organizationId}`)
  expect(counts).toEqual({ activeUsers: 3, inactiveUsers: 1, openInvitations: 0 })
})

test('a role that a release removes meanwhile is named as unknown', async () => {
  const { organizationId } = organization
  const member = { userId: unknownId, email: 'late@northwind.example', displayName: 'Late', userTypeKey: 'member' }
  const late = tenancy.platform.db.database.inOrganization(organizationId, (tx) => {
    const occasion = { tx, now: Date.now(), actor: { kind: 'system', id: 'test' } as const }
    const scope = { organizationId, appId: tenancy.appId }
    return createMember(occasion, scope, { ...member, passwordHash: null, dataRoleIds: [unknownId] })
  })
  await expect(late).rejects.toMatchObject({ code: 'reference_not_found', details: [{ field: 'dataRoleIds' }] })
})

describe('changing', () => {
  test('what is named changes, the rest stays', async () => {
    const user = await newUser({ dataRoleKeys: ['audit'], locations: 'all' })
    const path = `${users}/${user.userId}`
    const renamed = await tenancy.ask('PATCH', path, { body: { displayName: 'New name', expectedRevision: 1 } })
    expect(renamed.json).toEqual({ ...user, displayName: 'New name', revision: 2 })
    expect(renamed.headers.etag).toBe('"2"')
    const locations = [locationOf('north'), locationOf('head')].sort()
    const moved = await tenancy.done('PATCH', path, { locations, dataRoleIds: [] })
    expect(moved).toEqual({ ...renamed.json, dataRoles: [], locations, revision: 3 })
    const same = await tenancy.done('PATCH', path, { locations: locations.toReversed(), displayName: 'New name' })
    expect(same).toEqual(moved)
    const late = await tenancy.ask('PATCH', path, { body: { displayName: 'Late', expectedRevision: 2 } })
    expect(refusal(late)).toEqual([409, 'revision_conflict', 'expectedRevision'])
    const entries = await tenancy.audit(user.userId)
    expect(entries.map(({ action }) => action)).toEqual(['user.created', 'user.updated', 'user.updated'])
    expect(entries[2]).toMatchObject({ before: { locations: 'all' }, after: { locations } })
  })

  test('a change of roles holds from the next request on, in every process', async () => {
    const user = await newUser({ dataRoleKeys: ['audit'], locations: [locationOf('north')] })
    const token = await tenancy.newToken(organization.organizationId, user.userId)
    const expectEverywhere = async (expected: object) => {
      for (const client of [tenancy.platform, tenancy.another]) {
        const answer = await client.call('GET', `/v1/apps/${tenancy.appId}/auth/context`, { token })
        expect(answer.json).toMatchObject(expected)
      }
    }
    await expectEverywhere({ dataRoles: [{ key: 'audit' }], locations: [locationOf('north')] })
    const change = { dataRoleIds: [], locations: 'all', isOwner: true, userTypeKey: 'boss' }
    await tenancy.done('PATCH', `${users}/${user.userId}`, change)
    await expectEverywhere({ dataRoles: [], locations: 'all', user: { isOwner: true, userTypeKey: 'boss' } })
  })

  test('who is deactivated is refused at once everywhere, and signs in anew when it comes back', async () => {
    const user = await newUser()
    const token = await tenancy.newToken(organization.organizationId, user.userId)
    const bystander = await tenancy.newToken(organization.organizationId, (await newUser()).userId)
    const context = `/v1/apps/${tenancy.appId}/auth/context`
    const expectEverywhere = async (status: number, code?: string) => {
      for (const client of [tenancy.platform, tenancy.another]) {
        const answer = await client.call('GET', context, { token })
        expect([answer.status, answer.json.code]).toEqual([status, code])
        expect((await client.call('GET', context, { token: bystander })).status).toBe(200)
      }
    }
    await expectEverywhere(200)
    await tenancy.done('PATCH', `${users}/${user.userId}`, { status: 'inactive' })
    await expectEverywhere(403, 'user_inactive')
    await tenancy.done('PATCH', `${users}/${user.userId}`, { status: 'active' })
    await expectEverywhere(401, 'credential_invalid')
    const actions = (await tenancy.audit(user.userId)).map(({ action }) => action)
    expect(actions).toEqual(['user.created', 'user.deactivated', 'user.reactivated'])
  })

  test('so do the sessions on the host of the organization', async () => {
    const email = 'signed-in@northwind.example'
    const path = `/organizations/${organization.organizationId}`
    await tenancy.done('POST', `${path}/invitations`, { email, displayName: 'Signed in' })
    const { json } = await tenancy.accept(organization.slug, { token: tenancy.tokenFor(email), password })
    const host = `${organization.slug}.localhost:8080`
    const signIn = { headers: { host }, body: { email, password } }
    const signedIn = await tenancy.platform.call('POST', '/api/session', signIn)
    const cookie = signedIn.headers['set-cookie']![0]!.split(';')[0]!
    const expectEverywhere = async (status: number, code?: string) => {
      for (const client of [tenancy.platform, tenancy.another]) {
        const answer = await client.call('GET', '/api/session', { headers: { host, cookie } })
        expect([answer.status, answer.json.code]).toEqual([status, code])
      }
    }
    await expectEverywhere(200)
    await tenancy.done('PATCH', `${path}/users/${json.userId}`, { status: 'inactive' })
    await expectEverywhere(403, 'user_inactive')
    await tenancy.done('PATCH', `${path}/users/${json.userId}`, { status: 'active' })
    await expectEverywhere(401, 'credential_invalid')
  })

  test.each([
    ['another address', { email: 'moved@northwind.example' }, []],
    ['an end of its activity', { status: 'inactive' }, [{ status: 'active' }]],
  ])('a link for a new password dies with %s', async (_what, change, then) => {
    const email = `forgetful-${Object.keys(change)}@northwind.example`
    const path = `/organizations/${organization.organizationId}`
    await tenancy.done('POST', `${path}/invitations`, { email, displayName: 'Forgetful' })
    const { json } = await tenancy.accept(organization.slug, { token: tenancy.tokenFor(email), password })
    const onHost = (to: string, body: object) =>
      tenancy.platform.call('POST', to, { headers: { host: `${organization.slug}.localhost:8080` }, body })
    await onHost('/api/password-resets', { email })
    const token = tenancy.tokenFor(email)
    // What changes nothing of that leaves the link alone.
    await tenancy.done('PATCH', `${path}/users/${json.userId}`, { displayName: 'Very forgetful' })
    for (const body of [change, ...then]) await tenancy.done('PATCH', `${path}/users/${json.userId}`, body)
    const answer = await onHost('/api/password-resets:complete', { token, newPassword: 'the battery of a horse' })
    expect(answer.json.code).toBe('reset_token_invalid')
  })

  test('a user of another organization of the same builder is not found here', async () => {
    const other = await tenancy.newOrganization()
    const { userId } = await tenancy.newUser(other.organizationId)
    for (const id of [userId, tenancy.foreign.userId, unknownId]) {
      expect(refusal(await tenancy.ask('GET', `${users}/${id}`))).toEqual([404, 'user_not_found'])
      const change = await tenancy.ask('PATCH', `${users}/${id}`, { body: { displayName: 'Mine' } })
      expect(refusal(change)).toEqual([404, 'user_not_found'])
    }
  })
})

describe('the last active owner', () => {
  test.each([{ isOwner: false }, { status: 'inactive' }])('stays: %j is refused', async (body) => {
    const { organizationId } = await tenancy.newOrganization()
    const path = `/organizations/${organizationId}/users`
    const owner = await tenancy.newUser(organizationId, { isOwner: true })
    const sleeping = await tenancy.newUser(organizationId, { isOwner: true })
    await tenancy.done('PATCH', `${path}/${sleeping.userId}`, { status: 'inactive' })
    const answer = await tenancy.ask('PATCH', `${path}/${owner.userId}`, { body })
    expect(refusal(answer)).toEqual([409, 'last_owner'])
    expect(await tenancy.done('GET', `${path}/${owner.userId}`)).toEqual(owner)
    expect(await tenancy.done('PATCH', `${path}/${sleeping.userId}`, { isOwner: false })).toMatchObject({
      isOwner: false,
    })
    await tenancy.newUser(organizationId, { isOwner: true })
    expect(await tenancy.done('PATCH', `${path}/${owner.userId}`, body)).toMatchObject(body)
  })

  test('owners who go at the same time leave one behind', async () => {
    for (let round = 0; round < 5; round++) {
      const { organizationId } = await tenancy.newOrganization()
      const path = `/organizations/${organizationId}/users`
      const owners = await Promise.all([1, 2, 3, 4].map(() => tenancy.newUser(organizationId, { isOwner: true })))
      const changes = [{ isOwner: false }, { status: 'inactive' }]
      const answers = await Promise.all(
        owners.map(({ userId }, n) => {
          const client = n % 2 === 0 ? tenancy.platform : tenancy.another
          const sent = { token: tenancy.builder.token, body: changes[n % 2] }
          return client.call('PATCH', `/v1/platform${path}/${userId}`, sent)
        }),
      )
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 409])
      const { items } = await tenancy.done('GET', `${path}?status=active`)
      expect(items.filter(({ isOwner }: { isOwner: boolean }) => isOwner)).toHaveLength(1)
    }
  })
})
