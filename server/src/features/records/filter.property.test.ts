import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { filtersOver } from '../../../test/support/record-model/arbitrary-filters.ts'
import { sees } from '../../../test/support/record-model/envelope.ts'
import { type Filter, matches } from '../../../test/support/record-model/filter.ts'
import { type Asker, type AskerName, type Population, populate } from '../../../test/support/record-model/population.ts'
import { searchAll } from '../../../test/support/record-service.ts'
import { patienceMs, runs, seed } from '../../../test/support/seed.ts'

/**
 * Filters against the model of `test/support/record-model`: two objects with every data type, a few hundred records of
 * awkward values, and random trees of every operator. What search finds, what it counts, and what count counts must be
 * what the model finds.
 */
let population: Population
/** What the schema says that each field takes, by `<objectKey>.<fieldKey>`. */
let operators: ReadonlyMap<string, readonly string[]>

beforeAll(async () => {
  population = await populate({ things: 360, others: 60 })
  operators = await readOperators()
})
afterAll(() => population?.running.close())

async function readOperators() {
  const { running, appId, owner, world } = population
  const found = new Map<string, readonly string[]>()
  for (const objectKey of world.objects.keys()) {
    const { body } = await running.send<{ fields: { fieldKey: string; operators: string[] }[] }>(
      'developerObjectsGetSchema',
      owner,
      { params: { saasAppId: appId, objectKey } },
    )
    for (const field of body.fields) found.set(`${objectKey}.${field.fieldKey}`, field.operators)
  }
  return found
}

const identity = ['eq', 'ne', 'in', 'notIn', 'isNull', 'isNotNull']
const ordered = [...identity, 'lt', 'lte', 'gt', 'gte', 'between']
/** What every record has is not in the schema; it takes what a field of its type does. */
const systemOperators: Readonly<Record<string, readonly string[]>> = {
  dateTime: ordered,
  integer: ordered,
  user: identity,
  reference: identity,
}

function questionsOf(name: AskerName) {
  const { askers, world, thing } = population
  const userIds = Object.values(askers).flatMap(({ model }) => model.userId ?? [])
  const filters = filtersOver(thing, {
    world,
    now: world.now,
    userIds,
    hasUser: askers[name].model.userId !== null,
    operatorsOf: (object, field) =>
      operators.get(`${object.objectKey}.${field.fieldKey}`) ?? systemOperators[field.dataType]!,
  })
  return fc.record({ asker: fc.constant(name), filter: filters, includeArchived: fc.boolean() })
}

describe(`filters (PORTICO_TEST_SEED=${seed})`, () => {
  test(
    'find exactly what the model finds, and count it',
    async () => {
      const asked = new Map<string, number>()
      const questions = fc.oneof(questionsOf('owner'), questionsOf('live'), questionsOf('sales'))
      await fc.assert(
        fc.asyncProperty(questions, async ({ asker, filter, includeArchived }) => {
          const { client, model } = population.askers[asker]
          const [{ records, total }, counted] = await Promise.all([
            searchAll(client, { filter, includeArchived, fields: [] }),
            client.count({ filter, includeArchived }),
          ])
          note(filter, asked)
          const expected = expectedIds(filter, model, includeArchived)
          expect(records.map((record) => record.recordId).sort()).toEqual(expected)
          expect(total).toBe(expected.length)
          expect(counted.body.totalRecords).toBe(expected.length)
        }),
        runs(800),
      )
      // A property that never asks proves nothing: every operator has had its turn.
      for (const operator of new Set([...operators.values()].flat())) {
        expect([operator, asked.get(operator) ?? 0]).toEqual([
          operator,
          expect.toSatisfy((times: number) => times > 20),
        ])
      }
    },
    patienceMs,
  )

  test('read every literal piece of a text as part of it, also where lower case depends on what follows', async () => {
    const { askers, thing, drafts } = population
    const { client } = askers.owner
    const { fieldKey } = thing.fields.find((field) => field.dataType === 'text')!
    const texts = ['ΟΔΟΣΑ', 'ΑΣ.Β', 'İZMİR', 'ILIK', 'Straße', 'a%b_c\\d', '\'--";', 'é\u0301', '👩\u200d👧!', '𐐀𐐨']
    for (const whole of texts) {
      const [draft] = drafts(1)
      const { recordId } = (
        await client.create({ fields: { ...Object.fromEntries(draft!.values), [fieldKey]: whole } })
      ).body
      const points = [...whole]
      const only = { field: 'recordId', op: 'eq', value: recordId }
      for (let from = 0; from < points.length; from++) {
        for (let to = from + 1; to <= points.length; to++) {
          const value = points.slice(from, to).join('')
          const or = [
            { field: fieldKey, op: 'contains', value },
            { field: fieldKey, op: from === 0 ? 'startsWith' : 'contains', value },
            { field: fieldKey, op: to === points.length ? 'endsWith' : 'contains', value },
          ]
          const { body } = await client.count({ filter: { and: [only, ...or] } })
          expect([whole, value, body.totalRecords]).toEqual([whole, value, 1])
        }
      }
    }
  })

  test('compare decimals exactly, also where the floats beside them are equal', async () => {
    const { askers, thing } = population
    const { client } = askers.owner
    const { fieldKey } = thing.fields.find((field) => field.dataType === 'decimal')!
    const ascending = [
      '9007199254740991.9',
      '9007199254740992',
      '9007199254740992.000000000000000001',
      '9007199254740993',
    ]
    const made = await Promise.all(ascending.map((value) => client.create({ fields: { [fieldKey]: value } })))
    const ids = made.map((answer) => answer.body.recordId)
    const these = { field: 'recordId', op: 'in', value: ids }
    const found = async (op: string, value: unknown) => {
      const { records } = await searchAll(client, {
        filter: { and: [these, { field: fieldKey, op, value }] },
        fields: [],
      })
      return ids.flatMap((id, index) => (records.some((record) => record.recordId === id) ? index : []))
    }
    for (const [index, value] of ascending.entries()) {
      const [below, above] = [[0, 1, 2, 3].slice(0, index), [0, 1, 2, 3].slice(index + 1)]
      expect(await found('lt', value)).toEqual(below)
      expect(await found('lte', value)).toEqual([...below, index])
      expect(await found('gt', value)).toEqual(above)
      expect(await found('gte', value)).toEqual([index, ...above])
      expect(await found('eq', value)).toEqual([index])
      expect(await found('ne', value)).toEqual([...below, ...above])
      expect(await found('in', [value])).toEqual([index])
      expect(await found('notIn', [value])).toEqual([...below, ...above])
      expect(await found('between', [value, ascending.at(-1)])).toEqual([index, ...above])
    }
  })

  test('refuse names that are no fields, whatever JavaScript makes of them', async () => {
    const { client } = population.askers.owner
    for (const field of [
      '__proto__',
      'constructor',
      'prototype',
      'nothing',
      '',
      'thing',
      'externalKey',
      'a"; --',
      5,
      null,
    ]) {
      for (const filter of [
        { field, op: 'eq', value: 'x' },
        { related: field, some: { field: 'revision', op: 'isNull' } },
      ]) {
        const { status, body } = await client.search({ filter })
        expect([field, status, body.code]).toEqual([field, 400, 'unknown_field'])
        expect(body.details?.[0]?.field).toBe('related' in filter ? 'filter.related' : 'filter.field')
      }
    }
  })

  test('refuse what is not in the language, at its position', async () => {
    const { askers, thing } = population
    const { client } = askers.owner
    const keyOf = (dataType: string) => thing.fields.find((field) => field.dataType === dataType)!.fieldKey
    const leaf = { field: 'revision', op: 'eq', value: 1 }
    const nested = (depth: number): object => (depth === 1 ? leaf : { not: nested(depth - 1) })
    const refusals: readonly (readonly [filter: unknown, field: string])[] = [
      [{}, 'filter.field'],
      [{ and: [] }, 'filter.and'],
      [{ and: {} }, 'filter.and'],
      [{ and: [leaf], or: [leaf] }, 'filter.or'],
      [{ and: [leaf, { ...leaf, extra: 1 }] }, 'filter.and[1].extra'],
      [{ and: [leaf, 5] }, 'filter.and[1]'],
      [{ not: [leaf] }, 'filter.not'],
      [nested(6), 'filter.not.not.not.not.not'],
      [{ and: Array.from({ length: 51 }, () => leaf) }, 'filter.and[50]'],
      [{ ...leaf, op: 'like' }, 'filter.op'],
      [{ ...leaf, op: 'toString' }, 'filter.op'],
      [{ ...leaf, op: 'contains', value: '1' }, 'filter.op'],
      [{ ...leaf, value: null }, 'filter.value'],
      [{ ...leaf, value: undefined }, 'filter.value'],
      [{ ...leaf, value: 1.5 }, 'filter.value'],
      [{ ...leaf, value: '9223372036854775808' }, 'filter.value'],
      [{ ...leaf, op: 'in', value: 1 }, 'filter.value'],
      [{ ...leaf, op: 'in', value: [1, 'one'] }, 'filter.value[1]'],
      [{ ...leaf, op: 'in', value: Array(201).fill(1) }, 'filter.value'],
      [{ ...leaf, op: 'between', value: [1] }, 'filter.value'],
      [{ ...leaf, op: 'isNull', value: 1 }, 'filter.value'],
      [{ field: keyOf('text'), op: 'contains', value: '' }, 'filter.value'],
      [{ field: keyOf('text'), op: 'eq', value: 5 }, 'filter.value'],
      [{ field: keyOf('text'), op: 'eq', value: 'a\0b' }, 'filter.value'],
      [{ field: keyOf('text'), op: 'eq', value: 'a\ud800' }, 'filter.value'],
      [{ field: keyOf('select'), op: 'eq', value: 'no such option' }, 'filter.value'],
      [{ field: keyOf('date'), op: 'eq', value: '2026-02-30' }, 'filter.value'],
      [{ field: keyOf('dateTime'), op: 'eq', value: '2026-02-03T10:00:00' }, 'filter.value'],
      [{ field: keyOf('date'), op: 'eq', value: '$now' }, 'filter.value'],
      [{ field: keyOf('boolean'), op: 'eq', value: 'true' }, 'filter.value'],
      [{ field: keyOf('reference'), op: 'eq', value: 'x' }, 'filter.value'],
      [{ field: keyOf('json'), op: 'eq', value: {} }, 'filter.op'],
      [{ related: keyOf('text'), some: leaf }, 'filter.related'],
      [{ related: keyOf('reference'), some: leaf, value: 1 }, 'filter.value'],
      [{ related: keyOf('reference') }, 'filter.some'],
    ]
    for (const [filter, field] of refusals) {
      const { status, body } = await client.count({ filter })
      expect([filter, status, body.code, body.details?.[0]?.field]).toEqual([
        filter,
        400,
        field === 'filter.field' ? 'unknown_field' : 'filter_invalid',
        field,
      ])
    }
    for (const fair of [nested(5), { and: Array.from({ length: 50 }, () => leaf) }]) {
      expect((await client.count({ filter: fair })).status).toBe(200)
    }
    const { body } = await askers.live.client.count({ filter: { field: 'ownerUserId', op: 'eq', value: '$me' } })
    expect(body.details?.[0]).toMatchObject({ field: 'filter.value', code: 'filter_invalid' })
  })
})

function expectedIds(filter: Filter, caller: Asker['model'], includeArchived: boolean): string[] {
  const { world } = population
  return [...world.records.values()]
    .filter((record) => record.objectKey === 'thing' && sees(caller, record))
    .filter((record) => includeArchived || record.archivedAt === null)
    .filter((record) => matches(filter, record, caller, world))
    .map((record) => record.recordId)
    .sort()
}

function note(filter: Filter, asked: Map<string, number>): void {
  if ('and' in filter) for (const item of filter.and) note(item, asked)
  else if ('or' in filter) for (const item of filter.or) note(item, asked)
  else if ('not' in filter) note(filter.not, asked)
  else if ('related' in filter) note(filter.some, asked)
  else asked.set(filter.op, (asked.get(filter.op) ?? 0) + 1)
}
