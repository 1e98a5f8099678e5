/** Deeper nesting than anything that is sent to this service needs; a million levels would overflow the stack of what reads it. */
export const jsonDepthMax = 64

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
