import { RE2JS } from 're2js'

/**
 * Patterns that builders give to fields. RE2 looks at a text in linear time, but linear in the text times the program that
 * the pattern becomes, and `(a?){1000}` becomes 4,000 instructions: a pattern of 500 characters could have 100,000 of them,
 * take a second to be compiled, and hold one core for 15 seconds with 1,000 characters of text.
 */
type Pattern = ReturnType<typeof RE2JS.compile>

/** Instructions of a program. Up to here a text is looked at in some nanoseconds for each of its characters and these. */
export const patternSizeMax = 1000

const tokens = new RegExp(
  [
    '\\\\Q[^]*?(?:\\\\E|$)', // a literal between \Q and \E
    '\\\\[pPx]\\{[^}]*\\}', // \p{Greek}, \x{10FFFF}
    '\\\\[^]', // another escape
    '\\[\\^?\\]?(?:\\[:\\^?\\w+:\\]|\\\\[^]|[^\\]\\\\])*\\]', // a class
    '\\{(\\d+)(,?)(\\d*)\\}', // a counted repetition
    '[^]',
  ].join('|'),
  'gu',
)

/** About how many instructions a pattern becomes when its counted repetitions are written out. Compiles nothing. */
export function patternSize(pattern: string): number {
  const open = [{ size: 0, last: 0 }]
  const add = (size: number) => {
    const group = open.at(-1)!
    group.size += size
    group.last = size
  }
  for (const [token, least, comma, most] of pattern.matchAll(tokens)) {
    const group = open.at(-1)!
    if (least !== undefined) {
      const times = Math.max(Number(least) + (comma ? 1 : 0), Number(most), 1)
      group.size += group.last * (times - 1)
      group.last *= times
    } else if (token === '(') open.push({ size: 2, last: 0 })
    else if (token === ')' && open.length > 1) add(open.pop()!.size)
    else if ('*+?'.includes(token)) {
      group.size++
      group.last++
    } else add(token.length > 2 && token.startsWith('\\Q') ? token.length : 1)
  }
  return open.reduce((sum, { size }) => sum + size, 0)
}

/** Why a pattern cannot be one, or undefined. Compiles it, unless it is too large for that. */
export function patternProblem(pattern: string): string | undefined {
  try {
    if (compiledPattern(pattern)) return undefined
    return `has a pattern that repeats too much: written out it may have about ${patternSizeMax} parts.`
  } catch {
    return 'has a pattern that is not valid RE2 syntax.'
  }
}

const compiled = new Map<string, Pattern>()

/** The pattern, ready to match; undefined where it is too large to be compiled. Throws where it is not RE2 syntax. */
export function compiledPattern(pattern: string): Pattern | undefined {
  let found = compiled.get(pattern)
  if (!found) {
    if (patternSize(pattern) > patternSizeMax) return undefined
    found = RE2JS.compile(pattern)
    if (compiled.size >= 1000) compiled.clear()
    compiled.set(pattern, found)
  }
  return found
}
