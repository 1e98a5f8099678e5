import { expect, test } from 'vitest'
import { Failure } from '../../kernel/errors.ts'
import { parseJson } from './json-body.ts'

function detailOf(text: string) {
  try {
    parseJson(Buffer.from(text))
  } catch (error) {
    if (error instanceof Failure) return error.details![0]
    throw error
  }
  throw new Error('That was JSON.')
}

test.each([
  ['x', 'line 1, column 1'],
  ['{"a": x}', 'line 1, column 7'],
  ['{\n"a": x}', 'line 2, column 6'],
  ['{\n\n\r\n  x}', 'line 4, column 3'],
  ['\n', 'line 2, column 1'],
  ['[1\n\n', 'line 3, column 1'],
  ['["a\nb"]', 'line 1, column 2'],
])('%j stops being JSON at %s', (text, place) => {
  expect(detailOf(text)).toMatchObject({ message: `Not valid JSON at ${place}.` })
})

test('the place is looked for in bodies of up to 1 MB', () => {
  const broken = (size: number) => `[${'\n'.repeat(size - 2)}x`
  const largest = 1024 * 1024
  expect(detailOf(broken(largest))).toMatchObject({ field: `position ${largest - 1}` })
  expect(detailOf(broken(largest + 1))).toMatchObject({ field: 'body', message: 'Not valid JSON.' })
})
