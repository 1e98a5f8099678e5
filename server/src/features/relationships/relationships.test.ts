import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RecordClient, type RecordService, startRecordService } from '../../../test/support/record-service.ts'
import { createTenant, type TestCredential } from '../../../test/support/tenants.ts'
import type { RecordView } from '../../shared/records/record.ts'
import { everyPage, type LinkClient, linkClient, model } from './testing.ts'

/** What can be done with links between records, and what archiving does with them. */
const plan = {
  model,
  organizations: {
    a: {
      locations: ['north'],
      users: {
        owner: { owner: true },
        agent: { roles: ['agent'], locations: ['north'] },
        clerk: { roles: ['clerk'], locations: ['north'] },
      },
    },
    b: { users: { owner: { owner: true } } },
  },
} as const

type ObjectKey = 'company' | 'person' | 'meeting'
interface Actor extends LinkClient {
  records(objectKey: ObjectKey): RecordClient
}

let running: RecordService
let tenant: Awaited<ReturnType<typeof makeTenant>>
let owner: Actor
let agent: Actor
let clerk: Actor
/** The owner of another organisation, and of an organisation of another application. */
let stranger: Actor
let foreigner: Actor

const makeTenant = () => createTenant(running.db.database, plan)

function actor(appId: string, credential: TestCredential): Actor {
  return {
    ...linkClient(running, appId, credential),
    records: (objectKey) => running.records(appId, credential, objectKey),
  }
}

beforeAll(async () => {
  running = await startRecordService({ poolSize: 16 })
  tenant = await makeTenant()
  const other = await makeTenant()
  const { a, b } = tenant.organizations
  owner = actor(tenant.appId, a.users.owner)
  agent = actor(tenant.appId, a.users.agent)
  clerk = actor(tenant.appId, a.users.clerk)
  stranger = actor(tenant.appId, b.users.owner)
  foreigner = actor(other.appId, other.organizations.a.users.owner)
})
afterAll(() => running?.close())

let made = 0
async function make(objectKey: ObjectKey, more: object = {}, by: Actor = owner): Promise<string> {
  const name = `${objectKey} ${++made}`
  const { status, body } = await by.records(objectKey).create({ fields: { name, size: made }, ...more })
  expect(status, JSON.stringify(body)).toBe(201)
  return body.recordId
}

async function link(key: string, from: string, to: string, by: Actor = owner): Promise<string> {
  const { status, body } = await by.create(key, from, to)
  expect(status, JSON.stringify(body)).toBe(201)
  return body.relationshipId
}

const idsOf = async (by: Actor, query: object) =>
  (await by.list({ ...query })).body.items.map((one) => one.relationshipId)
const codeOf = (answer: { readonly status: number; readonly body: { readonly code?: string } }) =>
  answer.body.code ?? answer.status

/** A record that only the owner of the organisation sees. */
const hidden = () => ({ ownerUserId: tenant.organizations.a.users.owner.userId })
const ofAgents = () => ({
  dataRoleId: tenant.organizations.a.dataRoles['agent'],
  locationId: tenant.organizations.a.locations['north'],
})

describe('relating records', () => {
  test('two records are related once, and asking again answers with what there is', async () => {
    const [meeting, person] = [await make('meeting'), await make('person')]
    const first = await owner.create('attendees', meeting, person)
    expect([first.status, first.headers['location']]).toEqual([
      201,
      `/v1/apps/${tenant.appId}/relationships/${first.body.relationshipId}`,
    ])
    expect(first.body).toMatchObject({
      relationshipKey: 'attendees',
      fromRecordId: meeting,
      fromObjectKey: 'meeting',
      toRecordId: person,
      toObjectKey: 'person',
      createdBy: { kind: 'user', id: tenant.organizations.a.users.owner.userId },
    })
    const again = await owner.create('attendees', meeting.toUpperCase(), person)
    expect([again.status, again.body]).toEqual([200, first.body])
    expect(await idsOf(owner, { fromRecordId: meeting })).toEqual([first.body.relationshipId])
  })

  test('a relationship is seen from both ends, with what names the other record', async () => {
    const [meeting, person, friend] = [await make('meeting'), await make('person'), await make('person')]
    await link('attendees', meeting, person)
    await link('knows', person, friend)
    const seen = async (id: string) =>
      (await owner.ofRecord('person', id)).body.items.map(({ relationshipKey, direction, label, record }) => [
        relationshipKey,
        direction,
        label,
        record.recordId,
        record.objectKey,
        record.displayName?.split(' ')[0],
      ])
    expect((await seen(person)).sort()).toEqual([
      ['attendees', 'inverse', 'meeting of it', meeting, 'meeting', 'meeting'],
      ['knows', 'forward', 'person of it', friend, 'person', 'person'],
    ])
    expect(await seen(friend)).toEqual([['knows', 'inverse', 'person of it', person, 'person', 'person']])
    const { body } = await owner.ofRecord('person', person, { relationshipKey: 'knows' })
    expect(body.items.map((one) => one.record.recordId)).toEqual([friend])
  })

  test('one that is ended is gone, for everybody and for good', async () => {
    const [meeting, person] = [await make('meeting'), await make('person')]
    const id = await link('attendees', meeting, person)
    expect((await owner.remove(id)).body.relationshipId).toBe(id)
    expect(codeOf(await owner.remove(id))).toBe('relationship_not_found')
    expect(await idsOf(owner, { recordId: person })).toEqual([])
    expect((await owner.create('attendees', meeting, person)).status).toBe(201)
  })

  test('refuses what the relationship does not lead from or to', async () => {
    const [meeting, person] = [await make('meeting'), await make('person')]
    const gone = await make('person')
    await owner.records('person').archive(gone)
    const field = async (key: string, from: string, to: string) => {
      const answer = await owner.create(key, from, to)
      return [codeOf(answer), answer.body.details?.[0]?.field]
    }
    expect(await field('attendees', person, meeting)).toEqual(['reference_not_found', 'fromRecordId'])
    expect(await field('attendees', meeting, meeting)).toEqual(['validation_failed', 'toRecordId'])
    expect(await field('knows', person, person)).toEqual(['validation_failed', 'toRecordId'])
    expect(await field('attendees', meeting, gone)).toEqual(['record_archived', 'toRecordId'])
    for (const key of ['nothing', '__proto__', 'constructor', 'name']) {
      expect(await field(key, meeting, person)).toEqual(['reference_not_found', 'relationshipKey'])
    }
  })

  test('ids of another organization and of another application are ids of nothing', async () => {
    const [meeting, person] = [await make('meeting'), await make('person')]
    const id = await link('attendees', meeting, person)
    for (const other of [stranger, foreigner]) {
      const [theirs, their] = [await make('meeting', {}, other), await make('person', {}, other)]
      const theirLink = await link('attendees', theirs, their, other)
      expect(codeOf(await owner.create('attendees', theirs, person))).toBe('reference_not_found')
      expect(codeOf(await owner.create('attendees', meeting, their))).toBe('reference_not_found')
      expect(codeOf(await owner.remove(theirLink))).toBe('relationship_not_found')
      expect(codeOf(await other.remove(id))).toBe('relationship_not_found')
      for (const query of [{ recordId: theirs }, { fromRecordId: theirs }, { toRecordId: their }]) {
        expect(await idsOf(owner, query)).toEqual([])
      }
      expect(codeOf(await owner.ofRecord('meeting', theirs))).toBe('record_not_found')
    }
    expect(await idsOf(owner, { recordId: meeting })).toEqual([id])
  })

  test('takes sight of both records and the right to update the one that it starts at', async () => {
    const [company, person] = [await make('company'), await make('person')]
    const [secret, meeting] = [await make('person', hidden()), await make('meeting', ofAgents())]
    expect(codeOf(await clerk.create('employees', company, person))).toBe('permission_denied')
    // The object of one end does not exist for the clerk, and with it the relationship.
    expect(codeOf(await clerk.create('attendees', meeting, person))).toBe('reference_not_found')
    expect(codeOf(await agent.create('attendees', meeting, secret))).toBe('reference_not_found')
    expect(codeOf(await clerk.create('knows', person, await make('person')))).toBe(201)
    const shown = await link('employees', company, person)
    const unseen = await link('attendees', meeting, secret)
    expect(codeOf(await clerk.remove(shown))).toBe('permission_denied')
    expect(codeOf(await agent.remove(unseen))).toBe('relationship_not_found')
    expect(codeOf(await clerk.list({ relationshipKey: 'attendees' }))).toBe('reference_not_found')
    expect(await idsOf(agent, { recordId: meeting })).toEqual([])
    expect((await agent.ofRecord('meeting', meeting)).body.items).toEqual([])
    expect(await idsOf(owner, { recordId: meeting })).toEqual([unseen])
    expect(codeOf(await agent.remove(shown))).toBe(200)
  })

  test('lists in pages, the latest first, and holds a cursor to its query', async () => {
    const person = await make('person')
    const ids: string[] = []
    for (let count = 0; count < 7; count++) ids.unshift(await link('attendees', await make('meeting'), person))
    const listed = await everyPage((page) => owner.list({ toRecordId: person, ...page }), 3)
    expect(listed.map((one) => one.relationshipId).sort()).toEqual([...ids].sort())
    expect(listed.map((one) => one.createdAt)).toEqual(
      listed
        .map((one) => one.createdAt)
        .toSorted()
        .reverse(),
    )
    const related = await everyPage((page) => owner.ofRecord('person', person, page), 2)
    expect(related.map((one) => one.relationshipId)).toEqual(listed.map((one) => one.relationshipId))
    const { nextCursor: cursor } = (await owner.list({ toRecordId: person, pageSize: 3 })).body
    expect(codeOf(await owner.list({ fromRecordId: person, cursor }))).toBe('cursor_mismatch')
    expect(codeOf(await owner.list({ toRecordId: person.toUpperCase(), cursor }))).toBe(200)
    expect(codeOf(await owner.list({ pageSize: 201 }))).toBe('page_size_exceeded')
  })
})

describe('cardinality', () => {
  test('one of sixteen who race gets the record of a one-to-many relationship', async () => {
    for (let round = 0; round < 5; round++) {
      const person = await make('person')
      const companies = await Promise.all(Array.from({ length: 16 }, () => make('company')))
      const answers = await Promise.all(companies.map((company) => owner.create('employees', company, person)))
      expect(answers.map(codeOf).sort()).toEqual([201, ...Array(15).fill('duplicate_value')])
      const [winner] = answers.filter(({ status }) => status === 201)
      expect(await idsOf(owner, { toRecordId: person })).toEqual([winner!.body.relationshipId])
    }
  })

  test('sixteen who relate the same two records make one relationship', async () => {
    for (const [key, from] of [
      ['attendees', 'meeting'],
      ['employees', 'company'],
    ] as const) {
      const [near, person] = [await make(from), await make('person')]
      const answers = await Promise.all(Array.from({ length: 16 }, () => owner.create(key, near, person)))
      expect(answers.map(({ status }) => status).sort()).toEqual([...Array(15).fill(200), 201])
      expect(new Set(answers.map(({ body }) => body.relationshipId)).size).toBe(1)
    }
  })

  test('sixteen who move a record from one to another leave it with one', async () => {
    const person = await make('person')
    const companies = await Promise.all(Array.from({ length: 4 }, () => make('company')))
    await Promise.all(
      Array.from({ length: 16 }, async (_, index) => {
        for (let step = 0; step < 10; step++) {
          for (const { relationshipId } of (await owner.list({ toRecordId: person })).body.items) {
            expect([200, 'relationship_not_found']).toContain(codeOf(await owner.remove(relationshipId)))
          }
          const answer = await owner.create('employees', companies[(index + step) % 4]!, person)
          expect([200, 201, 'duplicate_value']).toContain(codeOf(answer))
          expect((await owner.list({ toRecordId: person })).body.items.length).toBeLessThanOrEqual(1)
        }
      }),
    )
  })

  test('a record that the caller cannot see keeps its place, and one that is archived gives way', async () => {
    const [company, person, meeting] = [await make('company'), await make('person'), await make('meeting')]
    const secret = await make('company', hidden())
    const kept = await link('employees', secret, person)
    expect(codeOf(await agent.create('employees', company, person))).toBe('duplicate_value')
    await owner.remove(kept)
    const old = await make('company')
    const hiddenLink = await link('agenda', old, meeting)
    await owner.records('company').archive(old)
    await owner.records('meeting').restore(meeting)
    const taken = await link('agenda', company, meeting)
    await owner.records('company').restore(old)
    expect(await idsOf(owner, { toRecordId: meeting })).toEqual([taken])
    expect(codeOf(await owner.remove(hiddenLink))).toBe('relationship_not_found')
  })
})

describe('archiving', () => {
  const archive = (objectKey: ObjectKey, id: string, by = owner) => by.records(objectKey).archive(id)
  const isArchived = async (objectKey: ObjectKey, id: string) =>
    (await owner.records(objectKey).get(id)).body.archivedAt !== null

  test('hides the relationships of a record until it is restored', async () => {
    const [meeting, person] = [await make('meeting'), await make('person')]
    const id = await link('attendees', meeting, person)
    await archive('person', person)
    expect(await idsOf(owner, { recordId: meeting })).toEqual([])
    expect((await owner.ofRecord('person', person)).body.items).toEqual([])
    expect(codeOf(await owner.remove(id))).toBe('relationship_not_found')
    await owner.records('person').restore(person)
    expect(await idsOf(owner, { recordId: meeting })).toEqual([id])
  })

  test('unlink: the relationships that start at it end, and restoring does not bring them back', async () => {
    const [meeting, person, company] = [await make('meeting'), await make('person'), await make('company')]
    await link('attendees', meeting, person)
    const stays = await link('agenda', company, meeting)
    await archive('meeting', meeting)
    await owner.records('meeting').restore(meeting)
    expect(await idsOf(owner, { recordId: meeting })).toEqual([stays])
  })

  test('unlink: what refuses the archiving keeps the relationships, too', async () => {
    const [first, second] = [await make('meeting', ofAgents()), await make('meeting', hidden())]
    const person = await make('person')
    const ids = [await link('attendees', first, person), await link('leads-to', first, second)]
    expect(codeOf(await archive('meeting', first, agent))).toBe('permission_denied')
    expect((await idsOf(owner, { recordId: first })).sort()).toEqual(ids.sort())
    expect(await isArchived('meeting', first)).toBe(false)
  })

  test('restrict: refuses while live records are related, and says how many of them the caller sees', async () => {
    const company = await make('company')
    const [open, secret] = [await make('person'), await make('person', hidden())]
    const say = async (by: Actor) => {
      const { status, body } = await archive('company', company, by)
      return [status, body.code, body.details?.[0]?.field, body.details?.[0]?.message]
    }
    await link('employees', company, open)
    await link('employees', company, secret)
    const refusal = [409, 'relationship_restricts', 'employees']
    expect(await say(owner)).toEqual([...refusal, '2 related records stand against it.'])
    expect(await say(agent)).toEqual([...refusal, 'Besides 1 that you see, more related records stand against it.'])
    await archive('person', open)
    expect(await say(agent)).toEqual([...refusal, 'Related records that you do not see stand against it.'])
    await archive('person', secret)
    expect((await archive('company', company, agent)).status).toBe(200)
    // They can come back; the company then has them again.
    await owner.records('person').restore(open)
    await owner.records('company').restore(company)
    expect(await idsOf(owner, { fromRecordId: company })).toHaveLength(1)
  })

  test('restrict: holds against somebody who relates a record at the same moment', async () => {
    for (let round = 0; round < 20; round++) {
      const [company, person] = [await make('company'), await make('person')]
      const [linked, archived] = await Promise.all([
        owner.create('employees', company, person),
        archive('company', company),
      ])
      expect([
        [201, 'relationship_restricts'],
        ['record_archived', 200],
      ]).toContainEqual([codeOf(linked), codeOf(archived)])
    }
  })

  test('archive: takes the related records along, and those that are related to them', async () => {
    const company = await make('company')
    const [first, second, third] = [await make('meeting'), await make('meeting'), await make('meeting')]
    await link('agenda', company, first)
    await link('leads-to', first, second)
    await link('leads-to', second, third)
    // A ring ends where it began.
    await link('leads-to', third, first)
    expect((await archive('company', company)).status).toBe(200)
    for (const id of [first, second, third]) expect(await isArchived('meeting', id)).toBe(true)
    const { body } = await owner.records('meeting').history(third)
    expect(body.items.map((one) => one.operation)).toEqual(['archived', 'created'])
  })

  test('archive: needs the right to archive each of them', async () => {
    const company = await make('company')
    await link('agenda', company, await make('meeting'))
    const secret = await make('meeting', hidden())
    await link('agenda', company, secret)
    expect(codeOf(await archive('company', company, agent))).toBe('permission_denied')
    expect(await isArchived('company', company)).toBe(false)
    expect((await archive('company', company)).status).toBe(200)
    expect(await isArchived('meeting', secret)).toBe(true)
  })

  test('archive: at most 1,000 at once, however they are related', async () => {
    const company = await make('company')
    const meetings: string[] = []
    for (let batch = 0; batch < 6; batch++) {
      const items = Array.from({ length: 200 }, () => ({ operation: 'create', fields: { name: 'many' } }))
      const { body } = await owner.records('meeting').batch(items)
      meetings.push(...body.results.map((result) => result.record!.recordId))
    }
    // One hand: the pool is not what is tested here.
    for (const meeting of meetings.slice(0, 1000)) await link('agenda', company, meeting)
    const extra = await link('leads-to', meetings[999]!, meetings[1000]!)
    expect(codeOf(await archive('company', company))).toBe('relationship_restricts')
    expect(await isArchived('meeting', meetings[0]!)).toBe(false)
    await owner.remove(extra)
    expect((await archive('company', company)).status).toBe(200)
    const { body } = await owner.records('meeting').count({ filter: { field: 'name', op: 'eq', value: 'many' } })
    expect(body.totalRecords).toBe(200)
  }, 60_000)

  test('a batch archives by the same rules, item by item', async () => {
    const [free, bound] = [await make('company'), await make('company')]
    await link('employees', bound, await make('person'))
    const { body } = await owner.records('company').batch([
      { operation: 'archive', recordId: free },
      { operation: 'archive', recordId: bound },
    ])
    expect(body.results.map((one) => one.error?.code ?? one.status)).toEqual([200, 'relationship_restricts'])
  })
})

describe('in searches', () => {
  const search = async (by: Actor, objectKey: ObjectKey, body: object) => {
    const answer = await by.records(objectKey).search(body)
    return answer.body.code ?? answer.body.records.map((record) => record.recordId)
  }
  const anything = { field: 'revision', op: 'gte', value: 1 }

  test('a relationship is followed by its key from either end, and back by `inverse:`', async () => {
    const [meeting, person, friend] = [await make('meeting'), await make('person'), await make('person')]
    await link('attendees', meeting, person)
    await link('knows', person, friend)
    const by = (field: string, id: string) => ({ field, op: 'eq', value: id })
    const only = (id: string, related: string, some: object = anything) => ({
      filter: { and: [by('recordId', id), { related, some }] },
    })
    expect(await search(owner, 'meeting', only(meeting, 'attendees', by('recordId', person)))).toEqual([meeting])
    expect(await search(owner, 'meeting', only(meeting, 'attendees', by('recordId', friend)))).toEqual([])
    for (const name of ['attendees', 'inverse:attendees']) {
      expect(await search(owner, 'person', only(person, name))).toEqual([person])
      expect(await search(owner, 'person', only(friend, name))).toEqual([])
    }
    for (const name of ['knows', 'forward:knows']) {
      expect(await search(owner, 'person', only(person, name))).toEqual([person])
      expect(await search(owner, 'person', only(friend, name))).toEqual([])
    }
    expect(await search(owner, 'person', only(friend, 'inverse:knows'))).toEqual([friend])
    expect(await search(owner, 'person', only(person, 'inverse:knows'))).toEqual([])
    for (const name of ['forward:attendees', 'inverse:', 'agenda', 'inverse:nothing', '__proto__', 7]) {
      expect(await search(owner, 'person', only(person, name as string))).toBe('unknown_field')
    }
    // The clerk reads people and nothing of meetings.
    expect(await search(clerk, 'person', only(person, 'attendees'))).toBe('unknown_field')
    expect(codeOf(await clerk.records('person').search({ expand: ['attendees'] }))).toBe('unknown_field')
    const hint = await owner.records('person').search({ filter: { related: 'atendees', some: anything } })
    expect(hint.body.details?.[0]?.message).toContain('attendees')
  })

  test('`expand` shows at most 20 of the related records, the latest related first, and says that there are more', async () => {
    const meeting = await make('meeting')
    for (let count = 0; count < 21; count++) await link('attendees', meeting, await make('person'))
    // Links of one millisecond have an order, which is not that of their creation.
    const links = (await owner.list({ fromRecordId: meeting })).body.items
    const expanded = async (id: string) => {
      const { body } = await owner.records('meeting').get(id, { expand: ['attendees'] })
      return body.expanded!['attendees'] as { records: RecordView[]; hasMore: boolean }
    }
    const { records, hasMore } = await expanded(meeting)
    expect(records.map((record) => record.recordId)).toEqual(links.slice(0, 20).map((one) => one.toRecordId))
    expect(hasMore).toBe(true)
    await owner.remove(links[20]!.relationshipId)
    expect((await expanded(meeting)).hasMore).toBe(false)
    expect(await expanded(await make('meeting'))).toEqual({ records: [], hasMore: false })
  })

  test('the schema of an object names every hop that the caller can follow', async () => {
    const hops = async (by: 'owner' | 'clerk') => {
      const { body } = await running.send<{ relationships: Record<string, unknown>[] }>(
        'developerObjectsGetSchema',
        tenant.organizations.a.users[by],
        { params: { saasAppId: tenant.appId, objectKey: 'person' } },
      )
      return body.relationships.map(
        ({ relationshipKey, objectKey, label }) => `${relationshipKey} ${objectKey} ${label}`,
      )
    }
    expect(await hops('owner')).toEqual([
      'inverse:attendees meeting meeting of it',
      'inverse:employees company company of it',
      'knows person person of it',
      'inverse:knows person person of it',
    ])
    expect(await hops('clerk')).toEqual([
      'inverse:employees company company of it',
      'knows person person of it',
      'inverse:knows person person of it',
    ])
  })
})
