import { RE2JS } from 're2js'
import { describe, expect, test } from 'vitest'
import { compiledPattern, patternProblem, patternSize } from './patterns.ts'

describe('the pattern of a field', () => {
  test.each([
    '[A-Z]+-[0-9]+',
    '[A-Z]{2}[0-9]{2}[A-Z0-9]{1,30}',
    '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}',
    '[a-z]{1,64}@[a-z]{1,255}',
    '\\Q(a{1000}){1000}\\E',
    '\\p{Greek}{3}\\x{10FFFF}',
    '[]{2000}]{2}',
    'a{,1000}b',
  ])('%s is one that people write', (pattern) => {
    expect(patternProblem(pattern)).toBeUndefined()
    expect(compiledPattern(pattern)).toBeDefined()
  })

  test.each([
    '(a?){1000}',
    'a{1000}'.repeat(71),
    '((a?){30}){33}',
    '(?:[a-z]{1,500}){2,}',
    `${'(a'.repeat(30)}${'){2}'.repeat(9)}${')'.repeat(21)}`,
    '\\p{Greek}{1001}',
    '[\\]]{1001}',
    '(((a{10}){10}){10}){1,}b',
  ])('%s would be a program of thousands of instructions and is not compiled', (pattern) => {
    expect(patternProblem(pattern)).toMatch(/repeats too much/)
    expect(compiledPattern(pattern)).toBeUndefined()
  })

  test.each(['(', ')', '(?=a)', '\\1', '[a', '*'])('%s is not RE2', (pattern) => {
    expect(patternProblem(pattern)).toMatch(/not valid RE2/)
  })

  test('is never much larger than was estimated', () => {
    const atoms = ['a', 'a?', '(a?)', '[a-c]', '\\d', '(?:a|bc)', '(?i)k', '\\p{L}', '(a*){0,3}', '.']
    for (const atom of atoms) {
      for (const repetition of ['', '{7}', '{0,9}', '{5,}', '+', '{3}?']) {
        const pattern = `${atom.startsWith('(?i') ? atom : `(${atom})`}${repetition}x`
        if (!isRe2(pattern)) continue
        const real = RE2JS.compile(pattern).programSize()
        expect([pattern, real]).toEqual([pattern, expect.toSatisfy((size) => size <= 2 * patternSize(pattern) + 10)])
      }
    }
  })
})

function isRe2(pattern: string): boolean {
  try {
    RE2JS.compile(pattern)
    return true
  } catch {
    return false
  }
}
