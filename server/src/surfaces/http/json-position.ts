/**
 * Finds where a text stops being JSON. The engine's own parser names a position only for some mistakes, and repeats parts
 * of the body for others; a caller is told the position for all of them. Runs only after parsing has failed.
 */
export function failurePosition(text: string): number {
  const open: string[] = []
  let state: State = 'value'
  for (let at = skipSpace(text, 0); ; ) {
    if (state === 'end') return at
    const end = tokenEnd(text, at)
    if (end === at) return at
    const next = step(state, text[at]!, open)
    if (next === undefined) return at
    state = next
    at = skipSpace(text, end)
  }
}

type State = 'value' | 'valueOrEnd' | 'name' | 'nameOrEnd' | 'colon' | 'comma' | 'end'

/** What may follow a token that starts with `first`, or undefined where that token may not stand. */
function step(state: State, first: string, open: string[]): State | undefined {
  switch (first) {
    case '}':
    case ']': {
      const mayClose = state === 'comma' || state === (first === '}' ? 'nameOrEnd' : 'valueOrEnd')
      if (!mayClose || open.pop() !== first) return undefined
      return open.length === 0 ? 'end' : 'comma'
    }
    case ':':
      return state === 'colon' ? 'value' : undefined
    case ',':
      if (state !== 'comma') return undefined
      return open.at(-1) === '}' ? 'name' : 'value'
  }
  if (first === '"' && (state === 'name' || state === 'nameOrEnd')) return 'colon'
  if (state !== 'value' && state !== 'valueOrEnd') return undefined
  if (first === '{' || first === '[') {
    open.push(first === '{' ? '}' : ']')
    return first === '{' ? 'nameOrEnd' : 'valueOrEnd'
  }
  return open.length === 0 ? 'end' : 'comma'
}

const space = /[ \t\n\r]*/y
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

function skipSpace(text: string, at: number): number {
  space.lastIndex = at
  space.test(text)
  return space.lastIndex
}

/** The end of the token at `at`; `at` itself where there is none. */
function tokenEnd(text: string, at: number): number {
  const first = text[at]
  if (first === undefined) return at
  if ('{}[],:'.includes(first)) return at + 1
  if (first === '"') return stringEnd(text, at)
  scalar.lastIndex = at
  return scalar.test(text) ? scalar.lastIndex : at
}

const escapeSequence = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

function stringEnd(text: string, start: number): number {
  for (let at = start + 1; at < text.length; ) {
    if (text[at] === '"') return at + 1
    if (text.charCodeAt(at) < 0x20) return start
    if (text[at] !== '\\') {
      at++
      continue
    }
    escapeSequence.lastIndex = at
    if (!escapeSequence.test(text)) return start
    at = escapeSequence.lastIndex
  }
  return start
}
