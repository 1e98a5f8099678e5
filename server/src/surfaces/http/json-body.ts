import { isUtf8 } from 'node:buffer'
import { parse } from 'secure-json-parse'
import { type Failure, fail } from '../../kernel/errors.ts'
import { isDeeperThan, jsonDepthMax } from '../../kernel/json-depth.ts'
import { failurePosition } from './json-position.ts'

/** Parses a JSON body whose size is already bounded. An empty body is `undefined`. */
export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined
  if (isDeeperThan(bytes, jsonDepthMax)) {
    throw fail('json_too_deep', { field: 'body', message: `More than ${jsonDepthMax} levels.` })
  }
  if (!isUtf8(bytes)) throw fail('invalid_json', { field: 'body', message: 'The body is not valid UTF-8.' })
  const text = bytes.toString('utf8')
  try {
    return parse(text)
  } catch (error) {
    throw invalid(error, text)
  }
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
