import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Placement, sees } from '../../../test/support/record-model/envelope.ts'
import type { ModelCaller } from '../../../test/support/record-model/world.ts'
import { searchAll } from '../../../test/support/record-service.ts'
import { patienceMs, sample, seed } from '../../../test/support/seed.ts'
import type { TestCredential } from '../../../test/support/tenants.ts'
import { type Search, startSearch } from './testing.ts'

/**
 * Global search against a naive model: whoever asks, the list, the count, the searches of each object and the module's own
 * list and count are about the same records, also after eight writers changed, moved, archived, restored, merged and
 * separated them at once.
 */
let search: Search
beforeAll(async () => {
  search = await startSearch()
})
afterAll(() => search?.close())

/** No two alike, so that no similar title is found in place of one. */
const words = ['alder', 'birch', 'spruce', 'elm', 'quince'] as const
const objectKeys = ['vessel', 'contacts'] as const

interface Model extends Placement {
  readonly recordId: string
  readonly objectKey: (typeof objectKeys)[number]
  name: string
  secret: string
  participants: readonly string[]
  archived: boolean
}

const callers = ['owner', 'captain', 'crew', 'guest', 'outsider'] as const
type CallerKey = (typeof callers)[number]

function modelOf(key: CallerKey): ModelCaller {
  const { users, dataRoles, locations } = search.organizations.a
  const role = { owner: undefined, captain: 'captain', crew: 'crew', guest: 'captain', outsider: undefined }[key]
  return {
    userId: users[key].userId,
    unrestricted: key === 'owner',
    dataRoleIds: role === undefined ? [] : [dataRoles[role]!],
    locationIds: key === 'owner' ? 'all' : key === 'captain' || key === 'crew' ? [locations['north']!] : [],
  } as unknown as ModelCaller
}

const fieldsOf = ({ objectKey, name, secret }: Pick<Model, 'objectKey' | 'name' | 'secret'>) =>
  objectKey === 'vessel' ? { name, secret } : { companyName: name, contactType: 'company', emails: [] }

/** What the caller finds by a word, said plainly. */
function wanted(records: readonly Model[], key: CallerKey, word: string, locationId?: string): string[] {
  if (key === 'outsider') return []
  const caller = modelOf(key)
  return records
    .filter((record) => !record.archived && sees(caller, record as never))
    .filter((record) => locationId === undefined || record.locationId === locationId)
    .filter(({ objectKey, name, secret }) => {
      const text = objectKey === 'vessel' && key !== 'crew' ? `${name} ${secret}` : name
      return text.includes(word)
    })
    .map(({ recordId }) => recordId)
    .sort()
}

async function expectExact(records: readonly Model[]): Promise<void> {
  for (const key of callers) {
    const credential: TestCredential = search.organizations.a.users[key]
    for (const word of words) {
      for (const locationId of [undefined, search.organizations.a.locations['north']!]) {
        const query = { query: word, ...(locationId && { locationId }) }
        const { body } = await search.list(credential, { ...query, pageSize: 200, includeTotal: true })
        const listed = body.items.map(({ recordId }) => recordId).sort()
        const { body: counted } = await search.count(credential, query)
        const naive = wanted(records, key, word, locationId)
        expect([key, word, locationId, listed]).toEqual([key, word, locationId, naive])
        expect([body.totalRecords, counted.totalRecords]).toEqual([naive.length, naive.length])
        if (key === 'outsider' || locationId) continue
        const found = await Promise.all(
          objectKeys.map((objectKey) => searchAll(search.records(credential, objectKey), { search: word })),
        )
        expect(found.flatMap((one) => one.records.map(({ recordId }) => recordId)).sort()).toEqual(naive)
        const isContact = (recordId: string) => records.some((one) => one.recordId === recordId && isOfContacts(one))
        expect(await contactsFound(credential, word)).toEqual(naive.filter(isContact))
      }
    }
  }
}

const isOfContacts = ({ objectKey }: Model) => objectKey === 'contacts'

interface Listed {
  readonly items: readonly { readonly recordId: string }[]
  readonly totalRecords: number
}

/** What the list of the module finds by a word, which is as many as the list and the count say. */
async function contactsFound(credential: TestCredential, word: string): Promise<string[]> {
  const ask = (verb: string, query: object) =>
    search.running.send<Listed>(`developerModulesContacts${verb}`, credential, {
      params: { saasAppId: search.appId },
      query: { search: word, ...query },
    })
  const { body } = await ask('List', { pageSize: 200, includeTotal: true })
  const { body: counted } = await ask('Count', {})
  expect([body.totalRecords, counted.totalRecords]).toEqual([body.items.length, body.items.length])
  return body.items.map(({ recordId }) => recordId).sort()
}

/** Whom a contact took in last, and how often that came to pass. */
const takenIn = new Map<Model, Model>()
const done = { merged: 0, separated: 0 }

/** Makes one contact of two, or two of one again; what is no contact is restored. */
async function merge(record: Model, other: Model, undo: boolean): Promise<{ status: number }> {
  const { owner } = search.organizations.a.users
  const taken = takenIn.get(record)
  const second = undo && taken ? taken : other
  if (!isOfContacts(record) || record === second) {
    return search.records(owner, record.objectKey).restore(record.recordId)
  }
  const answer = await search.running.send('developerModulesContactsMerge', owner, {
    params: { saasAppId: search.appId, recordId: record.recordId },
    body: { otherRecordId: second.recordId, ...(undo && taken && { undo }) },
  })
  if (answer.status === 200) {
    done[undo && taken ? 'separated' : 'merged']++
    takenIn.set(record, second)
  }
  return answer
}

const name = fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 3 }).map((list) => list.join(' '))

function placements(): Placement[] {
  const { users, dataRoles, locations } = search.organizations.a
  const nowhere = { ownerUserId: null, dataRoleId: null, locationId: null }
  return [
    nowhere,
    { ...nowhere, ownerUserId: users.crew.userId },
    { ...nowhere, ownerUserId: users.owner.userId, locationId: locations['north']! },
    ...['crew', 'captain'].flatMap((role) =>
      [null, locations['north']!, locations['south']!].map((locationId) => ({
        ownerUserId: null,
        dataRoleId: dataRoles[role]!,
        locationId,
      })),
    ),
  ]
}

test(
  `finds and counts what the caller sees, beside eight writers (PORTICO_TEST_SEED=${seed})`,
  async () => {
    const { users } = search.organizations.a
    const place = fc.constantFrom(...placements())
    const people = fc.constantFrom<string[]>([], [users.guest.userId], [users.crew.userId, users.guest.userId])
    const drafts = sample(
      fc.record({ objectKey: fc.constantFrom(...objectKeys), name, secret: name, place, participants: people }),
      48,
    )
    const records: Model[] = []
    for (const { place: placement, participants, ...draft } of drafts) {
      const client = search.records(users.owner, draft.objectKey)
      const { status, body } = await client.create({ fields: fieldsOf(draft), ...placement, participants })
      expect(status, JSON.stringify(body)).toBe(201)
      records.push({ recordId: body.recordId, ...draft, ...placement, participants, archived: false })
    }
    await expectExact(records)

    const steps = sample(
      fc.record({ verb: fc.nat(6), name, secret: name, place, participants: people, other: fc.nat(47) }),
      320,
    )
    const contacts = records.filter(isOfContacts)
    // Whatever is drawn below: two contacts become one and two again, several at once.
    const pairs = Array.from({ length: Math.min(8, Math.floor(contacts.length / 2)) }, (_, pair) => pair * 2)
    await Promise.all(
      pairs.map(async (at) => {
        for (const undo of [false, true]) {
          const { status } = await merge(contacts[at]!, contacts[at + 1]!, undo)
          expect(status).toBe(200)
        }
      }),
    )
    // Two writers meet at each record; what they do there is one after the other, whatever the order.
    const writers = Array.from({ length: 8 }, async (_, writer) => {
      for (const [n, step] of steps.entries()) {
        if (n % 8 !== writer) continue
        const record = records[(n * 5) % records.length]!
        const client = search.records(users.owner, record.objectKey)
        const { status } = await [
          () => client.update(record.recordId, { fields: fieldsOf({ ...record, ...step }) }),
          () => client.update(record.recordId, { ...step.place }),
          () => client.setParticipants(record.recordId, step.participants),
          () => client.archive(record.recordId),
          () => client.restore(record.recordId),
          () => merge(record, contacts[step.other % contacts.length]!, false),
          () => merge(record, contacts[step.other % contacts.length]!, true),
        ][step.verb]!()
        expect([200, 409]).toContain(status)
      }
    })
    await Promise.all(writers)
    expect([done.merged > 0, done.separated > 0], JSON.stringify(done)).toEqual([true, true])
    // Who came last is known to the records themselves.
    for (const record of records) {
      const client = search.records(users.owner, record.objectKey)
      const { body } = await client.get(record.recordId)
      const { body: taking } = await client.participants(record.recordId)
      const { ownerUserId, dataRoleId, locationId, fields } = body
      Object.assign(record, { ownerUserId, dataRoleId, locationId, archived: body.archivedAt !== null })
      record.name = String(fields[record.objectKey === 'vessel' ? 'name' : 'companyName'])
      record.secret = String(fields['secret'] ?? '')
      record.participants = taking.items.map(({ userId }) => userId)
    }
    await expectExact(records)
  },
  patienceMs,
)
