import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ErrorBody, ErrorCode } from '../src/kernel/errors.ts'
import { uuidv7 } from '../src/kernel/ids.ts'
import type { RecordView } from '../src/shared/records/record.ts'
import { writesNothing } from './support/footprint.ts'
import type { Answer, Sent } from './support/http-client.ts'
import { startTestService, type TestService } from './support/service.ts'

/** Requests that are wrong in every way that a client has: each is refused by name, never with a fault, and writes nothing. */
interface Page {
  readonly records: readonly RecordView[]
  readonly nextCursor: string | null
  readonly hasMore: boolean
}

let service: TestService
let token: string
let companies: readonly RecordView[]
let recordId: string

beforeAll(async () => {
  service = await startTestService()
  token = service.app.organizations.a.credentials.live.token
  const items = ['Ada', 'Bert', 'Cleo', 'Dora', 'Emil'].map((name) => ({ operation: 'create', fields: { name } }))
  const { json } = await ask<{ results: { record: RecordView }[] }>('POST', `${path}:batch`, { body: { items } })
  companies = json.results.map((result) => result.record)
  recordId = companies[0]!.recordId
})
afterAll(() => service.stop())

const path = '/objects/company/records'

function ask<T = Readonly<Record<string, unknown>>>(method: string, at: string, sent: Sent = {}): Promise<Answer<T>> {
  return service.call<T>(method, `/v1/apps/${service.app.appId}${at}`, { token, ...sent })
}

const search = (body: unknown) => ask<Page>('POST', `${path}/search`, { body })

type Refusal = { readonly status: number; readonly json: Partial<ErrorBody> }

/** Status, code and where. */
function refusalOf({ status, json }: Refusal): [number, string | undefined, string | undefined] {
  return [status, json.code, json.details?.[0]?.field]
}

type Case = readonly [part: unknown, code: ErrorCode, field: string]

async function expectRefusals(cases: readonly Case[], request: (part: unknown) => Promise<Refusal>) {
  await writesNothing(service, async () => {
    for (const [part, code, field] of cases) {
      const shown = JSON.stringify(part)?.slice(0, 200)
      const [status, ...rest] = refusalOf(await request(part))
      expect([shown, Math.floor(status / 100), ...rest]).toEqual([shown, 4, code, field])
    }
  })
}

const leaf = { field: 'name', op: 'eq', value: 'Ada' }
const nested = (levels: number): unknown => (levels === 0 ? leaf : { not: nested(levels - 1) })
const wide = (count: number, item: unknown = leaf) => Array.from({ length: count }, () => item)

const badFilters: readonly Case[] = [
  [null, 'validation_failed', 'filter'],
  [[], 'validation_failed', 'filter'],
  ['name', 'validation_failed', 'filter'],
  [7, 'validation_failed', 'filter'],
  [{}, 'unknown_field', 'filter.field'],
  [{ and: [] }, 'filter_invalid', 'filter.and'],
  [{ or: {} }, 'filter_invalid', 'filter.or'],
  [{ or: leaf }, 'filter_invalid', 'filter.or'],
  [{ and: null }, 'filter_invalid', 'filter.and'],
  [{ and: [null] }, 'filter_invalid', 'filter.and[0]'],
  [{ and: [leaf, []] }, 'filter_invalid', 'filter.and[1]'],
  [{ and: [leaf], or: [leaf] }, 'filter_invalid', 'filter.or'],
  [{ and: [leaf], field: 'name' }, 'filter_invalid', 'filter.field'],
  [{ AND: [leaf] }, 'filter_invalid', 'filter.AND'],
  [{ not: null }, 'filter_invalid', 'filter.not'],
  [{ not: [leaf] }, 'filter_invalid', 'filter.not'],
  [{ not: leaf, op: 'eq' }, 'filter_invalid', 'filter.op'],
  [{ ...leaf, extra: 1 }, 'filter_invalid', 'filter.extra'],
  [{ ...leaf, some: leaf }, 'filter_invalid', 'filter.some'],
  [{ op: 'eq', value: 'x' }, 'unknown_field', 'filter.field'],
  [{ ...leaf, field: ['name'] }, 'unknown_field', 'filter.field'],
  [{ ...leaf, field: 'Name' }, 'unknown_field', 'filter.field'],
  [{ ...leaf, field: 'f_name' }, 'unknown_field', 'filter.field'],
  [{ ...leaf, field: 'organization_id' }, 'unknown_field', 'filter.field'],
  [{ ...leaf, field: 'organizationId' }, 'unknown_field', 'filter.field'],
  [{ ...leaf, field: 'name"' }, 'unknown_field', 'filter.field'],
  [{ field: 'name', value: 'x' }, 'filter_invalid', 'filter.op'],
  [{ ...leaf, op: 'EQ' }, 'filter_invalid', 'filter.op'],
  [{ ...leaf, op: '=' }, 'filter_invalid', 'filter.op'],
  [{ ...leaf, op: ['eq'] }, 'filter_invalid', 'filter.op'],
  [{ ...leaf, op: 'containsAny', value: ['x'] }, 'filter_invalid', 'filter.op'],
  [{ field: 'employees', op: 'contains', value: '1' }, 'filter_invalid', 'filter.op'],
  [{ field: 'recordId', op: 'lt', value: uuidv7(0) }, 'filter_invalid', 'filter.op'],
  [{ field: 'name', op: 'eq' }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, value: null }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, value: 7 }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, value: ['Ada'] }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, value: { eq: 'Ada' } }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, value: 'x'.repeat(100_001) }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, op: 'isNull' }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, op: 'isNull', value: null }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, op: 'in' }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, op: 'in', value: { 0: 'Ada', length: 1 } }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, op: 'in', value: wide(201, 'x') }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, op: 'notIn', value: ['x', null] }, 'filter_invalid', 'filter.value[1]'],
  [{ ...leaf, op: 'between', value: ['a'] }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, op: 'between', value: ['a', 'b', 'c'] }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, op: 'between', value: ['a', 5] }, 'filter_invalid', 'filter.value[1]'],
  [{ ...leaf, op: 'contains', value: '' }, 'filter_invalid', 'filter.value'],
  [{ ...leaf, op: 'contains', value: 'x'.repeat(1001) }, 'filter_invalid', 'filter.value'],
  [{ field: 'employees', op: 'eq', value: '1.5' }, 'filter_invalid', 'filter.value'],
  [{ field: 'employees', op: 'gt', value: '9223372036854775808' }, 'filter_invalid', 'filter.value'],
  [{ field: 'employees', op: 'in', value: [1, 2, 'three'] }, 'filter_invalid', 'filter.value[2]'],
  [{ field: 'createdAt', op: 'lt', value: '2026-02-30T00:00:00Z' }, 'filter_invalid', 'filter.value'],
  [{ field: 'createdAt', op: 'lt', value: '$today' }, 'filter_invalid', 'filter.value'],
  [{ field: 'ownerUserId', op: 'eq', value: 'x' }, 'filter_invalid', 'filter.value'],
  [{ field: 'ownerUserId', op: 'eq', value: '$me' }, 'filter_invalid', 'filter.value'],
  [{ related: 'nothing', some: leaf }, 'unknown_field', 'filter.related'],
  [{ related: 7, some: leaf }, 'unknown_field', 'filter.related'],
  [{ related: 'name', some: leaf }, 'filter_invalid', 'filter.related'],
  [{ related: 'recordId', some: leaf }, 'unknown_field', 'filter.related'],
  [{ related: 'name', every: leaf }, 'filter_invalid', 'filter.every'],
  [nested(5), 'filter_invalid', 'filter.not.not.not.not.not'],
  [{ and: wide(51) }, 'filter_invalid', 'filter.and[50]'],
  [{ and: wide(10, { or: wide(6) }) }, 'filter_invalid', 'filter.and[8].or[2]'],
  [
    { or: [leaf, { and: [{ not: { field: 'nothing', op: 'eq', value: 1 } }] }] },
    'unknown_field',
    'filter.or[1].and[0].not.field',
  ],
]

test('a filter that cannot be read is refused at its position', async () => {
  await expectRefusals(badFilters, (filter) => search({ filter }))
  await expectRefusals(badFilters, (filter) => ask('POST', `${path}/count`, { body: { filter } }))
  const throughDeal: readonly Case[] = [
    [{ related: 'company' }, 'filter_invalid', 'filter.some'],
    [{ related: 'company', some: [] }, 'filter_invalid', 'filter.some'],
    [{ related: 'company', some: { field: 'stage', op: 'eq', value: 'won' } }, 'unknown_field', 'filter.some.field'],
    [{ related: 'company', some: { related: 'company', some: leaf } }, 'filter_invalid', 'filter.some'],
    [{ related: 'company', some: { not: { related: 'x', some: leaf } } }, 'filter_invalid', 'filter.some.not'],
    [{ field: 'stage', op: 'eq', value: 'WON' }, 'filter_invalid', 'filter.value'],
    [{ field: 'stage', op: 'lt', value: 'won' }, 'filter_invalid', 'filter.op'],
    [{ field: 'notes', op: 'lt', value: 'won' }, 'filter_invalid', 'filter.op'],
    [{ field: 'amount', op: 'eq', value: '1e5' }, 'filter_invalid', 'filter.value'],
    [{ field: 'closeDate', op: 'between', value: ['2026-01-01', '2026-02-30'] }, 'filter_invalid', 'filter.value[1]'],
  ]
  await expectRefusals(throughDeal, (filter) => ask('POST', '/objects/deal/records/search', { body: { filter } }))
  // As deep and as wide as may be.
  expect((await search({ filter: nested(4) })).status).toBe(200)
  expect((await search({ filter: { and: wide(10, { or: wide(5) }) } })).status).toBe(200)
  expect((await search({ filter: { or: wide(50, { ...leaf, op: 'in', value: wide(200, 'x') }) } })).status).toBe(200)
})

test('a sort that cannot be read is refused', async () => {
  const wrong = [
    '',
    'name',
    'name_',
    'name_up',
    '_asc',
    'name_ASC',
    'Name_asc',
    'name asc',
    'name_asc;',
    'name_asc,name_desc',
  ]
  const unsortable = [
    'nothing_asc',
    'f_name_asc',
    'ownerUserId_asc',
    'recordId_asc',
    'organization_id_asc',
    'name"_asc',
  ]
  await expectRefusals(
    [
      ...[...wrong, ...unsortable].map((sort): Case => [sort, 'sort_invalid', 'sort']),
      ...[...wrong, ...unsortable].map((sort): Case => [['created_asc', sort], 'sort_invalid', 'sort[1]']),
      ...[null, 7, true, {}, { name: 'asc' }].map((sort): Case => [sort, 'validation_failed', 'sort']),
      [[], 'validation_failed', 'sort'],
      [wide(4, 'name_asc'), 'validation_failed', 'sort'],
      [['name_asc', null], 'validation_failed', 'sort[1]'],
    ],
    (sort) => search({ sort }),
  )
  expect((await search({ sort: ['name_asc', 'name_desc', 'name_asc'] })).status).toBe(200)
})

test('an expansion is named once', async () => {
  const answer = await ask('POST', '/objects/deal/records/search', { body: { expand: ['company', 'company'] } })
  expect([answer.status, answer.json.code, answer.json.details]).toEqual([
    400,
    'validation_failed',
    [{ field: 'expand[1]', code: 'validation_failed', message: 'Name each field once.' }],
  ])
})

test('a page is a number within its limits', async () => {
  const numbers = [0, -1, 1.5, '1', null, true, [1], 1e300, 2 ** 53]
  await expectRefusals(
    [
      ...numbers.map((page): Case => [{ page }, 'validation_failed', 'page']),
      [{ page: 10_000_001 }, 'validation_failed', 'page'],
      ...[0, -1, 1.5, '50', null, true].map((pageSize): Case => [{ pageSize }, 'validation_failed', 'pageSize']),
      ...[201, 5000, 1e300].map((pageSize): Case => [{ pageSize }, 'page_size_exceeded', 'pageSize']),
      [{ page: 1, cursor: 'x' }, 'page_and_cursor', 'cursor'],
      [{ includeTotal: 'yes' }, 'validation_failed', 'includeTotal'],
      [{ includeArchived: 1 }, 'validation_failed', 'includeArchived'],
      [{ fields: 'name' }, 'validation_failed', 'fields'],
      [{ fields: ['name', 'nothing'] }, 'unknown_field', 'fields[1]'],
      [{ fields: wide(301, 'name') }, 'validation_failed', 'fields'],
      [{ expand: ['name'] }, 'validation_failed', 'expand[0]'],
      [{ expand: ['nothing'] }, 'unknown_field', 'expand[0]'],
      [{ search: 'x'.repeat(501) }, 'validation_failed', 'search'],
      [{ search: 7 }, 'validation_failed', 'search'],
      [{ surprise: 1 }, 'unknown_field', 'surprise'],
    ],
    search,
  )
  const last = await search({ page: 10_000_000, pageSize: 200 })
  expect([last.status, last.json.records, last.json.hasMore]).toEqual([200, [], false])
})

describe('a cursor', () => {
  const query = { sort: 'name_asc', pageSize: 2, filter: { field: 'name', op: 'ne', value: 'Nobody' } }
  const cursorOf = async (body: object = query) => (await search(body)).json.nextCursor!

  test('that was changed in any place is refused', async () => {
    const cursor = await cursorOf()
    const bytes = Buffer.from(cursor, 'base64url')
    const flipped = Array.from(bytes, (_, at) => {
      const copy = Buffer.from(bytes)
      copy[at]! ^= 1 << (at % 8)
      return copy.toString('base64url')
    })
    const others = [
      '',
      ' ',
      'x',
      `${cursor}A`,
      `${cursor}=`,
      ` ${cursor}`,
      cursor.slice(1),
      cursor.slice(0, -1),
      `${cursor}${cursor}`,
    ]
    const texts = [
      'null',
      '[]',
      'AAAA',
      'A'.repeat(4000),
      bytes.toString('hex'),
      bytes.toString('base64').concat('=='),
      cursor.toUpperCase(),
    ]
    const cases = [...flipped, ...others, ...texts].map((changed): Case => [changed, 'cursor_invalid', 'cursor'])
    await expectRefusals(cases, (changed) => search({ ...query, cursor: changed }))
    const wrongTypes = [null, 7, [cursor], {}].map((changed): Case => [changed, 'validation_failed', 'cursor'])
    await expectRefusals(wrongTypes, (changed) => search({ ...query, cursor: changed }))
    await expectRefusals(cases.slice(0, 5), (changed) => ask('GET', `${path}/${recordId}/history?cursor=${changed}`))
  })

  test('of another query, object or organization is refused, and of the same query it goes on', async () => {
    const cursor = await cursorOf()
    await expectRefusals(
      [
        { sort: 'name_desc' },
        { sort: ['name_asc', 'created_asc'] },
        { filter: { field: 'name', op: 'ne', value: 'Ada' } },
        { filter: undefined },
        { search: 'a' },
        { includeArchived: true },
      ].map((change): Case => [change, 'cursor_mismatch', 'cursor']),
      (change) => search({ ...query, ...(change as object), cursor }),
    )
    const { b } = service.app.organizations
    const elsewhere = await service.call('POST', `/v1/apps/${service.app.appId}${path}/search`, {
      token: b.credentials.live.token,
      body: { ...query, cursor },
    })
    expect(refusalOf(elsewhere)).toEqual([400, 'cursor_mismatch', 'cursor'])
    const otherObject = await ask('POST', '/objects/deal/records/search', { body: { ...query, cursor } })
    expect(refusalOf(otherObject)).toEqual([400, 'cursor_mismatch', 'cursor'])
    const history = await ask('GET', `${path}/${recordId}/history?cursor=${cursor}`)
    expect(refusalOf(history)).toEqual([400, 'cursor_mismatch', 'cursor'])

    const next = await search({ ...query, pageSize: 3, cursor, fields: [], includeTotal: true })
    expect(next.json.records.map((record) => record.displayName)).toEqual(['Cleo', 'Dora', 'Emil'])
    expect([next.json.hasMore, next.json.nextCursor]).toEqual([false, null])
  })

  test('of another record is refused in its history', async () => {
    const one = companies[1]!.recordId
    for (const name of ['Bert 2', 'Bert']) await ask('PATCH', `${path}/${one}`, { body: { fields: { name } } })
    const { json } = await ask<{ nextCursor: string }>('GET', `${path}/${one}/history?pageSize=1`)
    expect((await ask('GET', `${path}/${one.toUpperCase()}/history?cursor=${json.nextCursor}`)).status).toBe(200)
    const other = await ask('GET', `${path}/${recordId}/history?cursor=${json.nextCursor}`)
    expect(refusalOf(other)).toEqual([400, 'cursor_mismatch', 'cursor'])
    expect(refusalOf(await search({ cursor: json.nextCursor }))).toEqual([400, 'cursor_mismatch', 'cursor'])
  })

  test('leads on whatever values it stands on', async () => {
    const values = ['\u0001'.repeat(2000), '漢'.repeat(2000), `${'😀'.repeat(999)}"\\`, 'İ'.repeat(2000)]
    for (const title of values) {
      const fields = { title, toString: title, site: `https://x.example/?${'\u00ff'.repeat(1000)}` }
      expect((await ask('POST', '/objects/specimen/records', { body: { fields } })).status).toBe(201)
    }
    const found: string[] = []
    let cursor: string | null | undefined
    for (let page = 0; page < 10 && cursor !== null; page++) {
      const body = { sort: ['title_asc', 'toString_desc', 'site_asc'], pageSize: 1, ...(cursor && { cursor }) }
      const answer = await ask<Page>('POST', '/objects/specimen/records/search', { body })
      expect(answer.status, answer.text.slice(0, 300)).toBe(200)
      found.push(...answer.json.records.map((record) => record.fields['title'] as string))
      cursor = answer.json.nextCursor
    }
    expect(found.sort()).toEqual(values.sort())
  })
})

test('the names that JavaScript objects are born with mean nothing', async () => {
  const pollutions = ['__proto__', '\\u005f_proto__', '__\\u0070roto__', '\\u005F\\u005Fproto\\u005f\\u005f']
  const bodies = pollutions.flatMap((name) => [
    `{"${name}":{"polluted":1}}`,
    `{"fields":{"name":"x","${name}":{"polluted":1}}}`,
    `{"fields":{"name":"x"},"${name}":null}`,
    `{"fields":{"data":{"a":[{"${name}":1}]}}}`,
    `{"filter":{"${name}":{"field":"name"}}}`,
    `{"filter":{"and":[{"field":"name","op":"eq","value":{"${name}":1}}]}}`,
    `{"items":[{"operation":"create","fields":{"${name}":1}}]}`,
  ])
  const constructors = ['{"fields":{"constructor":{"prototype":{"polluted":1}}}}', '{"constructor":{"prototype":{}}}']
  for (const at of ['', ':batch', '/search', '/count']) {
    await expectRefusals(
      [...bodies, ...constructors].map((body): Case => [body, 'invalid_json', '__proto__']),
      (raw) => ask('POST', `${path}${at}`, { raw: raw as string }),
    )
  }
  const names = [
    '__proto__',
    'constructor',
    'prototype',
    'toString',
    'valueOf',
    'hasOwnProperty',
    '__defineGetter__',
    'length',
  ]
  for (const name of names) {
    const unknown = (field: string): readonly ['unknown_field', string] => ['unknown_field', field]
    const searches: Case[] = [
      [{ filter: { field: name, op: 'eq', value: 'x' } }, ...unknown('filter.field')],
      [{ filter: { related: name, some: leaf } }, ...unknown('filter.related')],
      [{ filter: { field: 'name', op: name, value: 'x' } }, 'filter_invalid', 'filter.op'],
      [{ sort: `${name}_asc` }, 'sort_invalid', 'sort'],
      [{ fields: [name] }, ...unknown('fields[0]')],
      [{ expand: [name] }, ...unknown('expand[0]')],
    ]
    if (name !== '__proto__') {
      searches.push(
        [{ [name]: 1 }, ...unknown(name)],
        [{ filter: { [name]: [leaf] } }, 'filter_invalid', `filter.${name}`],
      )
      const creation = await ask('POST', path, { body: { fields: { name: 'x', [name]: 'y' } } })
      expect(refusalOf(creation)).toEqual([400, 'unknown_field', `fields.${name}`])
    }
    await expectRefusals(searches, search)
    for (const query of [`${name}=1`, `fields=${name}`, `expand=${name}`]) {
      const field = query.startsWith(name) ? name : `${query.split('=')[0]}[0]`
      expect(refusalOf(await ask('GET', `${path}/${recordId}?${query}`))).toEqual([400, 'unknown_field', field])
    }
    expect(refusalOf(await ask('GET', `/objects/${name}/schema`))).toEqual([404, 'object_not_found', undefined])
    expect(refusalOf(await ask('POST', `/objects/${name}/records/search`))).toEqual([
      404,
      'object_not_found',
      undefined,
    ])
    const keyed = await ask<RecordView>('PUT', `${path}/by-key/${name}`, {
      body: { fields: { name }, expectedRevision: 1 },
    })
    expect(keyed.status).toBe(404)
  }
  expect(Object.keys(Object.prototype)).toEqual([])
  expect('polluted' in {}).toBe(false)
})

test('a guard of another revision is a conflict that names the current one', async () => {
  const at = `${path}/${recordId}`
  const guards: [method: string, at: string, body?: object][] = [
    ['PATCH', at, { fields: { country: 'DE' } }],
    ['PATCH', at, {}],
    ['PUT', `${at}/participants`, { participants: [] }],
    ['POST', `${at}:restore`, {}],
    ['DELETE', at],
  ]
  await writesNothing(service, async () => {
    for (const [method, where, body] of guards) {
      const conflicts = [
        await ask(method, where, { ...(body && { body }), headers: { 'if-match': '"99"' } }),
        await ask(method, where, { ...(body && { body }), headers: { 'if-match': '"0"' } }),
        ...(body
          ? [await ask(method, where, { body: { ...body, expectedRevision: 99 } })]
          : [await ask(method, `${where}?expectedRevision=99`)]),
        ...(body
          ? [await ask(method, where, { body: { ...body, expectedRevision: 1 }, headers: { 'if-match': '"2"' } })]
          : []),
      ]
      for (const answer of conflicts) {
        expect([answer.status, answer.json.code, answer.headers['etag']]).toEqual([409, 'revision_conflict', '"1"'])
        expect(answer.json.details?.[0]?.message).toBe('The current revision is 1.')
      }
      for (const expectedRevision of [0, -1, 1.5, '1', null, 1e300]) {
        if (!body) continue
        const answer = await ask(method, where, { body: { ...body, expectedRevision } })
        expect(refusalOf(answer)).toEqual([400, 'validation_failed', 'expectedRevision'])
      }
    }
    for (const body of [{ fields: { name: 'x' }, expectedRevision: 1 }, { fields: { name: 'x' } }]) {
      const headers = 'expectedRevision' in body ? {} : { 'if-match': '"1"' }
      const absent = await ask('PUT', `${path}/by-key/${randomUUID()}`, { body, headers })
      expect(refusalOf(absent)).toEqual([404, 'record_not_found', undefined])
    }
    const items = [
      { operation: 'update', recordId, fields: {}, expectedRevision: 99 },
      { operation: 'archive', recordId, expectedRevision: 99 },
    ]
    const batch = await ask('POST', `${path}:batch`, { body: { atomic: true, items } })
    expect(batch.json.details?.map(({ field, code }) => `${field} ${code}`)).toEqual([
      'items[0].expectedRevision revision_conflict',
      'items[1].expectedRevision revision_conflict',
    ])
  })
})

test('of many who change one revision at once, one does', async () => {
  const { recordId: id, revision } = companies[2]!
  const answers = await Promise.all(
    Array.from({ length: 16 }, (_, n) =>
      ask('PATCH', `${path}/${id}`, { body: { fields: { country: `C${n}` }, expectedRevision: revision } }),
    ),
  )
  expect(answers.map((answer) => answer.status).sort()).toEqual([200, ...Array(15).fill(409)])
})

test('an item of a batch that makes no sense is refused, and an atomic batch is written whole or not at all', async () => {
  const good = { operation: 'create', fields: { name: 'Good' } }
  await writesNothing(service, async () => {
    const cases: Case[] = [
      [{ operation: 'update', fields: {} }, 'batch_failed', 'items[199].recordId'],
      [{ operation: 'archive' }, 'batch_failed', 'items[199].recordId'],
      [{ operation: 'upsert', fields: {} }, 'batch_failed', 'items[199].externalKey'],
      [{ ...good, recordId }, 'batch_failed', 'items[199].recordId'],
      [{ ...good, expectedRevision: 1 }, 'batch_failed', 'items[199].expectedRevision'],
      [{ operation: 'archive', recordId, fields: { name: 'x' } }, 'batch_failed', 'items[199].fields'],
      [{ operation: 'archive', recordId, participants: [] }, 'batch_failed', 'items[199].participants'],
      [{ operation: 'update', recordId: uuidv7(0), fields: {} }, 'batch_failed', 'items[199]'],
      [{ operation: 'archive', externalKey: 'nothing' }, 'batch_failed', 'items[199]'],
      [{ operation: 'create', fields: { nothing: 1 } }, 'batch_failed', 'items[199].fields.nothing'],
      [{ operation: 'create', fields: {} }, 'batch_failed', 'items[199].fields.name'],
      [{ operation: 'create' }, 'batch_failed', 'items[199].fields.name'],
      [{ operation: 'delete', recordId }, 'validation_failed', 'items[199].operation'],
      [{ fields: {} }, 'validation_failed', 'items[199].operation'],
      [null, 'validation_failed', 'items[199]'],
    ]
    await expectRefusals(cases, (item) =>
      ask('POST', `${path}:batch`, { body: { atomic: true, items: [...wide(199, good), item] } }),
    )
    const sizes: Case[] = [
      [[], 'validation_failed', 'items'],
      [wide(201, good), 'validation_failed', 'items'],
      [good, 'validation_failed', 'items'],
    ]
    await expectRefusals(sizes, (items) => ask('POST', `${path}:batch`, { body: { items } }))
  })
  const mixed = [good, { operation: 'create', fields: { name: 5 } }, good, { operation: 'update', recordId: uuidv7(0) }]
  const { json } = await ask<{ results: { index: number; status: number }[] }>('POST', `${path}:batch`, {
    body: { items: mixed },
  })
  expect(json.results.map(({ index, status }) => [index, status])).toEqual([
    [0, 201],
    [1, 400],
    [2, 201],
    [3, 404],
  ])
})

test('bodies, headers and addresses that nobody should send', async () => {
  const body = { fields: { name: 'x' } }
  const long = 'x'.repeat(2 * 1024 * 1024)
  const expectRefusal = async (request: Promise<Refusal>, expected: unknown[]) => {
    expect(refusalOf(await request).slice(0, expected.length)).toEqual(expected)
  }
  await writesNothing(service, async () => {
    await expectRefusal(ask('POST', path, { body: { fields: { name: long } } }), [413, 'payload_too_large'])
    await expectRefusal(ask('POST', `${path}:batch`, { raw: `{"items":[${long.repeat(5)}]}` }), [
      413,
      'payload_too_large',
    ])
    for (const open of ['[', '{"a":', '{"fields":{"data":[', '[{"a":', '"\\"[",[']) {
      await expectRefusal(ask('POST', path, { raw: open.repeat(1_000_000 / open.length) }), [400, 'json_too_deep'])
    }
    await expectRefusal(
      ask('POST', `${path}/search`, { raw: `{"filter":${'{"not":'.repeat(60)}1${'}'.repeat(60)}}` }),
      [400, 'filter_invalid'],
    )
    for (const [raw, place] of [
      ['{"fields":{"name":"x"}', 22],
      ['{"fields":{"name":"x",}}', 22],
      ["{'fields':{}}", 1],
      ['{"fields":{"name":"a\nb"}}', 18],
      ['{"fields":{"name":NaN}}', 18],
      ['{"fields":{"name":01}}', 19],
      ['{"fields":{}} x', 14],
      ['\ufeff\ufeff{}', 0],
      ['{"fields":{"name":"\\ud8"}}', 18],
    ] as const) {
      await expectRefusal(ask('POST', path, { raw }), [400, 'invalid_json', `position ${place}`])
    }
    for (const bytes of [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]]) {
      const raw = Buffer.concat([Buffer.from('{"fields":{"name":"'), Buffer.from(bytes), Buffer.from('"}}')])
      await expectRefusal(ask('POST', path, { raw }), [400, 'invalid_json', 'body'])
    }
    const types = [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonp',
      'json',
      '',
    ]
    const charsets = [
      'application/json; charset=latin1',
      'application/json;charset="utf-16"',
      'application/json, application/json',
    ]
    for (const type of [...types, ...charsets]) {
      await expectRefusal(ask('POST', path, { body, headers: { 'content-type': type } }), [
        415,
        'unsupported_media_type',
        'Content-Type',
      ])
    }
    for (const coding of ['gzip', 'br', 'identity, gzip']) {
      await expectRefusal(ask('POST', path, { body, headers: { 'content-encoding': coding } }), [
        415,
        'unsupported_media_type',
        'Content-Encoding',
      ])
    }
    const twice = (name: string, ...values: string[]) => ask('POST', path, { body, headers: { [name]: values } })
    await expectRefusal(twice('content-type', 'application/json', 'text/plain'), [415, 'unsupported_media_type'])
    await expectRefusal(twice('idempotency-key', 'one', 'two'), [400, 'idempotency_key_invalid', 'Idempotency-Key'])
    const guarded = ask('PATCH', `${path}/${recordId}`, { body, headers: { 'if-match': ['"1"', '"2"'] } })
    await expectRefusal(guarded, [400, 'validation_failed', 'If-Match'])
    const parameters = (count: number) => Array.from({ length: count }, (_, n) => `p${n}=1`).join('&')
    await expectRefusal(ask('GET', `${path}/${recordId}?${parameters(10_000)}`), [431, 'request_headers_too_large'])
    await expectRefusal(ask('GET', `${path}/${recordId}?${parameters(1500)}`), [400, 'unknown_field', 'p0'])
    await expectRefusal(ask('GET', `${path}/${recordId}?fields=${'name&fields='.repeat(1000)}`), [
      400,
      'validation_failed',
      'fields',
    ])
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`p${n}`, 1]))
    await expectRefusal(ask('POST', path, { body: { ...body, ...many } }), [400, 'unknown_field', 'p0'])
    await expectRefusal(ask('POST', path, { body: { fields: many } }), [400, 'validation_failed', 'fields'])
    await expectRefusal(ask('POST', path, { body: { ...body, 'a/b~c.0': 1 } }), [400, 'unknown_field', 'a/b~c.0'])
    const longName = 'x'.repeat(1_000_000)
    for (const wrong of [{ ...body, [longName]: 1 }, { fields: { [longName]: 1 } }, { fields: { name: [longName] } }]) {
      const answer = await ask('POST', path, { body: wrong })
      expect([answer.status, answer.text.length < 1000]).toEqual([400, true])
    }
    for (const address of [
      '//objects',
      '/objects/',
      '/objects//records',
      `/objects/company/records/${recordId}/`,
      '/Objects',
      '/objects/company/records:nothing',
    ]) {
      await expectRefusal(ask('GET', address), [404, 'route_not_found'])
    }
    for (const [method, address, allow] of [
      ['PUT', '/objects', 'GET, HEAD'],
      ['POST', `${path}/${recordId}`, 'DELETE, GET, HEAD, PATCH'],
      ['GET', `${path}:batch`, 'POST'],
      ['OPTIONS', `${path}/${recordId}:restore`, 'POST'],
      ['DELETE', `${path}/by-key/x`, 'GET, HEAD, PUT'],
    ] as const) {
      const answer = await ask(method, address)
      expect([answer.status, answer.json.code, answer.headers['allow']]).toEqual([405, 'method_not_allowed', allow])
    }
  })
  const types = [
    'application/json; charset=utf-8',
    'text/json',
    'application/vnd.acme+json',
    'APPLICATION/JSON;charset=UTF-8',
  ]
  for (const type of types)
    expect((await ask('POST', `${path}/search`, { body: {}, headers: { 'content-type': type } })).status).toBe(200)
  expect((await ask('GET', '/objects', { raw: 'a body that nobody asked for' })).status).toBe(200)
})

test('bytes that are no HTTP are refused, and the service goes on', async () => {
  const head = `POST /v1/apps/${service.app.appId}${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\nContent-Type: application/json\r\n`
  const json = '{"fields":{"name":"Smuggled"}}'
  await writesNothing(service, async () => {
    for (const [bytes, status] of [
      [`${head}Content-Length: ${json.length}\r\nTransfer-Encoding: chunked\r\n\r\n${json}`, 400],
      [`${head}Content-Length: 5\r\nContent-Length: ${json.length}\r\n\r\n${json}`, 400],
      [`${head}Host: y\r\nContent-Length: ${json.length}\r\n\r\n${json}`, 400],
      [`${head}Content-Length: -1\r\n\r\n${json}`, 400],
      [`${head}Content-Length: 1e3\r\n\r\n${json}`, 400],
      [`${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 400],
      [`${head}Transfer-Encoding: chunked\r\n\r\nZZ\r\n${json}`, 400],
      [`${head}Idempotency-Key: a\0b\r\nContent-Length: 0\r\n\r\n`, 400],
      [`${head}X-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
      [head.replace('Host: x\r\n', '').concat(`Content-Length: ${json.length}\r\n\r\n${json}`), 400],
      [head.replace('HTTP/1.1', 'HTTP/9.9').concat('\r\n'), 400],
      ['\0\0\0\0', 400],
      ['GET / HTTP/1.1\r\nHost : x\r\n\r\n', 400],
    ] as const) {
      const answer = await service.sendBytes(bytes)
      const [, first, body] = /^HTTP\/1\.1 (\d+) [\s\S]*?\r\n\r\n([\s\S]*)$/.exec(answer) ?? []
      expect([bytes.slice(-60), Number(first)], answer).toEqual([bytes.slice(-60), status])
      const correlationId = /x-correlation-id: (\S+)/i.exec(answer)?.[1]
      expect(JSON.parse(body!), answer).toMatchObject({
        error: expect.any(String),
        code: expect.any(String),
        correlationId,
      })
    }
  })
  expect((await ask('GET', '/objects')).status).toBe(200)
})

describe('an Idempotency-Key', () => {
  const create = (key: string, body: object, more: Sent = {}) =>
    ask<RecordView>('POST', path, { body, ...more, headers: { 'idempotency-key': key, ...more.headers } })

  test('brings the same answer back, byte for byte, and only to whoever sent it', async () => {
    const key = randomUUID()
    const body = { fields: { name: 'Once', country: '😀' } }
    const first = await create(key, body)
    await writesNothing(service, async () => {
      const again = await create(key, body)
      expect([again.status, again.text]).toEqual([201, first.text])
      expect([again.headers['location'], again.headers['etag']]).toEqual([
        first.headers['location'],
        first.headers['etag'],
      ])
      expect([first.headers['idempotency-replayed'], again.headers['idempotency-replayed']]).toEqual([
        undefined,
        'true',
      ])
      expect(again.correlationId).not.toBe(first.correlationId)
      for (const [method, at, other] of [
        ['POST', path, { fields: { name: 'Another' } }],
        ['POST', path, { fields: { country: '😀', name: 'Once' } }],
        ['POST', '/objects/deal/records', { fields: { name: 'Once' } }],
        ['POST', `${path}:batch`, { items: [{ operation: 'create', fields: { name: 'Once' } }] }],
        ['PUT', `${path}/by-key/x`, { fields: { name: 'Once' } }],
        ['PATCH', `${path}/${recordId}`, { fields: { name: 'Once' } }],
        ['DELETE', `${path}/${recordId}`, undefined],
      ] as const) {
        const answer = await ask(method, at, { ...(other && { body: other }), headers: { 'idempotency-key': key } })
        // The order of names is no part of a JSON text, but a client that retries sends what it sent.
        expect([answer.status, answer.json.code]).toEqual([409, 'idempotency_key_reused'])
      }
    })
    const { a, b } = service.app.organizations
    for (const other of [a.users.owner.token, a.credentials.enveloped.token, b.credentials.live.token]) {
      const answer = await create(key, { fields: { name: 'Somebody else' } }, { token: other })
      expect([answer.status, answer.headers['idempotency-replayed']]).toEqual([201, undefined])
    }
  })

  test('guards every kind of change', async () => {
    const made = (await create(randomUUID(), { fields: { name: 'Guarded' } })).json
    const at = `${path}/${made.recordId}`
    for (const [method, where, body] of [
      ['PATCH', at, { fields: { country: 'FR' } }],
      ['PUT', `${at}/participants`, { participants: [service.app.organizations.a.users.sales.userId] }],
      ['DELETE', at, undefined],
      ['POST', `${at}:restore`, undefined],
      ['PUT', `${path}/by-key/guarded`, { fields: { name: 'Guarded 2' } }],
      ['POST', `${path}:batch`, { items: [{ operation: 'create', fields: { name: 'Guarded 3' } }] }],
    ] as const) {
      const sent = { ...(body && { body }), headers: { 'idempotency-key': randomUUID() } }
      const first = await ask(method, where, sent)
      expect(first.status, first.text).toBeLessThan(300)
      await writesNothing(service, async () => {
        const again = await ask(method, where, sent)
        expect([again.status, again.text, again.headers['etag'], again.headers['idempotency-replayed']]).toEqual([
          first.status,
          first.text,
          first.headers['etag'],
          'true',
        ])
      })
    }
  })

  test('is 1 to 255 visible characters, and spent only by what succeeds', async () => {
    const body = { fields: { name: 'Key' } }
    for (const key of ['', ' ', 'two words', 'x'.repeat(256), 'schlüssel', '\u00a0']) {
      expect(refusalOf(await create(key, body))).toEqual([400, 'idempotency_key_invalid', 'Idempotency-Key'])
    }
    for (const key of [
      'x',
      'x'.repeat(255),
      `!"#$%&'()*+,-./:;<=>?@[\\]^_\`{|}~`,
      '__proto__',
      "'; DROP TABLE x --",
    ].map((one) => one.replaceAll(' ', ''))) {
      expect((await create(key, body)).status, key).toBe(201)
      expect((await create(key, body)).headers['idempotency-replayed']).toBe('true')
    }
    const key = randomUUID()
    expect((await create(key, { fields: { name: 5 } })).status).toBe(400)
    expect((await create(key, { fields: { name: 'x' }, ownerUserId: uuidv7(0) })).status).toBe(400)
    expect((await create(key, { fields: { name: 'Now right' } })).status).toBe(201)
  })

  test('of many who race with one key, one writes', async () => {
    const before = await ask<{ totalRecords: number }>('POST', `${path}/count`)
    const keys = Array.from({ length: 20 }, () => randomUUID())
    const answers = await Promise.all(
      keys.map((key) => Promise.all(Array.from({ length: 8 }, () => create(key, { fields: { name: `Race ${key}` } })))),
    )
    for (const racers of answers) {
      const written = racers.filter((answer) => answer.status === 201)
      expect(new Set(written.map((answer) => answer.text)).size).toBe(1)
      expect(written.filter((answer) => answer.headers['idempotency-replayed'] === undefined)).toHaveLength(1)
      for (const loser of racers.filter((answer) => answer.status !== 201)) {
        expect([loser.status, loser.json.code]).toEqual([409, 'idempotency_in_progress'])
      }
    }
    const after = await ask<{ totalRecords: number }>('POST', `${path}/count`)
    expect(after.json.totalRecords - before.json.totalRecords).toBe(20)
  })
})
