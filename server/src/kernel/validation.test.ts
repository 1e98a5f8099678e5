import Type from 'typebox'
import { expect, test } from 'vitest'
import { type ErrorDetail, Failure } from './errors.ts'
import { assertValid, checkedQuery } from './validation.ts'

const schema = Type.Object({
  appKey: Type.Optional(Type.String({ pattern: '^[a-z][a-z0-9-]{0,49}$', description: 'Its key.', examples: ['crm'] })),
  slug: Type.Optional(
    Type.String({
      pattern: '^(?!..--)[a-z0-9][a-z0-9-]{0,61}[a-z0-9]$',
      description: 'Lower-case letters, digits and hyphens.',
      examples: ['northwind'],
    }),
  ),
  bare: Type.Optional(Type.String({ pattern: '^a$' })),
  appId: Type.Optional(Type.String({ format: 'uuid' })),
  from: Type.Optional(Type.String({ format: 'date-time' })),
  day: Type.Optional(Type.String({ format: 'date' })),
})

function detailsFor(of: Type.TSchema, value: unknown): readonly ErrorDetail[] {
  try {
    assertValid(of, value)
  } catch (error) {
    if (error instanceof Failure) return error.details ?? []
    throw error
  }
  return []
}

test.each([
  [{ appKey: 'My App' }, 'Expected something like "crm", matching ^[a-z][a-z0-9-]{0,49}$.'],
  [{ slug: 'Big_Corp' }, 'Expected something like "northwind". Lower-case letters, digits and hyphens.'],
  [{ bare: 'b' }, 'Must match pattern "^a$".'],
  [{ appId: 'nope' }, 'Expected a UUID.'],
  [{ from: '2026-09-01' }, 'Expected a moment with its time zone, for instance 2026-09-01T00:00:00Z.'],
  [{ day: 'today' }, 'Expected a date, for instance 2026-09-01.'],
])('says in words what %j should look like', (value, message) => {
  expect(detailsFor(schema, value)[0]?.message).toBe(message)
})

test('a name of the query string that is repeated is refused where one value is taken', () => {
  const query = Type.Object({ state: Type.Enum(['open', 'won']), events: Type.Array(Type.String()) })
  expect(checkedQuery(query, { state: 'open', events: ['a', 'b'] })).toEqual({ state: 'open', events: ['a', 'b'] })
  expect(() => checkedQuery(query, { state: ['open', 'won'] })).toThrow(
    expect.objectContaining({
      details: [expect.objectContaining({ field: 'state', message: expect.stringContaining('once') })],
    }),
  )
})

const unions = Type.Object({
  locations: Type.Optional(
    Type.Union([
      Type.Enum(['all']),
      Type.Array(Type.String({ pattern: '^[a-z]+$', examples: ['north'] }), { examples: [['north']] }),
    ]),
  ),
  billingEmail: Type.Optional(Type.Union([Type.String({ minLength: 3 }), Type.Null()])),
  nested: Type.Optional(Type.Union([Type.Union([Type.Literal('all'), Type.Integer()]), Type.Null()])),
  place: Type.Optional(Type.Union([Type.Object({ x: Type.Integer() }), Type.Null()])),
})

test.each([
  [{ locations: 'north' }, [['locations', 'Expected "all" or a list such as ["north"].']]],
  [{ locations: ['North'] }, [['locations[0]', 'Expected something like "north", matching ^[a-z]+$.']]],
  [{ billingEmail: 3 }, [['billingEmail', 'Expected a string or null.']]],
  [{ billingEmail: 'a' }, [['billingEmail', 'Must not have fewer than 3 characters.']]],
  [{ nested: 'some' }, [['nested', 'Expected "all", an integer or null.']]],
  [{ place: { x: 'a' } }, [['place.x', 'Must be integer.']]],
  [{ place: 'a', nested: {} }, 2],
])('says in one sentence per value what a union takes that %j does not fit', (value, expected) => {
  const details = detailsFor(unions, value)
  if (typeof expected === 'number') expect(details).toHaveLength(expected)
  else expect(details.map(({ field, message }) => [field, message])).toEqual(expected)
})
