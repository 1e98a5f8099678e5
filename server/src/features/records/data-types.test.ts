import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Application, objectOf, startApplication } from '../../../test/support/application.ts'
import { dataTypeCases as cases, caseOptions as options } from '../../../test/support/data-type-cases.ts'
import type { RecordClient } from '../../../test/support/record-service.ts'
import { dataTypes } from '../../shared/catalogue/data-types.ts'

/** Each data type, through the service: what it keeps and gives back, what counts as a change, what it refuses. */
const people = { users: { owner: { owner: true } }, credentials: { live: {} } } as const
const plan = { organizations: { a: people, b: people } } as const
const typeKeys = Object.keys(cases) as (keyof typeof cases)[]

/** How a server of somebody else's may be set up: none of it may reach a value. */
const settings = [
  "datestyle = 'German, DMY'",
  "timezone = 'Pacific/Kiritimati'",
  'extra_float_digits = -15',
  "bytea_output = 'escape'",
  "default_transaction_isolation = 'serializable'",
  'default_transaction_deferrable = on',
  "search_path = 'nowhere'",
  "intervalstyle = 'sql_standard'",
  "xmlbinary = 'hex'",
  'array_nulls = off',
  'transform_null_equals = on',
  'quote_all_identifiers = on',
]

let app: Application<typeof plan>
let things: RecordClient

beforeAll(async () => {
  app = await startApplication(
    plan,
    {
      objects: [
        objectOf(
          'thing',
          [
            ...typeKeys.map((dataType) => ({
              fieldKey: dataType,
              dataType,
              ...(/elect/.test(dataType) && { options }),
              ...(dataType === 'text' && { searchable: true }),
            })),
            { fieldKey: 'user', dataType: 'user' },
            { fieldKey: 'reference', dataType: 'reference', references: 'other' },
            { fieldKey: 'number', dataType: 'autoNumber' },
          ],
          'text',
        ),
        objectOf('other', [{ fieldKey: 'name', dataType: 'text' }]),
        objectOf('numbered', [
          { fieldKey: 'number', dataType: 'autoNumber' },
          { fieldKey: 'code', dataType: 'text', unique: true },
          { fieldKey: 'second', dataType: 'autoNumber' },
        ]),
        objectOf('single', [
          { fieldKey: 'text', dataType: 'text', unique: true },
          { fieldKey: 'integer', dataType: 'integer', unique: true },
          { fieldKey: 'decimal', dataType: 'decimal', unique: true },
          { fieldKey: 'dateTime', dataType: 'dateTime', unique: true },
          { fieldKey: 'email', dataType: 'email', unique: true },
          { fieldKey: 'select', dataType: 'select', options, unique: true },
        ]),
      ],
    },
    { settings },
  )
  things = app.records(app.organizations.a.users.owner, 'thing')
})
afterAll(() => app?.close())

/** JSON with sorted names: what compares by structure stumbles over `constructor` and `__proto__` as names. */
const sorted = (value: unknown) =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  )

const short = (json: string) => json.slice(0, 80)
const only = (key: string, value: string) => `{"fields":{"${key}":${value}}}`

describe.each(typeKeys)('%s', (key) => {
  const { values, same = [], refused } = cases[key]

  test('reads as the normalised value, wherever it is read', async () => {
    for (const [written, read] of values) {
      const value = sorted(JSON.parse(read))
      const { status, body } = await things.createFromJson(only(key, written))
      expect([short(written), status, sorted(body.fields?.[key])]).toEqual([short(written), 201, value])
      const { recordId } = body
      expect(sorted((await things.get(recordId)).body.fields[key])).toBe(value)
      const found = await things.search({ filter: { field: 'recordId', op: 'eq', value: recordId }, fields: [key] })
      expect(found.body.records.map(({ fields }) => [Object.keys(fields), sorted(fields[key])])).toEqual([
        [[key], value],
      ])
    }
  })

  test('an update tells before and after, the same value is no change, and null clears', async () => {
    const { body: start } = await things.create({ fields: {} })
    const { recordId } = start
    let revision = start.revision
    let before = 'null'
    const write = async (json: string) => {
      const { status, body } = await things.updateFromJson(recordId, only(key, json))
      expect([short(json), status]).toEqual([short(json), 200])
      return body
    }
    const historyOf = async () => (await things.history(recordId, { pageSize: '1' })).body.items[0]!
    for (const [written, read] of [...values, ['null', 'null'] as const]) {
      const after = sorted(JSON.parse(read))
      const updated = await write(written)
      expect(sorted(updated.fields[key])).toBe(after)
      if (before !== after) {
        revision++
        const { changes, operation } = await historyOf()
        const told = changes.map((change) => [change.field, sorted(change.before), sorted(change.after)])
        expect([operation, told]).toEqual(['updated', [[key, before, after]]])
      }
      expect([short(written), updated.revision]).toEqual([short(written), revision])
      // The same again: nothing happened.
      expect((await write(written)).revision).toBe(revision)
      before = after
    }
    for (const [first, second] of same) {
      const { revision: then } = await write(first)
      expect([first, second, (await write(second)).revision]).toEqual([first, second, then])
    }
  })

  test('what it cannot keep is refused, and nothing is written', async () => {
    const before = (await things.count({ includeArchived: true })).body.totalRecords
    const { body: start } = await things.createFromJson(only(key, values[0]![0]))
    for (const json of refused) {
      for (const answer of [
        await things.createFromJson(only(key, json)),
        await things.updateFromJson(start.recordId, only(key, json)),
      ]) {
        const said = [
          json.slice(0, 80),
          answer.status,
          answer.body.code,
          answer.body.details?.map(({ field }) => field),
        ]
        expect(said).toEqual([short(json), 400, 'field_value_invalid', [`fields.${key}`]])
      }
    }
    expect((await things.get(start.recordId)).body).toMatchObject({ revision: 1, fields: start.fields })
    expect((await things.count({ includeArchived: true })).body.totalRecords).toBe(before + 1)
  })
})

test('every data type has its cases', () => {
  expect([...typeKeys, 'user', 'reference', 'autoNumber'].sort()).toEqual(Object.keys(dataTypes).sort())
})

const inA = (objectKey: string) => app.records(app.organizations.a.users.owner, objectKey)
const inB = (objectKey: string) => app.records(app.organizations.b.users.owner, objectKey)
const unknownId = '0199a1b2-0000-7000-8000-0000000000aa'

describe('autoNumber', () => {
  test('counts from 1 for each organization, without gaps or doubles, whoever creates at the same time', async () => {
    const numbers = new Map<RecordClient, number[]>([inA('numbered'), inB('numbered')].map((client) => [client, []]))
    const clients = [...numbers.keys()]
    let codes = 0
    const note = (client: RecordClient, fields: Readonly<Record<string, unknown>>) => {
      // Two counters of one object do not disturb each other.
      expect(fields['second']).toBe(fields['number'])
      numbers.get(client)!.push(fields['number'] as number)
    }
    const createMany = async (client: RecordClient) => {
      for (let round = 0; round < 6; round++) {
        const { status, body } = await client.create({ fields: { code: `c${codes++}` } })
        expect(status).toBe(201)
        note(client, body.fields)
        // What fails takes no number: a duplicate on its own, in a batch, and in one that is undone.
        expect((await client.create({ fields: { code: body.fields['code'] } })).body.code).toBe('duplicate_value')
        const items = [`c${codes++}`, body.fields['code'], `c${codes++}`].map((code) => ({
          operation: 'create',
          fields: { code },
        }))
        expect((await client.batch(items, true)).body.code).toBe('batch_failed')
        const { results } = (await client.batch(items)).body
        expect(results.map((result) => result.status)).toEqual([201, 409, 201])
        const [first, , third] = results.map((result) => result.record)
        for (const record of [first, third]) note(client, record!.fields)
        // In the order of the items.
        expect(first!.fields['number']).toBeLessThan(third!.fields['number'] as number)
      }
    }
    await Promise.all(Array.from({ length: 8 }, (_, index) => createMany(clients[index % 2]!)))
    for (const taken of numbers.values()) {
      expect(taken.sort((a, b) => a - b)).toEqual(Array.from({ length: 4 * 6 * 3 }, (_, index) => index + 1))
    }
  })

  test('is set by the service alone, and stays', async () => {
    const { body } = await inA('numbered').create({ fields: {} })
    for (const answer of [
      await inA('numbered').create({ fields: { number: 5 } }),
      await inA('numbered').update(body.recordId, { fields: { number: 5 } }),
      await inA('numbered').update(body.recordId, { fields: { number: null } }),
    ]) {
      expect([answer.status, answer.body.code]).toEqual([400, 'field_read_only'])
    }
    await inA('numbered').archive(body.recordId)
    const { body: restored } = await inA('numbered').restore(body.recordId)
    expect(restored.fields['number']).toBe(body.fields['number'])
    expect(restored.displayName).toBe(String(body.fields['number']))
  })
})

describe('unique', () => {
  const duplicates: readonly (readonly [key: string, first: unknown, second: unknown])[] = [
    ['text', 'ABC', 'abc'],
    ['text', 'ΟΔΟΣ', 'οδος'],
    ['text', 'İ', 'i\u0307'],
    ['text', '', ''],
    ['email', 'Ada@Example.com', 'ada@EXAMPLE.COM'],
    ['integer', 7, '007'],
    ['integer', '9223372036854775807', '9223372036854775807'],
    ['decimal', '1.5', '1.500'],
    ['decimal', '9'.repeat(38), '9'.repeat(38)],
    ['dateTime', '2026-09-14T09:30:00Z', '2026-09-14T11:30:00.0004+02:00'],
    ['select', 'NULL', 'NULL'],
  ]
  const distinct: readonly (readonly [key: string, first: unknown, second: unknown])[] = [
    ['text', 'straße', 'STRASSE'],
    ['text', 'é', 'e\u0301'],
    ['text', 'x', 'x '],
    ['integer', '9007199254740992', '9007199254740993'],
    ['decimal', '9007199254740992', '9007199254740993'],
    ['decimal', '0.1', '0.100000000000000001'],
    ['select', 'open', 'a,b'],
    ['text', null, null],
  ]
  const refusal = (key: string) => ({ code: 'duplicate_value', details: [{ field: `fields.${key}` }] })

  test.each(duplicates)('%s: %j and %j are one value', async (key, first, second) => {
    const single = inA('single')
    const { body: holder } = await single.create({ fields: { [key]: first } })
    const again = await single.create({ fields: { [key]: second } })
    expect([again.status, again.body]).toMatchObject([409, refusal(key)])
    const { body: rival } = await single.create({ fields: {} })
    expect((await single.update(rival.recordId, { fields: { [key]: second } })).body).toMatchObject(refusal(key))
    expect((await single.get(rival.recordId)).body).toMatchObject({ revision: 1, fields: { [key]: null } })
    // Another spelling of its own value is not a duplicate.
    expect((await single.update(holder.recordId, { fields: { [key]: second } })).status).toBe(200)
    // Another organization has values of its own.
    const { body: foreign } = await inB('single').create({ fields: { [key]: first } })
    expect((await inB('single').archive(foreign.recordId)).status).toBe(200)
    // Archived records hold nothing, and cannot come back to what is taken.
    await single.archive(holder.recordId)
    expect((await single.update(rival.recordId, { fields: { [key]: second } })).status).toBe(200)
    const back = await single.restore(holder.recordId)
    expect([back.status, back.body]).toMatchObject([409, refusal(key)])
    expect((await single.get(holder.recordId)).body.archivedAt).not.toBeNull()
    await single.archive(rival.recordId)
    expect((await single.restore(holder.recordId)).body).toMatchObject({ archivedAt: null })
    await single.archive(holder.recordId)
  })

  test.each(distinct)('%s: %j and %j are two', async (key, first, second) => {
    const made = await Promise.all([first, second].map((value) => inA('single').create({ fields: { [key]: value } })))
    expect(made.map((answer) => answer.status)).toEqual([201, 201])
    await Promise.all(made.map((answer) => inA('single').archive(answer.body.recordId)))
  })

  test('sixteen who want one value at the same time: one gets it', async () => {
    for (let round = 0; round < 5; round++) {
      const wanted = Array.from({ length: 16 }, (_, index) => (index % 2 === 0 ? `Race ${round}` : `rACE ${round}`))
      const answers = await Promise.all(wanted.map((text) => inA('single').create({ fields: { text } })))
      expect(answers.map((answer) => answer.status).sort()).toEqual([201, ...Array(15).fill(409)])
    }
  })
})

describe('reference and user', () => {
  test('point to a record of their object, or a user, of the same organization', async () => {
    const { body: other } = await inA('other').create({ fields: { name: 'Other' } })
    const { body: thing } = await things.create({ fields: {} })
    const { body: foreign } = await inB('other').create({ fields: { name: 'Foreign' } })
    const userId = app.organizations.a.users.owner.userId
    const { body: pointing } = await things.create({
      fields: { reference: other.recordId.toUpperCase(), user: userId.toUpperCase() },
    })
    expect(pointing.fields).toMatchObject({ reference: other.recordId, user: userId })
    const wrong: readonly (readonly [key: string, value: unknown, code: string])[] = [
      ['reference', thing.recordId, 'reference_not_found'],
      ['reference', foreign.recordId, 'reference_not_found'],
      ['reference', unknownId, 'reference_not_found'],
      ['reference', userId, 'reference_not_found'],
      ['reference', 'x', 'field_value_invalid'],
      ['reference', { recordId: other.recordId }, 'field_value_invalid'],
      ['user', app.organizations.b.users.owner.userId, 'reference_not_found'],
      ['user', other.recordId, 'reference_not_found'],
      ['user', unknownId, 'reference_not_found'],
      ['user', '$me', 'field_value_invalid'],
    ]
    for (const [key, value, code] of wrong) {
      const fields = { text: 'kept out', [key]: value }
      const answers = [await things.create({ fields }), await things.update(pointing.recordId, { fields })]
      const { body } = await things.batch([{ operation: 'create', fields }])
      for (const said of [...answers.map((answer) => answer.body), body.results[0]!.error]) {
        expect([key, value, said]).toMatchObject([key, value, { code, details: [{ field: `fields.${key}`, code }] }])
      }
    }
    expect((await things.get(pointing.recordId)).body).toMatchObject({ revision: 1, fields: pointing.fields })
  })

  test('may point to an archived record, which stays where it is and is found by its id only', async () => {
    const { body: other } = await inA('other').create({ fields: { name: 'Leaving' } })
    await inA('other').archive(other.recordId)
    const { status, body } = await things.create({ fields: { reference: other.recordId } })
    expect([status, body.fields['reference']]).toEqual([201, other.recordId])
    const { body: shown } = await things.get(body.recordId, { expand: ['reference'] })
    expect(shown.expanded?.['reference']).toMatchObject({ recordId: other.recordId, archivedAt: expect.any(String) })
    const related = { related: 'reference', some: { field: 'recordId', op: 'eq', value: other.recordId } }
    expect((await things.count({ filter: related })).body.totalRecords).toBe(0)
    const direct = { field: 'reference', op: 'eq', value: other.recordId }
    expect((await things.count({ filter: direct })).body.totalRecords).toBe(1)
  })
})
