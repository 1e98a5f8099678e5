import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type List, type Row, startContacts } from '../../../test/support/contacts.ts'
import { searchAll } from '../../../test/support/record-service.ts'
import { patienceMs, runs, seed } from '../../../test/support/seed.ts'
import type { TestCredential } from '../../../test/support/tenants.ts'
import { readFile } from '../../shared/operations/files.ts'

/** Lists and counts of modules (specification 2.7, 4.3 and 8): who sees what, the window, the arguments. */
let contacts: Awaited<ReturnType<typeof startContacts>>
interface Made {
  readonly recordId: string
  readonly ownerUserId: string | null
  readonly dataRoleKey: string | null
  readonly locationKey: string | null
  readonly participant: string | null
  readonly name: string
  readonly contactType: 'person' | 'company'
  readonly contactTypeId: string | null
}
const made: Made[] = []

beforeAll(async () => {
  contacts = await startContacts()
  await fill()
})
afterAll(() => contacts.close())

const users = () => contacts.organization.users

/** Every combination of owner or role, location, participant, kind and type. */
async function fill(): Promise<void> {
  const { dataRoles, locations } = contacts.organization
  const plans = (['none', 'sales', 'clerk', 'owner', 'guest'] as const).flatMap((whose) =>
    [null, 'north', 'south'].flatMap((locationKey) =>
      [null, 'guest', 'sales'].flatMap((participant) =>
        ([null, 'supplier'] as const).map((contactTypeId, n) => ({
          whose,
          locationKey,
          participant,
          contactTypeId,
          n,
        })),
      ),
    ),
  )
  const items = plans.map(({ whose, locationKey, participant, contactTypeId, n }, index) => {
    const isRole = whose === 'sales' || whose === 'clerk'
    return {
      operation: 'create',
      contactType: n === 0 ? 'person' : 'company',
      ...(n === 0 ? { lastName: `Nobel ${index}` } : { companyName: `Dynamit ${index}` }),
      ...(contactTypeId && { contactTypeId }),
      ...(whose === 'none' ? {} : isRole ? { dataRoleId: dataRoles[whose] } : { ownerUserId: users()[whose].userId }),
      ...(locationKey && { locationId: locations[locationKey] }),
      ...(participant && { participants: [users()[participant as 'guest'].userId] }),
    }
  })
  const answer = await contacts.as<{ results: { record: Row }[] }>(users().owner, 'ContactsBatch', { body: { items } })
  answer.body.results.forEach(({ record }, index) => {
    const { whose, locationKey, participant, contactTypeId, n } = plans[index]!
    const isRole = whose === 'sales' || whose === 'clerk'
    made.push({
      recordId: record.recordId,
      ownerUserId: whose === 'none' || isRole ? null : users()[whose].userId,
      dataRoleKey: isRole ? whose : null,
      locationKey,
      participant,
      name: String(record['displayName']),
      contactType: n === 0 ? 'person' : 'company',
      contactTypeId,
    })
  })
}

const callers = {
  owner: () => true,
  sales: (one: Made) =>
    (one.ownerUserId === null && one.dataRoleKey === null) ||
    (one.dataRoleKey === 'sales' && (one.locationKey === null || one.locationKey === 'north')) ||
    one.participant === 'sales',
  guest: (one: Made) =>
    (one.ownerUserId === null && one.dataRoleKey === null) ||
    one.ownerUserId === users().guest.userId ||
    (one.dataRoleKey === 'sales' && one.locationKey === null) ||
    one.participant === 'guest',
} as const

type Question = {
  readonly search?: string
  readonly contactType?: 'person' | 'company'
  readonly contactTypeId?: string
  readonly location?: 'north' | 'south'
}

const question = fc.record(
  {
    search: fc.constantFrom('nobel', 'DYNAMIT', '1', 'nobel 1', 'nothing'),
    contactType: fc.constantFrom('person' as const, 'company' as const),
    contactTypeId: fc.constantFrom('supplier', 'nobody'),
    location: fc.constantFrom('north' as const, 'south' as const),
  },
  { requiredKeys: [] },
)

function isAsked(one: Made, { search, contactType, contactTypeId, location }: Question): boolean {
  const words = search?.toLowerCase().split(' ') ?? []
  const kind = one.contactType === 'person' ? 'person' : 'company'
  return (
    words.every((word) => `${one.name} ${kind}`.toLowerCase().includes(word)) &&
    (contactType === undefined || one.contactType === contactType) &&
    (contactTypeId === undefined || one.contactTypeId === contactTypeId) &&
    (location === undefined || one.locationKey === location)
  )
}

describe.each(Object.keys(callers) as (keyof typeof callers)[])('what %s sees', (name) => {
  test(
    `is the same in list, count, get, records search and export, whatever is asked (seed ${seed})`,
    async () => {
      const credential = users()[name]
      const check = async ({ location, ...rest }: Question) => {
        const query = { ...rest, ...(location && { locationId: contacts.organization.locations[location] }) }
        const expected = made
          .filter((one) => callers[name](one) && isAsked(one, { ...rest, ...(location && { location }) }))
          .map((one) => one.recordId)
          .toSorted()
        const listed: string[] = []
        for (let page = 1, more = true; more; page++) {
          const paging = { pageNumber: String(page), pageSize: '20', includeTotal: 'true' }
          const { body } = await contacts.as<List>(credential, 'ContactsList', { query: { ...query, ...paging } })
          expect(body).toMatchObject({ totalRecords: expected.length, totalIsExact: true })
          listed.push(...body.items.map((row) => row.recordId))
          more = body.hasMore
        }
        expect(listed.toSorted()).toEqual(expected)
        const count = await contacts.as<List>(credential, 'ContactsCount', { query })
        expect(count.body).toEqual({
          totalRecords: expected.length,
          totalIsExact: true,
          contractVersion: '1.0.0-developer-platform',
        })
        const conditions = Object.entries(query).filter(([field]) => field !== 'search')
        const filter = { and: conditions.map(([field, value]) => ({ field, op: 'eq', value })) }
        const selection = {
          ...(rest.search !== undefined && { search: rest.search }),
          ...(conditions.length > 0 && { filter }),
        }
        const searched = await searchAll(contacts.records(credential, 'contacts'), selection)
        expect(searched.records.map((record) => record.recordId).toSorted()).toEqual(expected)
        expect(await exportedIds(credential, selection)).toEqual(expected)
      }
      await check({})
      await fc.assert(fc.asyncProperty(question, check), runs(25))
      for (const one of made) {
        const { status } = await contacts.as(credential, 'ContactsGet', { recordId: one.recordId })
        expect(status, one.name).toBe(callers[name](one) ? 200 : 404)
      }
    },
    patienceMs,
  )
})

/** What an export of contacts holds, by its ids. */
async function exportedIds(credential: TestCredential, selection: object): Promise<string[]> {
  const body = { format: 'ndjson', ...selection }
  const answer = await contacts.as<{ operationId: string }>(credential, 'ContactsExport', { body })
  expect(answer.status).toBe(202)
  const { service } = contacts.running
  await service.operationRunner!.wake()
  const owner = { organizationId: contacts.organization.organizationId, operationId: answer.body.operationId }
  const chunks: Buffer[] = []
  for await (const chunk of readFile(service.database, owner, 'result')) chunks.push(chunk)
  const lines = Buffer.concat(chunks).toString().split('\n').slice(0, -1)
  return lines.map((line) => (JSON.parse(line) as Row).recordId).toSorted()
}

test.each(Object.keys(callers) as (keyof typeof callers)[])(
  'what %s finds by global search is what an export holds',
  async (name) => {
    for (const words of ['nobel', 'dynamit 1']) {
      const found: string[] = []
      for (let page = 1, more = true; more; page++) {
        const query = { query: words, moduleKey: 'contacts', pageNumber: String(page), pageSize: '200' }
        const { body } = await contacts.as<List>(users()[name], 'GlobalSearchList', { query })
        found.push(...body.items.map((row) => row.recordId))
        more = body.hasMore
      }
      expect(found.length).toBeGreaterThan(0)
      expect(await exportedIds(users()[name], { search: words })).toEqual(found.toSorted())
    }
  },
)

test('somebody without a role is told of no module', async () => {
  const refused = await contacts.as(users().outsider, 'ContactsExport', { body: { format: 'csv' } })
  expect(refused.body.code).toBe('object_not_found')
  for (const verb of ['ContactsList', 'ContactsCount', 'ContactsListTypes', 'InvoicesList']) {
    expect((await contacts.as(users().outsider, verb)).body.code, verb).toBe('object_not_found')
  }
})

test('a field that the caller may not read is in no row, and no argument of a list', async () => {
  const { clerk } = users()
  const { body } = await contacts.as<List>(clerk, 'ContactsList')
  expect(body.items.length).toBeGreaterThan(0)
  for (const row of body.items) {
    expect(row).not.toHaveProperty('notes')
    expect(row).not.toHaveProperty('contactType')
  }
  const refused = await contacts.as(clerk, 'ContactsList', { query: { contactType: 'person' } })
  expect(refused.body).toMatchObject({ code: 'unknown_field', details: [{ field: 'contactType' }] })
})

describe('arguments', () => {
  const list = (query: Readonly<Record<string, unknown>>) =>
    contacts.as<List & { browseLimit: number; pageNumber: number }>(users().owner, 'ContactsList', { query })

  test.each([
    [{ pageSize: '201' }, 'page_size_exceeded', 'pageSize'],
    [{ includeTotal: 'maybe' }, 'validation_failed', 'includeTotal'],
    [{ pageNumber: '0' }, 'validation_failed', 'pageNumber'],
    [{ contactType: 'robot' }, 'validation_failed', 'contactType'],
    [{ locationId: 'north' }, 'validation_failed', 'locationId'],
    [{ sort: 'emails_asc' }, 'sort_invalid', 'sort[0]'],
    [{ surprise: '1' }, 'unknown_field', 'surprise'],
  ])('%j is refused as %s', async (query, code, field) => {
    const answer = await list(query)
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ code, details: [{ field }] })
    const count = await contacts.as(users().owner, 'ContactsCount', { query })
    expect(count.status).toBe(400)
  })

  test('without the total it tells of the rows known so far; sorting puts them in order', async () => {
    const first = await list({ pageSize: '10', sort: ['displayName_asc'] })
    expect(first.body).toMatchObject({ totalRecords: 10, totalIsExact: false, hasMore: true, browseLimit: 5000 })
    const names = first.body.items.map((row) => String(row['displayName']))
    expect(names).toEqual(
      made
        .map((one) => one.name)
        .toSorted((a, b) => (a.toLowerCase() < b.toLowerCase() ? -1 : 1))
        .slice(0, 10),
    )
    const last = await list({ pageSize: '50', pageNumber: '2' })
    expect(last.body).toMatchObject({ totalRecords: made.length, totalIsExact: false, hasMore: false })
    const beyond = await list({ pageSize: '50', pageNumber: '3', includeTotal: 'true' })
    expect(beyond.body).toMatchObject({ items: [], hasMore: false, totalRecords: made.length, totalIsExact: true })
  })

  test('past the window pages are empty, whatever there is; the exact total stays', async () => {
    const page = await list({ pageSize: '200', pageNumber: '26', includeTotal: 'true' })
    expect(page.body).toMatchObject({ items: [], hasMore: false, totalRecords: made.length, totalIsExact: true })
    expect((await list({ pageNumber: '10000000' })).body).toMatchObject({ items: [], totalIsExact: false })
  })
})
