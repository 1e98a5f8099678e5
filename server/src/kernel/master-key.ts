/**
 * Reads a master key as people write it: 64 hex digits, or 32 bytes in base64. Throws an Error with words for people,
 * which do not repeat what was written.
 */
export function parseMasterKey(text: string): Uint8Array {
  const isHex = /^[0-9a-f]{64}$/i.test(text)
  const isBase64 = /^[A-Za-z0-9+/_-]{43}=?$/.test(text)
  if (!isHex && !isBase64) throw new Error('must be 32 bytes in base64 or hex')
  return new Uint8Array(Buffer.from(text, isHex ? 'hex' : 'base64'))
}
