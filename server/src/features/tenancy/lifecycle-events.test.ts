import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { validatorOf } from '../../kernel/validation.ts'
import { emitLifecycle } from '../../shared/outbox/lifecycle.ts'
import { type LifecycleEventKey, lifecycleEvents } from '../../shared/outbox/lifecycle-events.ts'
import { changeMember, factsOf } from './members.ts'
import { password, startTenancy, type Tenancy, type TestEvent } from './testing.ts'
import { findUser } from './user-store.ts'

let tenancy: Tenancy
beforeAll(async () => {
  tenancy = await startTenancy()
})
afterAll(() => tenancy.platform.stop())

/** What came into the outbox of the organization while `work` ran, each held against the schema of its kind. */
async function eventsOf(organizationId: string, work: () => Promise<unknown>): Promise<TestEvent[]> {
  const before = new Set((await tenancy.events(organizationId)).map(({ eventId }) => eventId))
  await work()
  const events = (await tenancy.events(organizationId)).filter(({ eventId }) => !before.has(eventId))
  for (const { eventKey, data, saasAppId, version } of events) {
    const { data: schema } = lifecycleEvents[eventKey as LifecycleEventKey]
    expect(validatorOf(schema).Errors(data)).toEqual([])
    expect([saasAppId, version]).toEqual([tenancy.appId, '2026-09-14'])
  }
  return events
}

const keysOf = (events: readonly TestEvent[]) => events.map(({ eventKey }) => eventKey)
const byBuilder = () => ({ kind: 'builder', id: tenancy.builder.builderId })

async function newUser(body: object = {}) {
  const organization = await tenancy.newOrganization()
  const user = await tenancy.newUser(organization.organizationId, body)
  const path = `/organizations/${organization.organizationId}/users/${user.userId}`
  const change = (change: object) => eventsOf(user.organizationId, () => tenancy.done('PATCH', path, change))
  return { organization, user, change }
}

async function newOrganization() {
  const { organizationId, slug } = await tenancy.newOrganization({ billingEmail: 'old@northwind.example' })
  const path = `/organizations/${organizationId}`
  const change = (change: object) => eventsOf(organizationId, () => tenancy.done('PATCH', path, change))
  return { organizationId, slug, path, change }
}

test.each(Object.entries(lifecycleEvents))('the example of %s shows every property of its data', (_, event) => {
  expect(validatorOf(event.data).Errors(event.example)).toEqual([])
  expect(Object.keys(event.example)).toEqual(Object.keys(event.data.properties))
})

test('organization.created', async () => {
  const { organizationId, slug } = await newOrganization()
  expect(await tenancy.events(organizationId)).toEqual([
    expect.objectContaining({
      eventKey: 'organization.created',
      subject: { type: 'organization', id: organizationId },
      actor: byBuilder(),
      data: {
        organizationId,
        name: 'Northwind',
        slug,
        billingEmail: 'old@northwind.example',
        status: 'active',
        customDomain: null,
        customDomainVerifiedAt: null,
      },
    }),
  ])
})

describe('organization.updated', () => {
  test.each([{ name: 'Southwind' }, { billingEmail: null }, { customDomain: 'southwind.example' }])(
    'comes with %j',
    async (body) => {
      const { organizationId, change } = await newOrganization()
      const events = await change(body)
      expect(events).toEqual([
        expect.objectContaining({
          eventKey: 'organization.updated',
          subject: { type: 'organization', id: organizationId },
          actor: byBuilder(),
          data: expect.objectContaining({ organizationId, ...body }),
        }),
      ])
      expect(await change(body)).toEqual([])
    },
  )

  test('comes with the reactivation, alone', async () => {
    const { change } = await newOrganization()
    await change({ status: 'inactive' })
    const events = await change({ status: 'active' })
    expect(keysOf(events)).toEqual(['organization.updated'])
    expect(events[0]!.data).toMatchObject({ status: 'active' })
  })
})

test('organization.deactivated comes beside organization.updated, and once', async () => {
  const { organizationId, change } = await newOrganization()
  const events = await change({ status: 'inactive' })
  expect(keysOf(events)).toEqual(['organization.deactivated', 'organization.updated'])
  for (const { data } of events) expect(data).toMatchObject({ organizationId, status: 'inactive' })
  expect(keysOf(await change({ status: 'inactive', name: 'Renamed asleep' }))).toEqual(['organization.updated'])
})

test('user.created and membership.created', async () => {
  const { organizationId } = await newOrganization()
  const body = { userTypeKey: 'staff', dataRoleKeys: ['audit'] }
  const events = await eventsOf(organizationId, () => tenancy.newUser(organizationId, body))
  const { items } = await tenancy.done('GET', `/organizations/${organizationId}/users`)
  const [{ userId, email, displayName, dataRoles }] = items
  expect(events).toEqual([
    expect.objectContaining({
      eventKey: 'membership.created',
      subject: { type: 'membership', id: userId },
      actor: byBuilder(),
      data: {
        organizationId,
        userId,
        userTypeKey: 'staff',
        dataRoles: [{ dataRoleId: dataRoles[0].dataRoleId }],
      },
    }),
    expect.objectContaining({
      eventKey: 'user.created',
      subject: { type: 'user', id: userId },
      actor: byBuilder(),
      data: { organizationId, userId, email, displayName, userTypeKey: 'staff', isOwner: false, status: 'active' },
    }),
  ])
})

describe('user.updated', () => {
  test.each([{ displayName: 'Somebody Else' }, { email: 'else@northwind.example' }])('comes with %j', async (body) => {
    const { user, change } = await newUser()
    const events = await change(body)
    expect(events).toEqual([
      expect.objectContaining({
        eventKey: 'user.updated',
        subject: { type: 'user', id: user.userId },
        actor: byBuilder(),
        data: expect.objectContaining({ userId: user.userId, ...body }),
      }),
    ])
    expect(await change(body)).toEqual([])
  })

  test('comes with the reactivation, alone', async () => {
    const { change } = await newUser()
    await change({ status: 'inactive' })
    const events = await change({ status: 'active' })
    expect(keysOf(events)).toEqual(['user.updated'])
    expect(events[0]!.data).toMatchObject({ status: 'active' })
  })
})

test('user.deactivated comes beside user.updated, and once', async () => {
  const { user, change } = await newUser()
  const events = await change({ status: 'inactive' })
  expect(keysOf(events)).toEqual(['user.deactivated', 'user.updated'])
  for (const { data, subject } of events) {
    expect([subject, data]).toMatchObject([{ type: 'user', id: user.userId }, { status: 'inactive' }])
  }
  expect(await change({ status: 'inactive' })).toEqual([])
})

describe('membership.role_changed', () => {
  test('comes with DataRoles, alone, and holds exactly what the specification says', async () => {
    const { organization, user, change } = await newUser()
    const { dataRoleId } = organization.dataRoles[0]!
    expect(await change({ dataRoleIds: [dataRoleId] })).toEqual([
      expect.objectContaining({
        eventKey: 'membership.role_changed',
        subject: { type: 'membership', id: user.userId },
        actor: byBuilder(),
        data: {
          organizationId: user.organizationId,
          userId: user.userId,
          userTypeKey: 'member',
          dataRoles: [{ dataRoleId }],
        },
      }),
    ])
    expect(await change({ dataRoleIds: [dataRoleId] })).toEqual([])
  })

  test.each([{ isOwner: true }, { userTypeKey: 'boss' }])('comes with %j, beside user.updated', async (body) => {
    const { change } = await newUser()
    expect(keysOf(await change(body))).toEqual(['membership.role_changed', 'user.updated'])
  })

  test('where somebody works is not told', async () => {
    const { change } = await newUser()
    expect(await change({ locations: 'all' })).toEqual([])
  })

  test('several changes in one transaction collapse to the last', async () => {
    const { organization, user } = await newUser()
    const { organizationId, userId } = user
    const { database } = tenancy.platform.db
    const [first, second] = organization.dataRoles
    const events = await eventsOf(organizationId, () =>
      database.inOrganization(organizationId, async (tx) => {
        const occasion = { tx, now: Date.now(), actor: { kind: 'system', id: 'test' } as const }
        const scope = { organizationId, appId: tenancy.appId }
        for (const dataRoleIds of [[first!.dataRoleId], [first!, second!].map((role) => role.dataRoleId), []]) {
          const now = (await findUser(tx, organizationId, userId))!
          await changeMember(occasion, scope, now, { ...factsOf(now), userTypeKey: 'boss', dataRoleIds })
        }
      }),
    )
    expect(keysOf(events)).toEqual(['membership.role_changed', 'user.updated'])
    expect(events[0]!.data).toEqual({ organizationId, userId, userTypeKey: 'boss', dataRoles: [] })
  })
})

test('invitation.accepted, with the user that came of it, who is the one who acts', async () => {
  const { organizationId, slug } = await newOrganization()
  const email = 'invited@northwind.example'
  const made: { invitationId?: string } = {}
  const invited = await eventsOf(organizationId, async () => {
    const body = { email, displayName: 'Invited' }
    Object.assign(made, await tenancy.done('POST', `/organizations/${organizationId}/invitations`, body))
  })
  expect(invited).toEqual([])
  let userId = ''
  const events = await eventsOf(organizationId, async () => {
    const answer = await tenancy.accept(slug, { token: tenancy.tokenFor(email), password })
    userId = answer.json.userId
  })
  expect(keysOf(events)).toEqual(['invitation.accepted', 'membership.created', 'user.created'])
  for (const { actor } of events) expect(actor).toEqual({ kind: 'user', id: userId })
  expect(events[0]).toMatchObject({
    subject: { type: 'invitation', id: made.invitationId },
    data: { organizationId, invitationId: made.invitationId, userId, email },
  })
})

describe('nothing is told', () => {
  test('of what was refused', async () => {
    const { organizationId, path } = await newOrganization()
    const owner = await tenancy.newUser(organizationId, { isOwner: true })
    const events = await eventsOf(organizationId, async () => {
      const demotion = { isOwner: false, displayName: 'Not any more' }
      expect((await tenancy.ask('PATCH', `${path}/users/${owner.userId}`, { body: demotion })).status).toBe(409)
      const body = { email: owner.email.toUpperCase(), displayName: 'Twice' }
      expect((await tenancy.ask('POST', `${path}/users`, { body })).status).toBe(409)
      const late = { name: 'Renamed', expectedRevision: 99 }
      expect((await tenancy.ask('PATCH', path, { body: late })).status).toBe(409)
      expect((await tenancy.ask('POST', `${path}/domain:verify`)).status).toBe(422)
    })
    expect(events).toEqual([])
  })

  test('of a transaction that was rolled back', async () => {
    const { organization, user } = await newUser()
    const { organizationId } = organization
    const events = await eventsOf(organizationId, async () => {
      const undone = tenancy.platform.db.database.inOrganization(organizationId, async (tx) => {
        const occasion = { tx, now: Date.now(), actor: { kind: 'system', id: 'test' } as const }
        const { userId, email } = user
        const data = { organizationId, invitationId: userId, userId, email }
        await emitLifecycle(occasion, { eventKey: 'invitation.accepted', saasAppId: tenancy.appId, data })
        throw new Error('undone')
      })
      await expect(undone).rejects.toThrow('undone')
    })
    expect(events).toEqual([])
  })

  test('twice of one request that was sent twice', async () => {
    const { organizationId, path } = await newOrganization()
    const headers = { 'idempotency-key': `rename-${organizationId}` }
    const events = await eventsOf(organizationId, async () => {
      const sent = { body: { name: 'Once' }, headers }
      const [first, again] = [await tenancy.ask('PATCH', path, sent), await tenancy.ask('PATCH', path, sent)]
      expect([again.text, again.headers['idempotency-replayed']]).toEqual([first.text, 'true'])
    })
    expect(keysOf(events)).toEqual(['organization.updated'])
  })
})
