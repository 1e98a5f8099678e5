import { expect, test } from 'vitest'
import { evidenceOf } from './evidence.ts'

const of = (body: Uint8Array | string, bodyTruncated = false) => evidenceOf({ body: Buffer.from(body), bodyTruncated })

test('text is kept as it is, apart from what is no text', () => {
  expect(of('{"ok": true}\r\n\tü 東京 🚲')).toEqual({
    responseExcerpt: '{"ok": true}\r\n\tü 東京 🚲',
    responseTruncated: false,
  })
  expect(of('a\u0000b\u001b[31mc\u007f').responseExcerpt).toBe('ab[31mc')
})

test('nothing, and what is no UTF-8, is null', () => {
  for (const body of ['', '\u0000', Buffer.from([0xff, 0xd8, 0xff]), Buffer.from('Zo\xeb', 'latin1')]) {
    expect(of(body).responseExcerpt).toBeNull()
  }
})

test('it has at most 4 KiB, and ends with a whole character', () => {
  const { responseExcerpt, responseTruncated } = of(`a${'🚲'.repeat(2000)}`)
  expect(responseExcerpt).toBe(`a${'🚲'.repeat(1023)}`)
  expect(responseTruncated).toBe(true)
  expect(of(Buffer.from('🚲').subarray(0, 3), true)).toEqual({ responseExcerpt: null, responseTruncated: true })
  expect(of('x'.repeat(4096)).responseTruncated).toBe(false)
})
