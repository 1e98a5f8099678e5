import { expect, test } from 'vitest'
import type { Field } from '../catalogue/field.ts'
import { valueOfCell } from './cells.ts'

const field = { fieldKey: 'extra', dataType: 'json' } as Field

test.each([
  ['is nested deeper than a body may be', `${'['.repeat(400_000)}${']'.repeat(400_000)}`, 'json_too_deep'],
  ['names a prototype', '{"__proto__":{"admin":true}}', 'invalid_json'],
  ['names a prototype in an escaped way', '{"a":{"\\u005f_proto__":1}}', 'invalid_json'],
])('JSON in a cell that %s is refused by the name of its field', (_what, cell, code) => {
  expect(() => valueOfCell(cell, field)).toThrow(
    expect.objectContaining({ code, details: [expect.objectContaining({ field: 'extra' })] }),
  )
})

test('other JSON in a cell is its value, and what is none stays text', () => {
  expect(valueOfCell('{"a":[1]}', field)).toEqual({ a: [1] })
  expect(valueOfCell('[', field)).toBe('[')
})
