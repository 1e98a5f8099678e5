import { isUtf8 } from 'node:buffer'
import { parse } from 'secure-json-parse'
import { type Failure, fail } from '../../kernel/errors.ts'
import { failurePosition } from './json-position.ts'

/** Deeper nesting than any body of this service needs; a million levels would overflow the stack of what reads it. */
const depthMax = 64

/** Parses a JSON body whose size is already bounded. An empty body is `undefined`. */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined
  if (isDeeperThan(bytes, depthMax)) {
    throw fail('json_too_deep', { field: 'body', message: `More than ${depthMax} levels.` })
  }
  if (!isUtf8(bytes)) throw fail('invalid_json', { field: 'body', message: 'The body is not valid UTF-8.' })
  const text = bytes.toString('utf8')
  try {
    return parse(text)
  } catch (error) {
    throw invalid(error, text)
  }
}

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/**
 * One pass over the bytes before anything is parsed. Brackets inside strings do not count. All bytes of a multi-byte
 * UTF-8 character are above 0x7f, so none is mistaken for a bracket or a quote.
 */
export function isDeeperThan(bytes: Uint8Array, levels: number): boolean {
  if (bytes.length <= levels) return false
  let depth = 0
  let inString = false
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]
    if (inString) {
      if (byte === backslash) at++
      else if (byte === quote) inString = false
    } else if (byte === quote) {
      inString = true
    } else if (byte === openBrace || byte === openBracket) {
      if (++depth > levels) return true
    } else if (byte === closeBrace || byte === closeBracket) {
      depth--
    }
  }
  return false
}

/** In a larger body the place is not looked for: that takes longer than parsing, and a mistake must not cost more. */
const positionBytesMax = 1024 * 1024

/** Names the place where it stops being JSON; never repeats the body. */
function invalid(error: unknown, text: string): Failure {
  if (error instanceof Error && error.message.includes('prototype property')) {
    return fail('invalid_json', { field: '__proto__', message: 'The names of prototypes cannot be used as names.' })
  }
  if (text.length > positionBytesMax) return fail('invalid_json', { field: 'body', message: 'Not valid JSON.' })
  const position = failurePosition(text)
  const place = placeOf(position, text)
  return fail('invalid_json', { field: `position ${position}`, message: `Not valid JSON at ${place}.` })
}

function placeOf(position: number, text: string): string {
  let line = 1
  let start = 0
  for (let end = text.indexOf('\n'); end !== -1 && end < position; end = text.indexOf('\n', start)) {
    line++
    start = end + 1
  }
  return `line ${line}, column ${position - start + 1}`
}
