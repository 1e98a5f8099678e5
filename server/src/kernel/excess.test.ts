import Type from 'typebox'
import { expect, test } from 'vitest'
import { registry } from '../operations.ts'
import { findExcess } from './excess.ts'
import { Strict } from './schemas.ts'
import { assertValid } from './validation.ts'

const schema = Strict({
  items: Type.Array(Strict({ name: Type.Optional(Type.String()) }), { maxItems: 3 }),
  sort: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 2 })])),
  map: Type.Optional(Type.Object({}, { additionalProperties: true, maxProperties: 2 })),
  keyed: Type.Optional(
    Type.Record(
      Type.String({ pattern: '^k' }),
      Strict({ list: Type.Optional(Type.Array(Type.String(), { maxItems: 1 })) }),
      {
        additionalProperties: false,
        maxProperties: 100,
      },
    ),
  ),
})

const entries = (count: number, value: unknown) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, value]))

test.each([
  ['a list', { items: [{}, {}, {}, {}] }, '/items', 'maxItems'],
  ['a list in a union', { items: [], sort: ['a', 'b', 'c'] }, '/sort', 'maxItems'],
  ['a map', { items: [], map: { a: 1, b: 2, c: 3 } }, '/map', 'maxProperties'],
  ['a record', { items: [], keyed: entries(101, {}) }, '/keyed', 'maxProperties'],
  ['a list in a record', { items: [], keyed: { 'k/1': { list: ['a', 'b'] } } }, '/keyed/k~11/list', 'maxItems'],
  ['unknown fields in a record', { items: [], keyed: { k: entries(60, 1) } }, '/keyed/k/k0', 'unknown_field'],
  [
    'unknown fields of an item',
    { items: [Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`x/${n}`, 1]))] },
    '/items/0/x~10',
    'unknown_field',
  ],
])('%s beyond its limit is named without a look at what is in it', (_, value, path, code) => {
  expect(findExcess(schema, value)).toMatchObject({ path, code })
})

test('what keeps its limits is no excess', () => {
  expect(findExcess(schema, { items: [], keyed: entries(100, { list: ['a'] }) })).toBeUndefined()
  expect(findExcess(schema, { items: [{}, { name: 1 }, {}], sort: ['a'], map: { a: 1 }, more: 1 })).toBeUndefined()
})

test('a million bad items are one problem', () => {
  const items = Array.from({ length: 1_000_000 }, () => ({ x: 1 }))
  expect(() => assertValid(schema, { items })).toThrow(
    expect.objectContaining({ details: [{ field: 'items', code: 'maxItems', message: 'Expected at most 3 items.' }] }),
  )
})

test('no request is checked for items that are unique: that takes time by the square of a list', () => {
  const schemas = registry.operations.map(({ params, query, body }) => [params, query, body])
  expect(JSON.stringify(schemas)).not.toContain('uniqueItems')
})

test('every list of a request has a limit', () => {
  const unlimited: string[] = []
  const walk = (node: unknown, at: string) => {
    if (typeof node !== 'object' || node === null) return
    const { type, maxItems } = node as { type?: unknown; maxItems?: unknown }
    if (type === 'array' && maxItems === undefined) unlimited.push(at)
    for (const [name, child] of Object.entries(node)) walk(child, `${at}.${name}`)
  }
  for (const { id, query, body } of registry.operations) walk([query, body], id)
  expect(unlimited).toEqual([])
})
