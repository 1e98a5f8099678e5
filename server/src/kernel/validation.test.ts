import Type from 'typebox'
import { expect, test } from 'vitest'
import { Failure } from './errors.ts'
import { assertValid } from './validation.ts'

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

function messageFor(value: unknown): string | undefined {
  try {
    assertValid(schema, value)
  } catch (error) {
    return error instanceof Failure ? error.details?.[0]?.message : String(error)
  }
  return undefined
}

test.each([
  [{ appKey: 'My App' }, 'Expected something like "crm", matching ^[a-z][a-z0-9-]{0,49}$.'],
  [{ slug: 'Big_Corp' }, 'Expected something like "northwind". Lower-case letters, digits and hyphens.'],
  [{ bare: 'b' }, 'Must match pattern "^a$".'],
  [{ appId: 'nope' }, 'Expected a UUID.'],
  [{ from: '2026-09-01' }, 'Expected a moment with its time zone, for instance 2026-09-01T00:00:00Z.'],
  [{ day: 'today' }, 'Expected a date, for instance 2026-09-01.'],
])('says in words what %j should look like', (value, message) => {
  expect(messageFor(value)).toBe(message)
})
