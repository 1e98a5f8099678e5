import { afterAll, beforeAll, expect, test } from 'vitest'
import { uuidv7 } from '../src/kernel/ids.ts'
import { applyModel } from '../src/shared/modelling/apply.ts'
import type { RecordView } from '../src/shared/records/record.ts'
import { writesNothing } from './support/footprint.ts'
import type { Answer, Sent } from './support/http-client.ts'
import { startTestService, type TestService } from './support/service.ts'

/** Values that fields must refuse, by name and without a trace, and values at the edge of what they must take. */
let service: TestService
let token: string
let company: string
let deal: string
let specimen: RecordView

beforeAll(async () => {
  service = await startTestService()
  token = service.app.organizations.a.credentials.live.token
  company = await create('company', { fields: { name: 'Referred' } }).then(({ json }) => json.recordId)
  deal = await create('deal', { fields: { name: 'Referred' } }).then(({ json }) => json.recordId)
  specimen = await create('specimen', {
    fields: { title: 'The first', code: 'First-1', email: 'First@x.example', price: '1.50' },
  }).then(({ json }) => json)
})
afterAll(() => service.stop())

function ask<T = Readonly<Record<string, unknown>>>(method: string, path: string, sent: Sent = {}): Promise<Answer<T>> {
  return service.call<T>(method, `/v1/apps/${service.app.appId}${path}`, { token, ...sent })
}

function create(objectKey: string, body: unknown) {
  return ask<RecordView>('POST', `/objects/${objectKey}/records`, { body })
}

/** JSON as text: what JSON.stringify would not write. */
class Raw {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

const nul = 'a\0b'
const loneHigh = 'a\ud83db'
const loneLow = '\ude00'
const unstorable = [nul, loneHigh, loneLow, '\udbff\udbff']
const wrongNumbers = [true, 'abc', '', ' 1', '1 ', '+1', '0x10', 'NaN', 'Infinity', '١', {}, [], [1], new Raw('1e400')]

const wrongValues: Record<string, readonly unknown[]> = {
  title: [5, true, {}, [], ['x'], 'x'.repeat(2001), '😀'.repeat(2001), ...unstorable],
  code: ['abc', 'A-', 'AB', `A-${'1'.repeat(19)}`, 'A-1\n', ' A-1', 'É-1', ...unstorable],
  body: [5, 'x'.repeat(100_001), ...unstorable],
  count: [
    ...wrongNumbers,
    ...[1.5, '1.5', '1e3', 1e300, '9223372036854775808', '-9223372036854775809', '9'.repeat(1000)],
    ...[new Raw('9007199254740993'), new Raw('-9007199254740992'), new Raw('1e30')],
  ],
  small: [6, -6, '6', '-9223372036854775808'],
  ratio: [...wrongNumbers, '1', '1.5', new Raw('-1e309')],
  price: [
    ...wrongNumbers,
    ...['1e5', '1.', '.5', '--1', '1,5', '9'.repeat(39), `0.${'1'.repeat(19)}`, `${'9'.repeat(30)}.${'1'.repeat(9)}`],
    ...[1e21, 1e-7, new Raw('123456789012345678901234567890')],
  ],
  cents: ['1.234', '-0.01', -1],
  flag: ['true', 'false', 1, 0, '', [], {}],
  day: [
    ...[
      '2026-02-30',
      '2026-02-29',
      '2026-13-01',
      '2026-00-01',
      '2026-01-00',
      '2026-01-32',
      '0000-01-01',
      '10000-01-01',
    ],
    ...['2026-1-1', '20260101', '2026-01-01T00:00:00Z', '-0001-01-01', '+2026-01-01', 'today', '$today', 'infinity'],
    ...['２０２６-01-01', '2026-01-01\n', ' 2026-01-01', '2026-01-01 BC', '', 20260101, true, {}, [], ...unstorable],
  ],
  moment: [
    ...['2026-01-01', '2026-01-01T00:00:00', '2026-01-01T24:00:00Z', '2026-01-01T00:60:00Z', '2026-12-31T23:59:60Z'],
    ...['2026-02-30T00:00:00Z', '0000-01-01T00:00:00Z', '10000-01-01T00:00:00Z', '0001-01-01T00:00:00+23:59'],
    ...[
      '9999-12-31T23:59:59-00:01',
      '2026-01-01T00:00:00+24:00',
      '2026-01-01T00:00:00.1234567890Z',
      '2026-01-01 00:00:00Z',
    ],
    ...['now', '$now', 'infinity', '', 0, 1767225600000, true, {}, [], ...unstorable],
  ],
  colour: ['RED', '', 'green', 'Crimson', 'gru\u0308n', 1, ['red'], {}, ...unstorable],
  tags: [
    'one',
    ['four'],
    ['one', 'one'],
    [1],
    [null],
    [['one']],
    {},
    ['ONE'],
    Array(201).fill('one'),
    [nul],
    [loneHigh],
  ],
  email: [
    ...[
      'a',
      'a@b',
      'a b@c.example',
      '@x.example',
      'a@@b.example',
      'a@b.example\n',
      '<a@b.example>',
      'a@.',
      'a,b@c.example',
    ],
    ...[`${'a'.repeat(250)}@b.example`, '', 5, ...unstorable],
  ],
  phone: ['abc', '12', '+', '', '1'.repeat(41), '123\n\u00004', 5, ...unstorable],
  site: [
    ...[
      'ftp://x.example',
      'javascript:alert(1)',
      'data:text/html,x',
      '//x.example',
      'x.example',
      'http://',
      'https://',
      '',
    ],
    ...[
      `https://x.example/${'x'.repeat(2048)}`,
      `https://x.example/${'é'.repeat(1020)}`,
      5,
      ...unstorable.map((bad) => `https://x.example/${bad}`),
    ],
  ],
  data: [
    ...[nul, loneHigh, { [nul]: 1 }, { [loneLow]: 1 }, [[{ a: [nul] }]], 'x'.repeat(65_537), { a: { b: loneHigh } }],
    ...[
      new Raw(`${'['.repeat(33)}${']'.repeat(33)}`),
      new Raw('{"a":1e400}'),
      new Raw('[-1e400]'),
      new Raw('1e999'),
      new Raw(`[${'0,'.repeat(200_000)}0]`),
    ],
  ],
  assignee: ['x', '', 5, {}, [], 'me', '$me', `${uuidv7(0)}0`, ...unstorable],
  company: ['x', '', 5, {}, [], `{${uuidv7(0)}}`, uuidv7(0).replaceAll('-', ''), ...unstorable],
  toString: [5, {}, ...unstorable],
}

/** A body with one value, as the text that travels. */
function bodyWith(fieldKey: string, value: unknown, rest: Readonly<Record<string, unknown>> = {}): string {
  const json = value instanceof Raw ? value.text : JSON.stringify(value)
  return JSON.stringify({ fields: { ...rest, [fieldKey]: 'PLACE' } }).replace('"PLACE"', () => json)
}

test.each(Object.entries(wrongValues))('values that %s refuses are named', async (fieldKey, values) => {
  const required = fieldKey === 'title' ? {} : { title: 'Wrong' }
  await writesNothing(service, async () => {
    for (const value of values) {
      const shown = value instanceof Raw ? value.text : JSON.stringify(value)?.slice(0, 60)
      const requests = [
        await ask('POST', '/objects/specimen/records', { raw: bodyWith(fieldKey, value, required) }),
        await ask('PATCH', `/objects/specimen/records/${specimen.recordId}`, { raw: bodyWith(fieldKey, value) }),
      ]
      for (const answer of requests) {
        expect([shown, answer.status, answer.json.code]).toEqual([shown, 400, 'field_value_invalid'])
        expect(answer.json.details).toEqual([
          {
            field: `fields.${fieldKey}`,
            code: 'field_value_invalid',
            message: expect.stringMatching(/^Expected .+\.$/s),
          },
        ])
      }
    }
    const items = values.map((value) => `{"operation":"create",${bodyWith(fieldKey, value, required).slice(1)}`)
    for (const atomic of [true, false]) {
      const raw = `{"atomic":${atomic},"items":[${items.join()}]}`
      const answer = await ask<{ results: { status: number; error: { details: { field: string }[] } }[] }>(
        'POST',
        '/objects/specimen/records:batch',
        { raw },
      )
      const named = atomic
        ? answer.json.details!.map((detail) => detail.field)
        : answer.json.results.map(({ error }, index) => `items[${index}].${error.details[0]!.field}`)
      expect(answer.status).toBe(atomic ? 400 : 200)
      expect(named).toEqual(values.map((_, index) => `items[${index}].fields.${fieldKey}`))
    }
  })
})

/** What comes back where it is not what was sent. */
const edges: readonly (readonly [fieldKey: string, sent: unknown, returned?: unknown])[] = [
  ['title', ''],
  ['title', 'x'.repeat(2000)],
  ['title', '😀'.repeat(2000)],
  ['title', 'İ'.repeat(2000)],
  ['title', '\u0001\u001f\u007f\u0080\u2028\ufeff\uffff\u{10ffff}\ue000\ue001'],
  ['title', '\'; DROP TABLE record; -- \\ " % _ $1 {} NULL'],
  ['title', '\\u0000 \\ud800'],
  ['title', '__proto__'],
  ['code', 'abcdefghijklmnopq-12'],
  ['body', '漢'.repeat(100_000)],
  ['body', `\x1f\ue000${'a\u0301'.repeat(40_000)}`],
  ['count', 9007199254740991],
  ['count', '9007199254740993'],
  ['count', '9223372036854775807'],
  ['count', '-9223372036854775808'],
  ['count', '-0', 0],
  ['count', '0000000000000000007', 7],
  ['count', new Raw('1e3'), 1000],
  ['count', new Raw('-0'), 0],
  ['ratio', 5e-324],
  ['ratio', 1.7976931348623157e308],
  ['ratio', -2.2250738585072014e-308],
  ['ratio', 0.1],
  ['ratio', new Raw('-0'), 0],
  ['ratio', new Raw('1e-400'), 0],
  ['price', '9'.repeat(38)],
  ['price', `-${'9'.repeat(20)}.${'9'.repeat(18)}`],
  ['price', `0.${'0'.repeat(17)}1`],
  ['price', '00012.500', '12.500'],
  ['price', '-0.00', '0.00'],
  ['price', 2.25, '2.25'],
  ['cents', '0.10'],
  ['flag', false],
  ['day', '0001-01-01'],
  ['day', '9999-12-31'],
  ['day', '2024-02-29'],
  ['moment', '0001-01-01T00:00:00.000Z'],
  ['moment', '9999-12-31T23:59:59.999Z'],
  ['moment', '2026-01-01t01:30:00.123456789+01:30', '2026-01-01T00:00:00.123Z'],
  ['moment', '1900-01-01T00:00:00-23:59', '1900-01-01T23:59:00.000Z'],
  ['colour', 'grün'],
  ['tags', []],
  ['tags', ['a,"b"', 'NULL', '{}', 'two']],
  ['email', 'ä.ö+x@münchen.example'],
  ['email', `${'a'.repeat(242)}@b.example`],
  ['phone', '+44 (0)20 7946-0958 ext. 12'],
  ['site', `https://x.example/${'x'.repeat(2029)}`],
  ['site', `https://x.example/${'Ⱥİ'.repeat(500)}`],
  ['data', null],
  ['data', 'text'],
  ['data', 'C:\\udata \\u0000 \\\\ud800'],
  ['data', { 'C:\\udata': ['\\', '\\\\', '😀', ''] }],
  ['data', { constructor: 1, toString: null, prototype: { valueOf: [] } }],
  ['data', [0, -1.5, 1e308, 1e-300, true, null, '']],
  ['data', new Raw(`${'['.repeat(32)}${']'.repeat(32)}`), 'anything'],
  ['data', 'x'.repeat(65_534)],
  ['toString', 'a method'],
]

const edgeCases = edges.map((edge) => [...edge] as [fieldKey: string, sent: unknown, ...rest: unknown[]])
test.each(edgeCases)('%s takes %o', async (fieldKey, sent, ...rest) => {
  const expected = rest.length > 0 ? rest[0] : sent
  const title = fieldKey === 'title' ? {} : { title: 'Edge' }
  const created = await ask<RecordView>('POST', '/objects/specimen/records', { raw: bodyWith(fieldKey, sent, title) })
  expect(created.status, created.text.slice(0, 300)).toBe(201)
  if (expected !== 'anything') expect(created.json.fields[fieldKey]).toStrictEqual(expected)
  const path = `/objects/specimen/records/${created.json.recordId}`
  expect((await ask<RecordView>('GET', path)).json.fields).toStrictEqual(created.json.fields)
  // Written again it is the same value, and changes nothing; cleared and set again it is the same value still.
  const again = await ask<RecordView>('PATCH', path, { raw: bodyWith(fieldKey, sent) })
  expect([again.status, again.json.revision]).toEqual([200, 1])
  if (fieldKey === 'title') return
  expect((await ask<RecordView>('PATCH', path, { body: { fields: { [fieldKey]: null } } })).json.fields[fieldKey]).toBe(
    null,
  )
  const back = await ask<RecordView>('PATCH', path, { raw: bodyWith(fieldKey, sent) })
  expect(back.json.fields).toStrictEqual(created.json.fields)
  // Unique values leave with their record.
  expect((await ask('DELETE', path)).status).toBe(200)
})

test('the same JSON with its names in another order changes nothing', async () => {
  const { json } = await create('specimen', { fields: { title: 'Order', data: { a: { c: [3], dd: 2 }, bb: 1 } } })
  const answer = await ask<RecordView>('PATCH', `/objects/specimen/records/${json.recordId}`, {
    body: { fields: { data: { bb: 1, a: { dd: 2, c: [3] } } } },
  })
  expect(answer.json.revision).toBe(1)
})

test('references lead to records, users and places of the organization, or are refused by name', async () => {
  const { a, b } = service.app.organizations
  const { c } = service.otherApp.organizations
  const nowhere = uuidv7(Date.now())
  await writesNothing(service, async () => {
    for (const [name, ids] of Object.entries({
      'fields.company': [nowhere, deal, specimen.recordId, a.users.owner.userId],
      'fields.assignee': [nowhere, b.users.owner.userId, c.users.owner.userId, company],
      ownerUserId: [nowhere, b.users.owner.userId, a.dataRoles['sales']],
      dataRoleId: [nowhere, b.dataRoles['sales'], a.users.owner.userId],
      locationId: [nowhere, b.locations['north'], a.dataRoles['sales']],
      participants: [nowhere, b.users.owner.userId, a.organizationId],
    })) {
      for (const id of ids) {
        const [first, second] = name.split('.')
        const value = first === 'participants' ? [a.users.owner.userId, id] : second ? { [second]: id } : id
        const part = { [first!]: value }
        const fields = { title: 'Dangling' }
        const bodies = { ...part, fields: { ...fields, ...(part['fields'] as object | undefined) } }
        const answers = [
          await create('specimen', bodies),
          await ask('PATCH', `/objects/specimen/records/${specimen.recordId}`, { body: part }),
          await ask('PUT', '/objects/specimen/records/by-key/dangling', { body: bodies }),
        ]
        for (const answer of answers) {
          expect([name, answer.status, answer.json.code]).toEqual([name, 400, 'reference_not_found'])
          expect(answer.json.details?.map((detail) => detail.field)).toEqual([name])
        }
      }
    }
    const both = { ownerUserId: a.users.owner.userId, dataRoleId: a.dataRoles['sales'] }
    const answer = await create('specimen', { fields: { title: 'Both' }, ...both })
    expect([answer.status, answer.json.code]).toEqual([400, 'ownership_conflict'])
  })
})

test('every unique value is taken once, whatever its case or its zeros', async () => {
  const path = '/objects/specimen/records'
  const other = await create('specimen', { fields: { title: 'Other', code: 'Other-1' }, externalKey: 'other-key' })
  const taken: [object, string][] = [
    [{ fields: { title: 'x', code: 'First-1' } }, 'fields.code'],
    [{ fields: { title: 'x', code: 'FIRST-1' } }, 'fields.code'],
    [{ fields: { title: 'x', email: 'fIRST@X.EXAMPLE' } }, 'fields.email'],
    [{ fields: { title: 'x', price: '1.5' } }, 'fields.price'],
    [{ fields: { title: 'x', price: '0001.500000' } }, 'fields.price'],
    [{ fields: { title: 'x' }, externalKey: 'taken-key' }, 'externalKey'],
  ]
  await ask('PATCH', `${path}/${specimen.recordId}`, { body: { externalKey: 'taken-key' } })
  await writesNothing(service, async () => {
    for (const [body, field] of taken) {
      const answers = [
        await create('specimen', body),
        await ask('PATCH', `${path}/${other.json.recordId}`, { body }),
        await ask('POST', `${path}:batch`, {
          body: {
            atomic: true,
            items: [
              { operation: 'create', fields: { title: 'good' } },
              { operation: 'create', ...body },
            ],
          },
        }),
      ]
      expect(answers.map(({ status, json }) => [status, json.code, json.details?.[0]?.field])).toEqual([
        [409, 'duplicate_value', field],
        [409, 'duplicate_value', field],
        [400, 'batch_failed', `items[1].${field}`],
      ])
    }
    const twins = [1, 2].map(() => ({ operation: 'create', fields: { title: 'Twin', code: 'Twin-1' } }))
    const atomic = await ask('POST', `${path}:batch`, { body: { atomic: true, items: twins } })
    expect(atomic.json.details?.map((detail) => detail.field)).toEqual(['items[1].fields.code'])
  })
  // An archived record gives its values up, and cannot come back while somebody else has them.
  await ask('DELETE', `${path}/${specimen.recordId}`)
  const heir = await create('specimen', { fields: { title: 'Heir', code: 'first-1' } })
  expect(heir.status).toBe(201)
  await writesNothing(service, async () => {
    const answer = await ask('POST', `${path}/${specimen.recordId}:restore`)
    expect([answer.status, answer.json.details?.[0]?.field]).toEqual([409, 'fields.code'])
  })
})

test('a record whose values do not fit together is refused', async () => {
  const fieldKeys = Array.from({ length: 300 }, (_, n) => `text${n}`)
  const fields = fieldKeys.map((fieldKey) => ({ fieldKey, label: fieldKey, dataType: 'text' as const }))
  const wide = { objectKey: 'wide', label: 'Wide', pluralLabel: 'Wide', nameField: 'text0', fields }
  await applyModel(service.db.database, service.app.appId, { objects: [wide] })
  const filled = (count: number) => {
    return Object.fromEntries(
      fieldKeys.slice(0, count).map((fieldKey, n) => [fieldKey, `${n}${'漢字かな'.repeat(100)}`]),
    )
  }
  const few = await create('wide', { fields: filled(200) })
  expect(few.status).toBe(201)
  const path = '/objects/wide/records'
  await writesNothing(service, async () => {
    const items = [
      { operation: 'create', fields: filled(1) },
      { operation: 'create', fields: filled(300) },
    ]
    for (const [method, at, body] of [
      ['POST', path, { fields: filled(300) }],
      ['PATCH', `${path}/${few.json.recordId}`, { fields: filled(300) }],
      ['PUT', `${path}/by-key/wide`, { fields: filled(300) }],
      ['POST', `${path}:batch`, { atomic: true, items }],
    ] as const) {
      const answer = await ask(method, at, { body })
      expect([at, answer.status, answer.json.details?.[0]?.code]).toEqual([at, 400, 'record_too_large'])
    }
  })
})

test('of many who want one unique value at once, one gets it', async () => {
  const answers = await Promise.all(
    Array.from({ length: 12 }, (_, n) =>
      create('specimen', { fields: { title: `Racer ${n}`, code: n % 2 ? 'Race-1' : 'RACE-1' } }),
    ),
  )
  expect(answers.map((answer) => answer.status).sort()).toEqual([201, ...Array(11).fill(409)])
})

test('required fields are asked for by name, and cannot be cleared', async () => {
  const path = '/objects/company/records'
  await writesNothing(service, async () => {
    for (const fields of [{}, { name: null }, { domain: 'x.example' }, { name: null, domain: null }]) {
      const answers = [
        await create('company', { fields }),
        await ask('PUT', `${path}/by-key/none`, { body: { fields } }),
        await ask('POST', `${path}:batch`, { body: { atomic: true, items: [{ operation: 'create', fields }] } }),
        ...('name' in fields ? [await ask('PATCH', `${path}/${company}`, { body: { fields } })] : []),
      ]
      for (const answer of answers) {
        expect(answer.status).toBe(400)
        expect(answer.json.details?.map(({ field, code }) => [field.replace('items[0].', ''), code])).toEqual([
          ['fields.name', 'required_field_missing'],
        ])
      }
    }
  })
})

test('unknown fields and those of the service are refused, all of them at once', async () => {
  await writesNothing(service, async () => {
    const fields = {
      title: 5,
      nothing: 1,
      number: 7,
      createdAt: 'x',
      revision: 1,
      recordId: 'x',
      count: 'x',
      Title: 'x',
      'a.b': 1,
      '': 1,
    }
    const answer = await create('specimen', { fields })
    expect(answer.json.code).toBe('unknown_field')
    expect(answer.json.details?.map(({ field, code }) => `${field} ${code}`)).toEqual([
      'fields.title field_value_invalid',
      'fields.nothing unknown_field',
      'fields.number field_read_only',
      'fields.createdAt unknown_field',
      'fields.revision unknown_field',
      'fields.recordId unknown_field',
      'fields.count field_value_invalid',
      'fields.Title unknown_field',
      'fields.a.b unknown_field',
      'fields. unknown_field',
    ])
    const readOnly = await create('specimen', { fields: { title: 'x', number: 1 } })
    expect([readOnly.status, readOnly.json.code]).toEqual([400, 'field_read_only'])
  })
})

test('text that cannot be stored is refused wherever text can stand', async () => {
  await writesNothing(service, async () => {
    for (const bad of unstorable) {
      const searches: [object, string][] = [
        [{ search: bad }, 'search'],
        [{ search: `good ${bad}` }, 'search'],
        [{ cursor: bad }, 'cursor'],
        [{ sort: bad }, 'sort'],
        [{ sort: [`${bad}_asc`] }, 'sort[0]'],
        [{ fields: [bad] }, 'fields[0]'],
        [{ expand: [bad] }, 'expand[0]'],
        [{ filter: { field: bad, op: 'eq', value: 1 } }, 'filter.field'],
        [{ filter: { related: bad, some: {} } }, 'filter.related'],
        [{ filter: { field: 'title', op: bad, value: 1 } }, 'filter.op'],
        ...(
          [
            'title',
            'body',
            'email',
            'colour',
            'day',
            'moment',
            'price',
            'count',
            'assignee',
            'company',
            'recordId',
          ] as const
        ).map((field): [object, string] => [{ filter: { field, op: 'eq', value: bad } }, 'filter.value']),
        ...(['contains', 'startsWith', 'endsWith', 'gt', 'ne'] as const).map((op): [object, string] => [
          { filter: { field: 'title', op, value: bad } },
          'filter.value',
        ]),
        [{ filter: { field: 'title', op: 'in', value: ['x', bad] } }, 'filter.value[1]'],
        [{ filter: { field: 'tags', op: 'containsAny', value: [bad] } }, 'filter.value[0]'],
      ]
      for (const [body, field] of searches) {
        const answer = await ask('POST', '/objects/specimen/records/search', { body })
        expect([JSON.stringify(body), answer.status, answer.json.details?.[0]?.field]).toEqual([
          JSON.stringify(body),
          400,
          field,
        ])
      }
      for (const [body, field] of [
        [{ fields: { title: 'x' }, externalKey: bad }, 'externalKey'],
        [{ fields: { title: 'x' }, ownerUserId: bad }, 'ownerUserId'],
        [{ fields: { title: 'x' }, participants: [bad] }, 'participants[0]'],
        [{ fields: { title: 'x', [bad]: 1 } }, `fields.${bad}`],
        [{ fields: {}, [bad]: 1 }, bad],
      ] as const) {
        const answer = await create('specimen', body)
        expect([field, answer.status]).toEqual([field, 400])
        // What is no text arrives as the sign for it.
        expect(answer.json.details?.map((detail) => detail.field.toWellFormed())).toContain(field.toWellFormed())
      }
      const item = { operation: 'upsert', externalKey: bad, fields: {} }
      const batch = await ask('POST', '/objects/specimen/records:batch', { body: { items: [item] } })
      expect(batch.json.details?.[0]?.field).toBe('items[0].externalKey')
    }
    for (const [path, status] of [
      ['/objects/%00/schema', 404],
      ['/objects/a%00b/records/search', 404],
      ['/objects/specimen/records/%00', 400],
      ['/objects/specimen/records/by-key/%00', 400],
      ['/objects/specimen/records/by-key/a%0Ab', 400],
      ['/objects/specimen/records/by-key/a%ED%A0%80b', 400],
      ['/objects/specimen/records/by-key/a%FFb', 400],
      ['/objects/specimen/records/by-key/a%', 400],
      ['/logs/correlations/%00', 400],
    ] as const) {
      const method = path.includes('by-key') ? 'PUT' : path.endsWith('search') ? 'POST' : 'GET'
      const answer = await ask(method, path, method === 'PUT' ? { body: { fields: { title: 'x' } } } : {})
      expect([path, answer.status, answer.text.length > 0]).toEqual([path, status, true])
    }
  })
})
