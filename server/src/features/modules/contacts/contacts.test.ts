import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type List, type Row, startContacts } from '../../../../test/support/contacts.ts'
import { removeOldMerges } from '../../../shared/maintenance.ts'

let contacts: Awaited<ReturnType<typeof startContacts>>
beforeAll(async () => {
  contacts = await startContacts()
})
afterAll(() => contacts.close())

const owner = () => contacts.organization.users.owner
const get = async (recordId: string) => (await contacts.as(owner(), 'ContactsGet', { recordId })).body

describe('how contacts are reached', () => {
  test('any spelling of a number finds the contact', async () => {
    const { recordId } = await contacts.create({ lastName: 'Byron', phones: [{ number: '+44 (0)20 7946 0958' }] })
    for (const search of ['+44 20 7946 0958', '+442079460958', '020 7946 0958', '7946-0958', '(020) 79460958']) {
      expect(await contacts.ids({ search }), search).toEqual([recordId])
    }
    expect(await contacts.ids({ search: '+44 20 7946 0959' })).toEqual([])
  })

  test('name, company and address find it by a part and without accents; one e-mail address is the primary', async () => {
    const { recordId, ...row } = await contacts.create({
      firstName: 'Zoë',
      lastName: 'Křížek',
      companyName: 'Škoda Møbler',
      emails: [{ address: 'zoe@krizek.example' }, { address: 'Office@Krizek.example', isPrimary: true }],
    })
    expect(row).toMatchObject({ displayName: 'Zoë Křížek', primaryEmail: 'Office@Krizek.example' })
    expect((row['emails'] as { isPrimary: boolean }[]).map((email) => email.isPrimary)).toEqual([false, true])
    for (const search of ['krizek', 'ZOE', 'skoda', 'zoe@krizek', 'office@krizek.example', 'zoe møb']) {
      expect(await contacts.ids({ search }), search).toEqual([recordId])
    }
  })

  test('problems inside of lists are named where they are', async () => {
    const body = { lastName: 'Byron', emails: [{ address: 'a@b.example' }, { address: 'nowhere' }] }
    const answer = await contacts.as(owner(), 'ContactsCreate', { body })
    expect(answer.body).toMatchObject({ code: 'field_value_invalid', details: [{ field: 'emails[1].address' }] })
    const nameless = await contacts.as(owner(), 'ContactsCreate', { body: { tags: ['nobody'] } })
    expect(nameless.body).toMatchObject({ code: 'required_field_missing', details: [{ field: 'lastName' }] })
  })
})

describe('types', () => {
  test('are those that contacts have, with how many there are of each; lists take several', async () => {
    const made = []
    for (const contactTypeId of ['supplier', 'press', 'supplier']) {
      made.push((await contacts.create({ lastName: 'Typed', contactTypeId })).recordId)
    }
    const types = () => contacts.as<List<object>>(owner(), 'ContactsListTypes')
    expect((await types()).body).toEqual({
      items: [
        { contactTypeId: 'press', totalRecords: 1 },
        { contactTypeId: 'supplier', totalRecords: 2 },
      ],
      nextCursor: null,
    })
    expect(await contacts.ids({ contactTypeId: 'supplier' })).toEqual([made[2], made[0]])
    expect(await contacts.ids({ contactTypeId: ['supplier', 'press'] })).toEqual(made.toReversed())
    expect(await contacts.ids({ contactTypeId: 'nobody-has-it' })).toEqual([])
    const bad = await contacts.as(owner(), 'ContactsList', { query: { contactTypeId: 'Not A Key' } })
    expect(bad.body).toMatchObject({ code: 'validation_failed', details: [{ field: 'contactTypeId[0]' }] })
    const first = await contacts.as<List<object>>(owner(), 'ContactsListTypes', { query: { pageSize: '1' } })
    const { nextCursor: cursor } = first.body
    const second = await contacts.as<List<object>>(owner(), 'ContactsListTypes', { query: { pageSize: '1', cursor } })
    expect(second.body).toEqual({ items: [{ contactTypeId: 'supplier', totalRecords: 2 }], nextCursor: null })
    await contacts.as(owner(), 'ContactsArchive', { recordId: made[1]! })
    expect((await types()).body.items).toHaveLength(1)
  })
})

interface Pair {
  readonly contacts: readonly { readonly recordId: string; readonly displayName: string | null }[]
  readonly reasons: readonly string[]
  readonly score: number
}

/** Every pair that the pages tell of, in the order of the pages. */
async function duplicates(credential = owner(), pageSize = 50): Promise<Pair[]> {
  const pairs: Pair[] = []
  let cursor: string | null | undefined
  do {
    const query = { pageSize: String(pageSize), ...(cursor && { cursor }) }
    const { body } = await contacts.as<List<Pair>>(credential, 'ContactsListDuplicates', { query })
    pairs.push(...body.items)
    cursor = body.nextCursor
  } while (cursor)
  return pairs
}

describe('duplicates', () => {
  test.each([50, 1])(
    'are found by address, number and similar name, each pair once, on pages of %i',
    async (pageSize) => {
      const tag = `p${pageSize}`
      const one = await contacts.create({
        firstName: 'Augusta',
        lastName: `Kingsley${tag}`,
        emails: [{ address: `a${tag}@k.example` }],
      })
      const second = await contacts.create({
        firstName: 'Gus',
        lastName: 'Unlike',
        emails: [{ address: `own${tag}@k.example` }, { address: `A${tag}@K.example` }],
        phones: [{ number: pageSize === 1 ? '+43 1 234 56 78' : '+43 1 234 56 79' }],
      })
      const third = await contacts.create({
        lastName: 'Somebody Else Entirely',
        phones: [
          { number: pageSize === 1 ? '0043 1 2345678' : '+431 2345679' },
          { number: pageSize === 1 ? '+43(1)2345678' : '+44 20 7946 0001' },
        ],
      })
      const fourth = await contacts.create({ firstName: 'Augusta', lastName: `Kingsly${tag}` })
      const mine = new Set([one, second, third, fourth].map((row) => row.recordId))
      const found = (await duplicates(owner(), pageSize)).filter((pair) =>
        pair.contacts.every((contact) => mine.has(contact.recordId)),
      )
      const told = found.map((pair) => [pair.contacts.map((contact) => contact.recordId), pair.reasons] as const)
      expect(new Set(told.map(([both]) => both.join())).size).toBe(told.length)
      expect(told).toEqual(
        expect.arrayContaining([
          [[one.recordId, second.recordId], ['email']],
          [[second.recordId, third.recordId], ['phone']],
          [[one.recordId, fourth.recordId], ['name']],
        ]),
      )
      expect(told).toHaveLength(3)
      for (const { score, reasons } of found) {
        if (reasons.includes('email')) expect(score).toBe(1)
        if (reasons.includes('name')) expect(score).toBeLessThanOrEqual(0.8)
      }
      const { sales, outsider } = contacts.organization.users
      await contacts.as(owner(), 'ContactsAssign', { recordId: one.recordId, body: { ownerUserId: owner().userId } })
      const others = await duplicates(sales, pageSize)
      expect(others.flatMap((pair) => pair.contacts).map((contact) => contact.recordId)).not.toContain(one.recordId)
      expect((await contacts.as(outsider, 'ContactsListDuplicates')).body.code).toBe('object_not_found')
    },
  )
})

test('a page of duplicates that takes long ends where it has come to, and the next goes on from there', async () => {
  const made = []
  for (let n = 0; n < 9; n++) made.push(await contacts.create({ firstName: 'Patience', lastName: `Longwait${n % 3}` }))
  const mine = new Set(made.map((row) => row.recordId))
  const ofMine = (pairs: readonly Pair[]) =>
    pairs
      .filter((pair) => pair.contacts.every((contact) => mine.has(contact.recordId)))
      .map((pair) => pair.contacts.map((contact) => contact.recordId).join())
      .toSorted()
  const whole = ofMine(await duplicates(owner(), 50))
  expect(whole.length).toBeGreaterThan(8)
  // Each look at the clock is two seconds later.
  let seconds = 0
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => {
    seconds += 2
    return seconds * 1000
  })
  try {
    const first = await contacts.as<List<Pair>>(owner(), 'ContactsListDuplicates', { query: { pageSize: '50' } })
    const found = ofMine(first.body.items)
    expect(found.length).toBeLessThan(whole.length)
    expect(found.length).toBeGreaterThan(0)
    expect(first.body.nextCursor).not.toBeNull()
    expect(ofMine(await duplicates(owner(), 50))).toEqual(whole)
  } finally {
    clock.mockRestore()
  }
})

describe('merging', () => {
  async function pair() {
    const survivor = await contacts.create({
      firstName: 'Ada',
      lastName: 'Byron',
      emails: [{ address: 'ada@one.example' }],
      tags: ['one'],
    })
    const other = await contacts.create({
      firstName: 'Ada',
      lastName: 'Lovelace',
      jobTitle: 'Analyst',
      emails: [{ address: 'ADA@one.example' }, { address: 'ada@two.example', isPrimary: true }],
      tags: ['two'],
    })
    const task = await contacts.create({ title: 'Call her', contactId: other.recordId }, 'Tasks')
    const visits = contacts.records(owner(), 'visit')
    const visit = await visits.create({ fields: { name: 'At the fair', contact: other.recordId } })
    const company = await contacts.create({ name: 'Analytical Engines' }, 'Companies')
    const link = { relationshipKey: 'contacts_companies', fromRecordId: other.recordId, toRecordId: company.recordId }
    const linked = await contacts.running.send('developerRelationshipsCreate', owner(), {
      params: { saasAppId: contacts.appId },
      body: link,
    })
    expect(linked.status, JSON.stringify(linked.body)).toBe(201)
    const contactOfTask = async () =>
      (await contacts.as(owner(), 'TasksGet', { recordId: task.recordId })).body['contactId']
    const contactOfVisit = async () => (await visits.get(visit.body.recordId)).body.fields['contact']
    const linksOf = async (recordId: string) =>
      (await contacts.as<List<object>>(owner(), 'ContactsListRelationships', { recordId })).body.items.length
    const merge = (more: object = {}) =>
      contacts.as<{ contact: Row; reversibleUntil: string | null }>(owner(), 'ContactsMerge', {
        recordId: survivor.recordId,
        body: { otherRecordId: other.recordId, ...more },
      })
    return { survivor, other, contactOfTask, contactOfVisit, linksOf, merge }
  }

  test('the survivor takes over what it lacks, and what referred to the other one refers to it; both can be had back', async () => {
    const { survivor, other, contactOfTask, contactOfVisit, linksOf, merge } = await pair()
    const total = async () => (await contacts.as<List>(owner(), 'ContactsCount')).body.totalRecords
    const before = await total()
    const merged = await merge({ lastName: 'King' })
    expect(merged.status, JSON.stringify(merged.body)).toBe(200)
    expect(merged.body.contact).toMatchObject({
      recordId: survivor.recordId,
      displayName: 'Ada King',
      jobTitle: 'Analyst',
      primaryEmail: 'ada@one.example',
      emails: [{ address: 'ada@one.example' }, { address: 'ada@two.example', isPrimary: false }],
      tags: ['one', 'two'],
    })
    expect(await get(other.recordId)).toMatchObject({
      archivedAt: expect.any(String),
      mergedIntoId: survivor.recordId,
    })
    expect([await contactOfTask(), await contactOfVisit()]).toEqual([survivor.recordId, survivor.recordId])
    expect([await linksOf(survivor.recordId), await linksOf(other.recordId)]).toEqual([1, 0])
    expect(await total()).toBe(before - 1)
    expect(await contacts.ids({ search: 'ada@two.example' })).toEqual([survivor.recordId])
    expect((await merge()).body.contact.revision).toBe(merged.body.contact.revision)

    await contacts.as(owner(), 'ContactsUpdate', { recordId: survivor.recordId, body: { tags: ['kept'] } })
    const undone = await merge({ undo: true })
    expect(undone.status, JSON.stringify(undone.body)).toBe(200)
    expect(undone.body.reversibleUntil).toBeNull()
    expect(undone.body.contact).toMatchObject({ displayName: 'Ada Byron', jobTitle: null, tags: ['kept'] })
    expect(undone.body.contact['emails']).toEqual(survivor['emails'])
    expect(await get(other.recordId)).toMatchObject({ archivedAt: null, mergedIntoId: null, tags: ['two'] })
    expect([await contactOfTask(), await contactOfVisit()]).toEqual([other.recordId, other.recordId])
    expect([await linksOf(survivor.recordId), await linksOf(other.recordId)]).toEqual([0, 1])
    expect(await total()).toBe(before)
    expect((await merge({ undo: true })).body.code).toBe('merge_not_reversible')
  })

  test('a merge is no longer taken back after thirty days', async () => {
    const { survivor, merge } = await pair()
    await merge()
    const { organizationId } = contacts.organization
    await contacts.running.db.database.as('portico_owner', async (tx) => {
      await tx.rows({ text: `SELECT set_config('portico.organization_id', $1, true)`, values: [organizationId] })
      const text = `UPDATE portico.contact_merge SET merged_at = merged_at - interval '31 days' WHERE survivor_record_id = $1`
      await tx.rows({ text, values: [survivor.recordId] })
    })
    const late = await merge({ undo: true })
    expect(late.body).toMatchObject({ code: 'merge_not_reversible' })
    // The note of it is still there: refusing has changed nothing.
    expect((await get(survivor.recordId))['jobTitle']).toBe('Analyst')
  })

  test('a merged contact that is restored by hand is one of its own again; what it lost can still be had back', async () => {
    const { survivor, other, contactOfTask, linksOf, merge } = await pair()
    await merge()
    const restored = await contacts.as<Row>(owner(), 'ContactsRestore', { recordId: other.recordId })
    expect(restored.body, JSON.stringify(restored.body)).toMatchObject({ archivedAt: null, mergedIntoId: null })
    const { body: timeline } = await contacts.as<List<Happening>>(owner(), 'ContactsGetTimeline', survivor)
    expect(timeline.items.filter((item) => item.recordId === other.recordId)).toEqual([])
    expect([await contactOfTask(), await linksOf(other.recordId)]).toEqual([survivor.recordId, 0])

    expect((await merge({ undo: true })).status).toBe(200)
    expect([await contactOfTask(), await linksOf(other.recordId)]).toEqual([other.recordId, 1])
    expect((await get(other.recordId))['archivedAt']).toBeNull()
    // Restored once more, and merged anew instead: the second merge is the one that is taken back.
    await merge()
    await contacts.as(owner(), 'ContactsRestore', { recordId: other.recordId })
    expect((await merge()).status).toBe(200)
    expect((await merge({ undo: true })).status).toBe(200)
    expect(await get(other.recordId)).toMatchObject({ archivedAt: null, mergedIntoId: null })
  })

  test('after thirty days the note of a merge is removed, and the history of the other one stays in the timeline', async () => {
    const [old, recent] = [await pair(), await pair()]
    for (const { merge } of [old, recent]) await merge()
    const { database } = contacts.running.db
    await removeOldMerges(database, Date.now() + 29 * 86_400_000)
    const { body } = await recent.merge({ undo: true })
    expect(body.reversibleUntil, JSON.stringify(body)).toBeNull()
    await removeOldMerges(database, Date.now() + 31 * 86_400_000)
    expect((await old.merge({ undo: true })).body).toMatchObject({ code: 'merge_not_reversible' })
    const { body: timeline } = await contacts.as<List<Happening>>(owner(), 'ContactsGetTimeline', old.survivor)
    expect(timeline.items.map((item) => item.recordId)).toContain(old.other.recordId)
  })

  test('is refused with itself, with what is out of sight and without the rights to both', async () => {
    const { survivor, other } = await pair()
    const { clerk } = contacts.organization.users
    const merge = (credential: Parameters<typeof contacts.as>[0], otherRecordId: string) =>
      contacts.as(credential, 'ContactsMerge', { recordId: survivor.recordId, body: { otherRecordId } })
    expect((await merge(owner(), survivor.recordId)).body).toMatchObject({ details: [{ field: 'otherRecordId' }] })
    expect((await merge(clerk, other.recordId)).body.code).toBe('permission_denied')
    await contacts.as(owner(), 'ContactsAssign', { recordId: other.recordId, body: { ownerUserId: owner().userId } })
    const unseen = await merge(contacts.organization.users.sales, other.recordId)
    expect(unseen.body).toMatchObject({ code: 'reference_not_found', details: [{ field: 'otherRecordId' }] })
    await contacts.as(owner(), 'ContactsArchive', { recordId: other.recordId })
    expect((await merge(owner(), other.recordId)).body.code).toBe('record_archived')
  })

  test('what eight merge at once into one contact all arrives', async () => {
    const survivor = await contacts.create({ lastName: 'Everybody' })
    const others = await Promise.all(
      Array.from({ length: 8 }, (_, n) => contacts.create({ lastName: `Part ${n}`, tags: [`tag-${n}`] })),
    )
    const answers = await Promise.all(
      others.map((other) =>
        contacts.as(owner(), 'ContactsMerge', {
          recordId: survivor.recordId,
          body: { otherRecordId: other.recordId },
        }),
      ),
    )
    expect(answers.map((answer) => answer.status)).toEqual(others.map(() => 200))
    const tags = (await get(survivor.recordId))['tags'] as string[]
    expect(tags.toSorted()).toEqual(others.map((_, n) => `tag-${n}`))
    expect(await contacts.ids({ search: 'part' })).toEqual([])
  })
})

interface Happening {
  readonly kind: string
  readonly objectKey: string
  readonly recordId: string
  readonly displayName: string | null
  readonly operation: string
  readonly changedFields: readonly string[]
}

describe('the timeline', () => {
  test('tells what happened to a contact across modules, newest first, page by page, as far as the caller may see', async () => {
    const { recordId } = await contacts.create({ lastName: 'Timely' })
    const task = await contacts.create({ title: 'Call', contactId: recordId }, 'Tasks')
    await contacts.as(owner(), 'ContactsUpdate', { recordId, body: { jobTitle: 'Clerk', notes: 'Secret' } })
    const ticket = await contacts.create({ subject: 'Broken', contactId: recordId }, 'Tickets')
    const visits = contacts.records(owner(), 'visit')
    const visit = (await visits.create({ fields: { name: 'At the fair', contact: recordId } })).body
    const timeline = (credential = owner(), query = {}) =>
      contacts.as<List<Happening>>(credential, 'ContactsGetTimeline', { recordId, query })
    const all = (await timeline()).body
    expect(all.items.map(({ kind, objectKey, recordId: id }) => [kind, objectKey, id])).toEqual([
      ['record', 'visit', visit.recordId],
      ['record', 'tickets', ticket.recordId],
      ['change', 'contacts', recordId],
      ['record', 'tasks', task.recordId],
      ['change', 'contacts', recordId],
    ])
    expect(all.items[1]).toMatchObject({ displayName: 'Broken', operation: 'created' })
    expect(all.items[2]!.changedFields.toSorted()).toEqual(['jobTitle', 'notes'])

    const walked: Happening[] = []
    let cursor: string | null = null
    do {
      const page: List<Happening> = (await timeline(owner(), { pageSize: '2', ...(cursor && { cursor }) })).body
      walked.push(...page.items)
      cursor = page.nextCursor
    } while (cursor)
    expect(walked).toEqual(all.items)

    const { clerk, outsider } = contacts.organization.users
    const seen = (await timeline(clerk)).body.items
    expect(seen.map((item) => [item.kind, item.changedFields])).toEqual([
      ['change', ['jobTitle']],
      ['change', []],
    ])
    expect((await timeline(outsider)).body).toMatchObject({ code: 'object_not_found' })
    expect((await timeline(contacts.organizations.b.users.owner)).body).toMatchObject({ code: 'record_not_found' })
  })

  test('holds what happened to contacts that were merged into it', async () => {
    const { recordId } = await contacts.create({ lastName: 'Whole' })
    const part = await contacts.create({ lastName: 'Half' })
    await contacts.as(owner(), 'ContactsMerge', { recordId, body: { otherRecordId: part.recordId } })
    const { items } = (await contacts.as<List<Happening>>(owner(), 'ContactsGetTimeline', { recordId })).body
    expect(items.filter((item) => item.recordId === part.recordId).map((item) => item.operation)).toEqual([
      'archived',
      'created',
    ])
  })
})
