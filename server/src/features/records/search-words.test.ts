import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Deals, startDeals } from '../../../test/support/deals.ts'
import { searchAll } from '../../../test/support/record-service.ts'
import { patienceMs, runs, sample, seed } from '../../../test/support/seed.ts'

/** What `search` finds: words in searchable fields, by part, without accents and case. */
let deals: Deals
const ids = new Map<string, string>()

const texts: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  river: { name: 'Blue River Logistics', notes: 'Called on Monday; wants an offer.', code: 'BR-1042' },
  cafe: { name: 'Café Zürich', notes: 'Crème brûlée, naïve résumé' },
  composed: { name: 're\u0301sume\u0301 of Ångström', notes: 'Æon œuvre straße' },
  turkish: { name: 'İSTANBUL ılık', notes: 'IĞDIR' },
  greek: { name: 'ΟΔΥΣΣΕΥΣ', notes: 'Η οδός του Οδυσσέα' },
  cjk: { name: '東京タワー', notes: 'ﾃｽﾄ １２３' },
  wild: { name: '100% sure_thing', notes: 'C:\\temp\\x "quoted" o\'neil; DROP TABLE--' },
  sharp: { name: '100 sure thing', notes: 'C:temp' },
  lost: { name: 'Lost one', stage: 'lost' },
  won: { name: 'Open one', stage: 'won' },
  hidden: { name: 'Plain', secret: 'zanzibar monday' },
  mail: { name: 'Mail', contact: 'Ada.Lovelace@Example.COM' },
  emoji: { name: 'Party 🎉👩\u200d👧 time', notes: 'x\u001fy\ue000z' },
  long: { name: 'Long', notes: `${'lorem ipsum '.repeat(5000)}needle` },
}

beforeAll(async () => {
  deals = await startDeals()
  for (const [key, fields] of Object.entries(texts)) {
    const { status, body } = await deals.owner.create({ fields })
    expect([key, status]).toEqual([key, 201])
    ids.set(key, body.recordId)
  }
  // The same words elsewhere: in another object, and in another organization.
  await deals.companies.create({ fields: { name: 'Blue River Monday' } })
  await deals.stranger.create({ fields: { name: 'Blue River Monday' } })
})
afterAll(() => deals?.close())

async function found(search: string, client = deals.owner, more: object = {}): Promise<string[]> {
  const { records, total } = await searchAll(client, { search, ...more })
  const { body } = await client.count({ search, ...more })
  expect([search, total, body.totalRecords]).toEqual([search, records.length, records.length])
  const keys = new Map([...ids].map(([key, id]) => [id, key]))
  return records.map((record) => keys.get(record.recordId) ?? `? ${record.displayName}`).sort()
}

test.each([
  // Parts of words, in any case and any order, across fields.
  ['river', ['river']],
  ['RIVER', ['river']],
  ['iver', ['river']],
  ['logis blue', ['river']],
  ['monday blue br-10', ['river']],
  ['  blue \t\n river  ', ['river']],
  ['blue blue blue', ['river']],
  ['blue zurich', []],
  ['riverlogistics', []],
  ['er lo', ['river']],
  // Accents, composed or not; ligatures and widths.
  ['cafe zurich', ['cafe']],
  ['CAFÉ', ['cafe']],
  ['creme brulee', ['cafe']],
  ['resume', ['cafe', 'composed']],
  ['résumé', ['cafe', 'composed']],
  ['re\u0301sume\u0301', ['cafe', 'composed']],
  ['angstrom', ['composed']],
  ['123', ['cjk']],
  ['１２３', ['cjk']],
  ['テスト', ['cjk']],
  ['京タ', ['cjk']],
  // Letters that are no accents are letters.
  ['strasse', []],
  ['straße', ['composed']],
  ['STRA\u1e9eE', ['composed']],
  ['istanbul', ['turkish']],
  ['İstanbul', ['turkish']],
  ['ılık', ['turkish']],
  ['ilik', []],
  ['igdir', ['turkish']],
  ['οδυσσευς', ['greek']],
  ['ΟΔΥΣΣΕ', ['greek']],
  ['ΟΔΟΣ', ['greek']],
  ['οδοσ', ['greek']],
  ['ΔΥΣ', ['greek']],
  // What LIKE and SQL would read otherwise is text.
  ['%', ['lost', 'wild']],
  ['_', ['lost', 'wild']],
  ['100%', ['lost', 'wild']],
  ['sure_thing', ['wild']],
  ['c:\\temp', ['wild']],
  ['\\', ['wild']],
  ["o'neil", ['wild']],
  ['"quoted"', ['wild']],
  ['drop table--', ['wild']],
  ['{monday}', []],
  // People search for what they see: the label of an option, not its value.
  ['closed well', ['won']],
  ['won', []],
  ['lost_', ['lost']],
  // One letter, two letters, and a word at the end of a long text.
  ['é', 'all with an e'],
  ['ΰ', ['greek']],
  ['br', ['cafe', 'river']],
  ['ℨ', ['cafe', 'hidden', 'emoji']],
  ['needle lorem', ['long']],
  // Mail, emoji, and characters that structure a document.
  ['lovelace@example', ['mail']],
  ['🎉', ['emoji']],
  ['🎉👩', ['emoji']],
  ['x yz', ['emoji']],
  ['zanzibar', ['hidden']],
] as const)('%j finds %j', async (search, wanted) => {
  if (typeof wanted === 'string') return expect((await found(search)).length).toBeGreaterThan(5)
  expect(await found(search)).toEqual([...wanted].sort())
})

test('nothing but blanks searches for nothing; what folds to nothing finds nothing', async () => {
  expect(await found('')).toHaveLength(ids.size)
  expect(await found(' \n ')).toHaveLength(ids.size)
  for (const search of ['\u0301', '\u001f', '\ue000', '\u0007 \u0301']) expect(await found(search)).toEqual([])
  const sixteen = Array.from({ length: 16 }, (_, n) => `w${n}`).join(' ')
  expect(await found(`${sixteen} w0 W1 w15`)).toEqual([])
  const seventeen = await deals.owner.count({ search: `${sixteen} w16` })
  expect([seventeen.body.code, seventeen.body.details?.[0]?.field]).toEqual(['validation_failed', 'search'])
  for (const search of ['x'.repeat(501), '\u0000', '\ud800', 5, null]) {
    expect((await deals.owner.search({ search })).body.code).toBe('validation_failed')
  }
})

test('words narrow what a filter finds, and are ordered like everything else', async () => {
  const filter = { field: 'stage', op: 'isNotNull' }
  expect(await found('one', deals.owner, { filter })).toEqual(['lost', 'won'])
  expect(await found('one', deals.owner, { filter: { not: filter } })).toEqual([])
  const { body } = await deals.owner.search({ search: 'one', sort: 'name_desc', pageSize: 1 })
  expect(body.records.map((record) => record.displayName)).toEqual(['Open one'])
  const next = await deals.owner.search({ search: 'one', sort: 'name_desc', pageSize: 1, cursor: body.nextCursor })
  expect(next.body.records.map((record) => record.displayName)).toEqual(['Lost one'])
})

test('words of a field that the caller may not read find nothing', async () => {
  expect(await found('zanzibar')).toEqual(['hidden'])
  expect(await found('plain zanzibar')).toEqual(['hidden'])
  expect(await found('zanzibar', deals.clerk)).toEqual([])
  expect(await found('plain zanzibar', deals.clerk)).toEqual([])
  expect(await found('plain', deals.clerk)).toEqual(['hidden'])
  // A word that other records have where the clerk reads it finds those, and not this one.
  expect(await found('monday')).toEqual(['hidden', 'river'])
  expect(await found('monday', deals.clerk)).toEqual(['river'])
  expect(await found('monday blue', deals.clerk)).toEqual(['river'])
})

test('records that the caller does not see are not found', async () => {
  const { users } = deals.organization
  const { body } = await deals.owner.create({ fields: { name: 'Xylophone' }, ownerUserId: users.owner.userId })
  ids.set('private', body.recordId)
  expect(await found('xylophone')).toEqual(['private'])
  expect(await found('xylophone', deals.sales)).toEqual([])
  expect(await found('xylophone', deals.stranger)).toEqual([])
  await deals.owner.update(body.recordId, { participants: [users.sales.userId] })
  expect(await found('xylophone', deals.sales)).toEqual(['private'])
})

test('the words follow every change of the record', async () => {
  const { body } = await deals.owner.create({ fields: { name: 'Quokka' } })
  const { recordId } = body
  ids.set('moving', recordId)
  const change = (fields: object) => deals.owner.update(recordId, { fields })
  expect(await found('quokka')).toEqual(['moving'])
  await change({ name: 'Wombat', notes: 'of Perth', stage: 'won' })
  expect([await found('quokka'), await found('wombat perth closed')]).toEqual([[], ['moving']])
  // A change of something else leaves them.
  await change({ amount: '1' })
  expect(await found('wombat perth')).toEqual(['moving'])
  await change({ notes: null, stage: null })
  expect([await found('perth'), await found('wombat')]).toEqual([[], ['moving']])
  // No text at all, and text again.
  await change({ name: '' })
  expect(await found('wombat')).toEqual([])
  await change({ name: 'Numbat' })
  expect(await found('numbat')).toEqual(['moving'])

  await deals.owner.archive(recordId)
  expect([await found('numbat'), await found('numbat', deals.owner, { includeArchived: true })]).toEqual([[], []])
  await deals.owner.restore(recordId)
  expect(await found('numbat')).toEqual(['moving'])
  const { body: again } = await deals.owner.batch([
    { operation: 'archive', recordId },
    { operation: 'create', fields: { name: 'Numbat two' } },
    { operation: 'update', recordId: ids.get('river'), fields: { code: 'Numbat three' } },
  ])
  ids.set('two', again.results[1]!.record!.recordId)
  expect(await found('numbat')).toEqual(['river', 'two'])
})

const letters = [
  ...'abB eEéσςΣİıß%_\\',
  'e\u0301',
  '\u00a0',
  '\n',
  '\u001f',
  '\ue000',
  '\ue001',
  '漢',
  '😀',
  'ﬁ',
  '\u00ad',
]
const shown = { owner: ['name', 'notes', 'code'], clerk: ['name', 'notes'] } as const

/** The same said plainly: what is compared of a text. */
function plain(text: string): string {
  const kept = [...text.normalize('NFKD')].filter((letter) => !/[\p{M}\p{Co}\p{Cn}]/u.test(letter))
  return kept.join('').toLowerCase().replaceAll('ς', 'σ')
}

const wordsOf = (text: string) =>
  plain(text)
    .split(/[\s\p{Cc}]+/u)
    .filter((word) => word !== '')

test(
  `finds what holds every word somewhere (PORTICO_TEST_SEED=${seed})`,
  async () => {
    const text = fc.string({ unit: fc.constantFrom(...letters), maxLength: 12 })
    // The code takes the place of the secret: the clerk does not read it, so its words are not the clerk's.
    const drafts = sample(fc.record({ name: text, notes: text, code: text }), 80)
    const made = await deals.stranger.batch(
      drafts.map(({ name, notes, code }) => ({ operation: 'create', fields: { name, notes, secret: code } })),
    )
    const planted = made.body.results.map((result) => result.record!.recordId)
    const { clerk: strangeClerk } = deals.organizations.b.users
    const askers = { owner: deals.stranger, clerk: deals.records(strangeClerk, 'deal') }
    const piece = fc.tuple(fc.constantFrom(...drafts.flatMap((draft) => Object.values(draft))), fc.nat(12), fc.nat(12))
    const pieces = fc.array(
      piece.map(([whole, a, b]) => [...whole].slice(Math.min(a, b), Math.max(a, b)).join('')),
      {
        minLength: 1,
        maxLength: 3,
      },
    )
    const questions = fc.record({
      asker: fc.constantFrom('owner', 'clerk'),
      search: pieces.map((list) => list.join(' ')),
    })
    await fc.assert(
      fc.asyncProperty(questions, async ({ asker, search }) => {
        fc.pre(search.trim() !== '')
        const words = wordsOf(search)
        const wanted = planted.filter((_, index) => {
          const texts = shown[asker].map((key) => plain(drafts[index]![key]))
          return words.length > 0 && words.every((word) => texts.some((each) => each.includes(word)))
        })
        const { records } = await searchAll(askers[asker], {
          search,
          filter: { field: 'recordId', op: 'in', value: planted },
        })
        expect(records.map((record) => record.recordId).sort()).toEqual(wanted.sort())
      }),
      runs(200),
    )
  },
  patienceMs,
)
