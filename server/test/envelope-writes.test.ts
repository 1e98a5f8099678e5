import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RecordView } from '../src/shared/records/record.ts'
import { footprint, writesNothing } from './support/footprint.ts'
import type { Answer, Sent } from './support/http-client.ts'
import { startTestService, type TestService } from './support/service.ts'

/**
 * Nobody gives a record away to where it may not write, nor pulls one in from there (data.md): every caller tries to move a
 * record from every place to every other, by every way to write. What must happen is said by a few lines that know nothing
 * of the service.
 */
type Person = keyof TestService['app']['organizations']['a']['users'] | 'live' | 'enveloped'

interface Place {
  readonly owner?: Person
  readonly role?: 'sales' | 'support' | 'clerk'
  readonly location?: 'north' | 'south'
}

const places = {
  everybody: {},
  everybodyNorth: { location: 'north' },
  ofSales: { owner: 'sales' },
  ofSalesSouth: { owner: 'salesSouth', location: 'north' },
  ofOwner: { owner: 'owner' },
  roleSales: { role: 'sales' },
  roleSalesNorth: { role: 'sales', location: 'north' },
  roleSalesSouth: { role: 'sales', location: 'south' },
  roleClerk: { role: 'clerk' },
  roleSupportSouth: { role: 'support', location: 'south' },
} as const satisfies Record<string, Place>
type PlaceName = keyof typeof places
const placeNames = Object.keys(places) as PlaceName[]

interface Rights {
  readonly role?: 'sales' | 'support' | 'clerk'
  readonly locations?: readonly string[]
  readonly unrestricted?: true
}

/** The people of `startTestService`. */
const people: Partial<Record<Person, Rights>> = {
  live: { unrestricted: true },
  owner: { unrestricted: true },
  enveloped: { role: 'sales', locations: ['north'] },
  sales: { role: 'sales', locations: ['north'] },
  salesSouth: { role: 'sales', locations: ['south'] },
  support: { role: 'support', locations: ['north', 'south'] },
  clerk: { role: 'clerk', locations: ['north', 'south'] },
  outsider: {},
}
const callers = Object.keys(people) as Person[]

/** What each role may do with deals. */
const mayWrite = (person: Person) =>
  people[person]!.unrestricted || ['sales', 'clerk'].includes(people[person]!.role ?? '')
const mayRead = (person: Person) => people[person]!.unrestricted || people[person]!.role !== undefined

function mayPlace(person: Person, { owner, role, location }: Place): boolean {
  const rights = people[person]!
  if (rights.unrestricted || (!owner && !role) || owner === person) return true
  return role !== undefined && rights.role === role && (!location || rights.locations!.includes(location))
}

/** What moving a record comes to, by a caller who takes part in it or does not. */
function outcomeOfMove(person: Person, from: Place, to: Place, takesPart = false): number {
  if (!mayRead(person) || !(mayPlace(person, from) || takesPart)) return 404
  if (!mayWrite(person)) return 403
  const moved = from.owner !== to.owner || from.role !== to.role || from.location !== to.location
  return !moved || (mayPlace(person, from) && mayPlace(person, to)) ? 200 : 403
}

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.stop())

const organization = () => service.app.organizations.a
const records = '/objects/deal/records'

function tokenOf(person: Person): string {
  return person === 'live' || person === 'enveloped'
    ? organization().credentials[person].token
    : organization().users[person].token
}

function ask<T = Readonly<Record<string, unknown>>>(
  person: Person,
  method: string,
  path: string,
  sent: Sent = {},
): Promise<Answer<T>> {
  return service.call<T>(method, `/v1/apps/${service.app.appId}${path}`, { token: tokenOf(person), ...sent })
}

const userOf = (person: Person) => organization().users[person as 'sales'].userId

/** A place as the API knows it, every part named. */
function placement({ owner, role, location }: Place) {
  return {
    ownerUserId: owner === undefined ? null : userOf(owner),
    dataRoleId: role === undefined ? null : organization().dataRoles[role]!,
    locationId: location === undefined ? null : organization().locations[location]!,
  }
}

function placementOf({ ownerUserId, dataRoleId, locationId }: RecordView) {
  return { ownerUserId, dataRoleId, locationId }
}

interface BatchAnswer {
  readonly results: readonly { readonly status: number; readonly record?: RecordView }[]
}

/** Records at these places, each with a key of its own. */
let made = 0
async function make(at: readonly PlaceName[], participants: readonly Person[] = []): Promise<RecordView[]> {
  const items = at.map((name) => ({
    operation: 'create',
    fields: { name: `At ${name}` },
    externalKey: `made-${++made}`,
    participants: participants.map(userOf),
    ...placement(places[name]),
  }))
  const answer = await ask<BatchAnswer>('live', 'POST', `${records}:batch`, { body: { items } })
  expect(answer.json.results.map((result) => result.status)).toEqual(items.map(() => 201))
  return answer.json.results.map((result) => result.record!)
}

const moves = placeNames.flatMap((from) => placeNames.map((to) => [from, to] as const))

/** Where the records are afterwards, whatever was answered. */
async function expectPlaces(of: readonly RecordView[], expected: readonly PlaceName[]): Promise<void> {
  const filter = { field: 'recordId', op: 'in', value: of.map((record) => record.recordId) }
  const body = { filter, pageSize: 200, fields: [] }
  const { json } = await ask<{ records: RecordView[] }>('live', 'POST', `${records}/search`, { body })
  const found = new Map(json.records.map((record) => [record.recordId, placementOf(record)]))
  expect(of.map((record) => found.get(record.recordId))).toEqual(expected.map((name) => placement(places[name])))
}

describe.each(callers)('%s', (person) => {
  test('creates records where it may write, and nowhere else', async () => {
    const outcome = (to: Place) => (mayRead(person) ? (mayWrite(person) && mayPlace(person, to) ? 201 : 403) : 404)
    for (const name of placeNames) {
      const body = { fields: { name: 'Created' }, ...placement(places[name]) }
      const single = await ask<RecordView>(person, 'POST', records, { body })
      const upserted = await ask<RecordView>(person, 'PUT', `${records}/by-key/made-${++made}`, { body })
      const items = [
        { operation: 'create', ...body },
        { operation: 'upsert', externalKey: `made-${++made}`, ...body },
      ]
      const batch = await ask<BatchAnswer>(person, 'POST', `${records}:batch`, { body: { items } })
      const statuses =
        batch.status === 200 ? batch.json.results.map((result) => result.status) : [batch.status, batch.status]
      const expected = outcome(places[name])
      expect([name, single.status, upserted.status, ...statuses]).toEqual([
        name,
        expected,
        expected,
        expected,
        expected,
      ])
      if (expected === 201) expect(placementOf(single.json)).toEqual(placement(places[name]))
      if (expected === 403 && mayWrite(person)) expect(single.json.details?.[0]?.code).toBe('permission_denied')
    }
  })

  test('moves records only between places where it may write', async () => {
    const batch = await make(moves.map(([from]) => from))
    const answers: Answer<RecordView>[] = []
    for (const [index, [, to]] of moves.entries()) {
      const body = placement(places[to])
      answers.push(await ask<RecordView>(person, 'PATCH', `${records}/${batch[index]!.recordId}`, { body }))
    }
    const expected = moves.map(([from, to]) => outcomeOfMove(person, places[from], places[to]))
    expect(answers.map(({ status }, index) => [...moves[index]!, status])).toEqual(
      moves.map((move, index) => [...move, expected[index]]),
    )
    await expectPlaces(
      batch,
      moves.map(([from, to], index) => (expected[index] === 200 ? to : from)),
    )
  })

  test('moves no more by batches and by keys', async () => {
    for (const way of ['update', 'updateByKey', 'upsert'] as const) {
      const batch = await make(moves.map(([from]) => from))
      const items = moves.map(([, to], index) => ({
        operation: way === 'upsert' ? 'upsert' : 'update',
        ...(way === 'update' ? { recordId: batch[index]!.recordId } : { externalKey: batch[index]!.externalKey! }),
        fields: { name: 'Moved' },
        ...placement(places[to]),
      }))
      const { status, json } = await ask<BatchAnswer>(person, 'POST', `${records}:batch`, { body: { items } })
      const hidden = mayRead(person) ? takenKey(person, way) : 404
      const expected = moves.map(([from, to]) => {
        const outcome = outcomeOfMove(person, places[from], places[to])
        return outcome === 404 ? (typeof hidden === 'function' ? hidden(to) : hidden) : outcome
      })
      const statuses = status === 200 ? json.results.map((result) => result.status) : moves.map(() => status)
      expect(statuses.map((one, index) => [way, ...moves[index]!, one])).toEqual(
        moves.map((move, index) => [way, ...move, expected[index]]),
      )
      await expectPlaces(
        batch,
        moves.map(([from, to], index) => (expected[index] === 200 ? to : from)),
      )
    }
  })

  test('who merely takes part changes fields, and neither the place nor the participants', async () => {
    if (person === 'live' || person === 'enveloped') return
    const batch = await make(
      moves.map(([from]) => from),
      [person],
    )
    for (const [index, [from, to]] of moves.entries()) {
      const path = `${records}/${batch[index]!.recordId}`
      const expected = outcomeOfMove(person, places[from], places[to], true)
      const moved = await ask(person, 'PATCH', path, { body: placement(places[to]) })
      expect([from, to, moved.status]).toEqual([from, to, expected])
      const changed = await ask(person, 'PATCH', path, { body: { fields: { stage: 'won' } } })
      const now = expected === 200 ? to : from
      expect([now, changed.status]).toEqual([now, outcomeOfMove(person, places[now], places[now], true)])
    }
    await expectPlaces(
      batch,
      moves.map(([from, to]) => (outcomeOfMove(person, places[from], places[to], true) === 200 ? to : from)),
    )
  })

  test('lets others take part only in what it could place', async () => {
    const batch = await make([...placeNames, ...placeNames])
    const joined = await make(placeNames, person === 'live' || person === 'enveloped' ? [] : [person])
    for (const [index, name] of placeNames.entries()) {
      const mine = outcomeOfMove(person, places[name], places[name])
      const body = { participants: [userOf('outsider')] }
      const put = await ask(person, 'PUT', `${records}/${batch[index]!.recordId}/participants`, { body })
      const patched = await ask(person, 'PATCH', `${records}/${batch[index + placeNames.length]!.recordId}`, { body })
      expect([name, put.status, patched.status]).toEqual([name, mine, mine])
      const takesPart = person !== 'live' && person !== 'enveloped'
      const asParticipant = mayPlace(person, places[name]) ? mine : takesPart && mayRead(person) ? 403 : 404
      for (const participants of [[userOf('outsider')], []]) {
        const path = `${records}/${joined[index]!.recordId}/participants`
        const answer = await ask(person, 'PUT', path, { body: { participants } })
        expect([name, answer.status]).toEqual([name, asParticipant])
        // Whoever could place the record has just left it; the next in the list is tried as it is then.
        if (answer.status === 200) break
      }
    }
  })
})

/**
 * A key of a record out of sight: an update finds nothing; an upsert goes on to create, where it is told that it may not,
 * or that the key is taken.
 */
function takenKey(person: Person, way: 'update' | 'updateByKey' | 'upsert'): number | ((to: PlaceName) => number) {
  if (way !== 'upsert') return 404
  return (to) => (mayWrite(person) && mayPlace(person, places[to]) ? 409 : 403)
}

test('naming an owner takes a record from its role, and the reverse, with the same rights', async () => {
  const [ofRole, ofOwner, foreign] = (await make(['roleSalesNorth', 'ofSales', 'roleClerk'])) as [
    RecordView,
    RecordView,
    RecordView,
  ]
  const { dataRoles, locations, users } = organization()
  const taken = await ask<RecordView>('sales', 'PATCH', `${records}/${ofRole.recordId}`, {
    body: { ownerUserId: users.sales.userId },
  })
  expect(placementOf(taken.json)).toEqual({
    ownerUserId: users.sales.userId,
    dataRoleId: null,
    locationId: locations['north'],
  })
  const given = await ask<RecordView>('sales', 'PATCH', `${records}/${ofOwner.recordId}`, {
    body: { dataRoleId: dataRoles['sales'] },
  })
  expect(placementOf(given.json)).toEqual({ ownerUserId: null, dataRoleId: dataRoles['sales'], locationId: null })
  await writesNothing(service, async () => {
    for (const [record, body, status] of [
      [given.json, { ownerUserId: users.salesSouth.userId }, 403],
      [given.json, { dataRoleId: dataRoles['clerk'] }, 403],
      [given.json, { locationId: locations['south'] }, 403],
      [taken.json, { dataRoleId: dataRoles['support'] }, 403],
      [taken.json, { ownerUserId: users.sales.userId, dataRoleId: dataRoles['sales'] }, 400],
      [foreign, { ownerUserId: users.sales.userId }, 404],
      [foreign, { dataRoleId: dataRoles['sales'] }, 404],
    ] as const) {
      const answer = await ask('sales', 'PATCH', `${records}/${record.recordId}`, { body })
      expect([body, answer.status]).toEqual([body, status])
    }
  })
})

test('who may read and not write is told so, and who may not read is told nothing', async () => {
  const [open, foreign] = (await make(['everybody', 'ofOwner'])) as [RecordView, RecordView]
  const writes = (record: RecordView): [method: string, path: string, body?: object][] => [
    ['PATCH', `${records}/${record.recordId}`, { fields: { name: 'x' } }],
    ['PATCH', `${records}/${record.recordId}`, {}],
    ['DELETE', `${records}/${record.recordId}`],
    ['POST', `${records}/${record.recordId}:restore`],
    ['PUT', `${records}/${record.recordId}/participants`, { participants: [] }],
  ]
  await writesNothing(service, async () => {
    for (const [record, status, code] of [
      [open, 403, 'permission_denied'],
      [foreign, 404, 'record_not_found'],
    ] as const) {
      for (const [method, path, body] of writes(record)) {
        const answer = await ask('support', method, path, body ? { body } : {})
        expect([method, path, answer.status, answer.json.code]).toEqual([method, path, status, code])
      }
      for (const [method, path, body] of writes(record)) {
        const answer = await ask('outsider', method, path, body ? { body } : {})
        expect([method, path, answer.status, answer.json.code]).toEqual([method, path, 404, 'object_not_found'])
      }
    }
    const create = await ask('support', 'POST', records, { body: { fields: { name: 'x' } } })
    expect([create.status, create.json.code]).toEqual([403, 'permission_denied'])
    // A wrong guard on a record that the caller may not change tells nothing of its revision.
    const guarded = await ask('support', 'PATCH', `${records}/${open.recordId}`, { body: { expectedRevision: 99 } })
    expect([guarded.status, guarded.headers['etag']]).toEqual([403, undefined])
  })
  for (const person of ['support', 'sales', 'clerk'] as const) {
    const { json } = await ask<RecordView>(person, 'GET', `${records}/${open.recordId}`)
    expect(json.access).toEqual({ canUpdate: person !== 'support', canArchive: person !== 'support' })
  }
})

test('a field that can be read and not written is denied by name, in every write', async () => {
  const created = await ask<RecordView>('live', 'POST', '/objects/company/records', {
    body: { fields: { name: 'Fixed', employees: 3 }, externalKey: 'fixed' },
  })
  const fields = { name: 'Changed', employees: 4 }
  await writesNothing(service, async () => {
    for (const [method, path, body] of [
      ['POST', '', { fields }],
      ['PATCH', `/${created.json.recordId}`, { fields }],
      ['PATCH', `/${created.json.recordId}`, { fields: { employees: null } }],
      ['PUT', '/by-key/fixed', { fields }],
      ['PUT', '/by-key/not-there', { fields }],
    ] as const) {
      const answer = await ask('clerk', method, `/objects/company/records${path}`, { body })
      expect([path, answer.status, answer.json.details?.[0]?.field]).toEqual([path, 403, 'fields.employees'])
    }
    const items = [
      { operation: 'create', fields },
      { operation: 'update', externalKey: 'fixed', fields },
      { operation: 'upsert', externalKey: 'fixed', fields },
    ]
    const batch = await ask('clerk', 'POST', '/objects/company/records:batch', { body: { atomic: true, items } })
    expect(batch.json.details?.map(({ field, code }) => `${field} ${code}`)).toEqual(
      items.map((_, n) => `items[${n}].fields.employees permission_denied`),
    )
  })
})

test('what was refused left no trace', async () => {
  const before = await footprint(service)
  const [deal] = (await make(['ofOwner'])) as [RecordView]
  await ask('live', 'DELETE', `${records}/${deal.recordId}`)
  const between = await footprint(service)
  expect(between).not.toEqual(before)
  for (const person of callers.filter((one) => !people[one]!.unrestricted)) {
    const answer = await ask(person, 'POST', `${records}/${deal.recordId}:restore`)
    expect(answer.status).toBe(404)
  }
  expect(await footprint(service)).toEqual(between)
})
