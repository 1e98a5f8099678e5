import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import type { RecordClient } from '../../../test/support/record-service.ts'
import { type Search, startSearch } from './testing.ts'

let search: Search
let vessels: RecordClient
const ids = new Map<string, string>()

const texts: Readonly<Record<string, object>> = {
  exact: { name: 'Aurora', log: 'Built in Gdańsk.' },
  prefix: { name: 'Aurora Borealis' },
  word: { name: 'MS Aurora' },
  part: { name: 'Preaurora' },
  log: {
    name: 'Tern',
    log: `${'A calm night. '.repeat(30)}The crew saw the Aurôra   over the bow, and ${'then slept. '.repeat(30)}`,
  },
  secret: { name: 'Heron', secret: 'aurora' },
  radio: { name: 'Gull', radio: '+44 20 7946 0958' },
  wild: { name: '100% sure_thing', log: 'C:\\temp "quoted" o\'neil' },
  emoji: { name: 'Party 🎉 ship' },
  rtl: { name: 'سفينة النجاة' },
}

beforeAll(async () => {
  search = await startSearch()
  vessels = search.records(owner(), 'vessel')
  for (const [key, fields] of Object.entries(texts)) {
    const { status, body } = await vessels.create({ fields })
    expect([key, status]).toEqual([key, 201])
    ids.set(key, body.recordId)
  }
  const contact = await search.records(owner(), 'contacts').create({
    fields: {
      firstName: 'Grace',
      lastName: 'Hopper',
      companyName: 'Navy',
      phones: [{ number: '+43 1 234 56 78' }, { number: '+1 202 555 0143 x12' }],
      emails: [{ address: 'Grace@Navy.example' }, { address: 'second@navy.example' }],
    },
  })
  expect(contact.status, JSON.stringify(contact.body)).toBe(201)
  ids.set('grace', contact.body.recordId)
  await search
    .records(owner(), 'safe')
    .create({ fields: { name: 'Aurora vault' } })
    .then(({ body }) => ids.set('safe', body.recordId))
  // The same words in another organization.
  await search.records(search.organizations.b.users.owner, 'vessel').create({ fields: { name: 'Aurora' } })
})
afterAll(() => search?.close())

const owner = () => search.organizations.a.users.owner
const users = () => search.organizations.a.users
const keyOf = (recordId: string) => [...ids].find(([, id]) => id === recordId)?.[0] ?? recordId

async function found(query: string, credential = owner(), more: object = {}): Promise<string[]> {
  const { status, body } = await search.list(credential, { query, includeTotal: true, ...more })
  expect(status, JSON.stringify(body)).toBe(200)
  const { body: counted } = await search.count(credential, { query, ...more })
  expect([query, body.totalRecords, counted.totalRecords]).toEqual([query, body.items.length, body.items.length])
  expect(body.totalIsExact).toBe(true)
  return body.items.map(({ recordId }) => keyOf(recordId))
}

test('titles come first: exact, beginning, words, parts; then what the words are elsewhere in', async () => {
  const hits = await found('aurora')
  expect([hits[0], hits.slice(1, 3).sort(), hits[3], hits[4], hits.slice(5).sort()]).toEqual([
    'exact',
    ['prefix', 'safe'],
    'word',
    'part',
    ['log', 'secret'],
  ])
  const { body } = await search.list(owner(), { query: 'aurora' })
  expect(body.items.map(({ score }) => score)).toEqual([1, 0.9, 0.9, 0.8, 0.7, 0.5, 0.5])
})

test.each([
  ['%', ['wild']],
  ['_', ['wild']],
  ['c:\\temp', ['wild']],
  ['"quoted"', ['wild']],
  ["o'neil", ['wild']],
  ['🎉', ['emoji']],
  ['النجاة', ['rtl']],
  ['GDANSK aurora', ['exact']],
  ['second@navy', ['grace']],
  ['grace hopper', ['grace']],
])('%j finds %j', async (query, wanted) => {
  expect(await found(query)).toEqual(wanted)
})

test.each(['+44 20 7946 0958', '020 7946 0958', '0044 20 79460958', '+44 (0)20 7946 0958', '79460958', '7946-0958'])(
  'a telephone number is found as %s',
  async (query) => {
    expect(await found(query)).toEqual(['radio'])
    const { body } = await vessels.search({ search: query })
    expect(body.records.map(({ recordId }) => keyOf(recordId))).toEqual(['radio'])
  },
)

test.each(['+4312345678', '01 2345678', '2345678', '202 555 0143', '(202) 555-0143'])(
  'so is a number in a list: %s',
  async (query) => {
    expect(await found(query)).toEqual(['grace'])
  },
)

test('words and numbers in fields that the caller may not read find nothing', async () => {
  expect(await found('aurora', users().captain)).toContain('secret')
  expect(await found('aurora', users().crew)).not.toContain('secret')
  expect(await found('aurora', users().crew)).not.toContain('safe')
  expect(await found('555 0143', users().captain)).toEqual(['grace'])
  expect(await found('555 0143', users().crew)).toEqual([])
  expect(await found('second@navy', users().crew)).toEqual(['grace'])
  const { body } = await search.list(users().crew, { query: 'heron' })
  expect(JSON.stringify(body)).not.toContain('aurora')
})

test('a snippet shows the words as they are written, in at most 160 characters', async () => {
  const { body } = await search.list(owner(), { query: 'aurora' })
  const bySnippet = new Map(body.items.map(({ recordId, snippet }) => [keyOf(recordId), snippet]))
  expect(bySnippet.get('log')).toMatch(/^… .*saw the Aurôra over the bow.* …$/)
  expect(bySnippet.get('log')!.length).toBeLessThanOrEqual(160)
  expect(bySnippet.get('exact')).toBeNull()
  const { body: phone } = await search.list(owner(), { query: '020 7946 0958' })
  expect(phone.items[0]!.snippet).toBe('+44 20 7946 0958')
})

test('a misspelt name finds similar ones, and only where nothing is spelt so', async () => {
  expect(await found('Hoper Grce')).toEqual(['grace'])
  expect(await found('auroar')).toContain('exact')
  expect(await found('xqzwv')).toEqual([])
  expect(await found('auroar', users().outsider)).toEqual([])
})

test('what somebody types is completed', async () => {
  const titles = async (query: string, limit = 10) => {
    const { status, body } = await search.suggest(owner(), { query, limit })
    expect(status).toBe(200)
    return body.items.map(({ title }) => title)
  }
  expect((await titles('auro')).slice(0, 3)).toEqual(['Aurora', 'Aurora Borealis', 'Aurora vault'])
  expect(await titles('a', 1)).toEqual(['Aurora'])
  expect(await titles('boreals')).toEqual(['Aurora Borealis'])
  expect(await titles('gdansk')).toEqual([])
  expect(await titles('')).toEqual([])
  expect((await search.suggest(owner(), { query: 'a', limit: 11 })).status).toBe(400)
})

test('the records that changed last come first, and tell whether the caller changed them', async () => {
  await search.records(users().captain, 'vessel').update(ids.get('word')!, { fields: { log: 'Moved.' } })
  const { body } = await search.recent(users().captain, { limit: 3 })
  expect(body.items.map(({ recordId, changedByCaller }) => [keyOf(recordId), changedByCaller])[0]).toEqual([
    'word',
    true,
  ])
  expect(body.items).toHaveLength(3)
  const { body: all } = await search.list(owner(), { pageSize: 200, includeTotal: true })
  expect(all.totalRecords).toBe(ids.size)
  expect(all.items.map(({ recordId }) => recordId).sort()).toEqual([...ids.values()].sort())
  expect((await search.recent(users().outsider)).body.items).toEqual([])
})

test('a count that is not finished is an error, never zero', async () => {
  const { connection } = search.running.db
  await asAdministrator(connection, async (admin) => {
    for (const ask of [search.count, search.list]) {
      await admin.query('BEGIN')
      await admin.query('LOCK TABLE portico.search_document')
      const includeTotal = ask === search.list ? { includeTotal: true, pageNumber: 5000 } : {}
      const answer = ask(owner(), { query: 'aurora', ...includeTotal })
      // What runs out of time is ended as this is.
      const cancel = `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`
      while ((await admin.query(cancel)).rowCount === 0) {
        await pause(10)
        // A transaction sees the activity of the moment when it first asked, until it is told to look again.
        await admin.query('SELECT pg_stat_clear_snapshot()')
      }
      await admin.query('ROLLBACK')
      const { status, body } = await answer
      expect([status, (body as { code?: string }).code]).toEqual([503, 'count_unavailable'])
    }
  })
})

describe('arguments', () => {
  test('modules and objects narrow; unknown ones are named', async () => {
    expect(await found('aurora', owner(), { moduleKey: ['safe'] })).toEqual(['safe'])
    expect(await found('navy', owner(), { moduleKey: ['contacts', 'vessel'] })).toEqual(['grace'])
    for (const [credential, key] of [
      [owner(), 'unicorn'],
      [owner(), '__proto__'],
      [users().crew, 'safe'],
    ] as const) {
      const { status, body } = await search.list(credential, { query: 'x', moduleKey: ['vessel', key] })
      expect([status, body.code, body.details?.[0]?.field]).toEqual([400, 'validation_failed', 'moduleKey[1]'])
    }
  })

  test('pages stay within the window', async () => {
    const first = await search.list(owner(), { query: 'aurora', pageSize: 3 })
    expect(first.body).toMatchObject({ hasMore: true, totalRecords: 3, totalIsExact: false, browseLimit: 5000 })
    const third = await search.list(owner(), { query: 'aurora', pageSize: 3, pageNumber: 3, includeTotal: true })
    expect(third.body).toMatchObject({ hasMore: false, totalRecords: 7, totalIsExact: true })
    expect(third.body.items).toHaveLength(1)
    const past = await search.list(owner(), { query: 'aurora', pageSize: 200, pageNumber: 26 })
    expect(past.body).toMatchObject({ items: [], hasMore: false })
    const tooLarge = await search.list(owner(), { query: 'aurora', pageSize: 201 })
    expect([tooLarge.status, tooLarge.body.code]).toEqual([400, 'page_size_exceeded'])
    for (const bad of [
      { includeTotal: 'maybe' },
      { pageNumber: 0 },
      { query: '\0' },
      { locationId: 'north' },
      { page: 1 },
    ]) {
      expect((await search.list(owner(), bad)).status, JSON.stringify(bad)).toBe(400)
    }
    expect((await search.count(owner(), { pageSize: 5 })).body.code).toBe('unknown_field')
  })

  test('what folds to nothing finds nothing; too many words are refused', async () => {
    for (const query of ['\u0301', '\ue000', '\u{f0001}', '\u001f']) expect(await found(query)).toEqual([])
    const many = Array.from({ length: 17 }, (_, n) => `w${n}`).join(' ')
    expect((await search.list(owner(), { query: many })).body.details?.[0]?.field).toBe('query')
  })
})
