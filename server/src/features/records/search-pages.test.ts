import { afterAll, beforeAll, expect, test } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { type Deals, startDeals } from '../../../test/support/deals.ts'
import { searchAll } from '../../../test/support/record-service.ts'

/**
 * Pages of words that many records hold, few, or only those that come last: more records than a search goes through to learn
 * how many hold the words, so that each of its ways is gone. What is found is held against the same list without words.
 */
let deals: Deals
const count = 1400

const words: Readonly<Record<string, (n: number) => boolean>> = {
  every: () => true,
  seventh: (n) => n % 7 === 0,
  fortieth: (n) => n % 41 === 0,
  earliest: (n) => n < 60,
  latest: (n) => n >= count - 60,
  third: (n) => n < 30 || n >= count - 30,
}
const nameOf = (n: number) => [...Object.keys(words).filter((word) => words[word]!(n)), `no${n}`].join(' ')

beforeAll(async () => {
  deals = await startDeals()
  const { dataRoles, locations, users } = deals.organization
  const placements = [
    {},
    { dataRoleId: dataRoles['sales'], locationId: locations['north'] },
    { dataRoleId: dataRoles['sales'], locationId: locations['south'] },
    { ownerUserId: users.sales.userId },
    { ownerUserId: users.owner.userId, participants: [users.sales.userId] },
  ]
  for (let from = 0; from < count; from += 200) {
    const items = Array.from({ length: 200 }, (_, n) => ({
      operation: 'create',
      fields: { name: nameOf(from + n), stage: n % 3 === 0 ? 'open' : 'won' },
      ...placements[n % placements.length],
    }))
    expect((await deals.owner.batch(items)).status).toBe(200)
  }
}, 60_000)
afterAll(() => deals?.close())

const filter = { field: 'stage', op: 'eq', value: 'won' }

test.each([
  ['owner', 'created_desc', {}],
  ['owner', 'created_asc', { filter }],
  ['owner', 'created_asc', {}],
  ['owner', 'updated_desc', {}],
  ['sales', 'created_desc', { filter }],
  ['sales', 'created_asc', {}],
  ['sales', 'updated_asc', {}],
  ['clerk', 'created_desc', {}],
] as const)('%s finds in the order %s what the list holds (%j)', async (name, sort, more) => {
  const client = deals[name]
  const { records: all } = await searchAll(client, { sort, ...more })
  for (const word of Object.keys(words)) {
    const wanted = all.filter(({ displayName }) => displayName!.split(' ').includes(word)).map((one) => one.recordId)
    expect([name, word, wanted.length > 0]).toEqual([name, word, true])
    const { records } = await searchAll(client, { sort, ...more, search: word })
    expect([word, ...records.map((one) => one.recordId)]).toEqual([word, ...wanted])
    for (const page of [1, 2, 5, 40, 600]) {
      const { body } = await client.search({ sort, ...more, search: word, page, pageSize: 20 })
      expect([word, page, ...body.records.map((one) => one.recordId)]).toEqual([
        word,
        page,
        ...wanted.slice(20 * (page - 1), 20 * page),
      ])
      expect([word, page, body.hasMore]).toEqual([word, page, wanted.length > 20 * page])
    }
  }
})

test('records of another organization hold no words, whoever knows their ids', async () => {
  const { records } = await searchAll(deals.owner, { search: 'earliest' })
  const { a, b } = deals.organizations
  await asAdministrator(deals.running.db.connection, async (admin) => {
    const object = "(SELECT object_id FROM portico.object_definition WHERE object_key = 'deal')"
    const held = async (organizationId: string) => {
      await admin.query('BEGIN')
      const { rows } = await admin.query(`SELECT ${object} AS id`)
      await admin.query('SET LOCAL ROLE portico_app')
      await admin.query(`SELECT set_config('portico.organization_id', $1, true)`, [organizationId])
      const { rows: found } = await admin.query(
        `SELECT cardinality(portico.search_among($1, $2, $3, '{%earliest%}', NULL, NULL, 1000)) AS among,
          (SELECT count(*) FROM portico.search_in_order(json_populate_record(NULL::portico.search_question, json_build_object(
            'organization', $1::uuid, 'objects', ARRAY[$2::uuid], 'tags', ARRAY[NULL], 'patterns', ARRAY['%earliest%'])),
            true, NULL, NULL, 0, 1000))::int AS "inOrder"`,
        [a.organizationId, rows[0].id, records.map((one) => one.recordId)],
      )
      await admin.query('ROLLBACK')
      return found[0]
    }
    expect(await held(a.organizationId)).toEqual({ among: 60, inOrder: 60 })
    expect(await held(b.organizationId)).toEqual({ among: 0, inOrder: 0 })
  })
})
