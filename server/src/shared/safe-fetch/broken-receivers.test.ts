import type { Socket } from 'node:net'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { afterEach, expect, test } from 'vitest'
import { type Receiver, startReceiver, startTcp } from '../../../test/support/receiver.ts'
import { createSafeFetch, type SafeFetchRequest } from './safe-fetch.ts'

const { fetch, close } = createSafeFetch({ allowLoopback: true })
const open: Receiver[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.close()))
  await close()
})

const request = { method: 'POST', body: '{}', responseBytesMax: 4096, deadlineMs: 10_000 } as const
const ok = 'HTTP/1.1 200 OK\r\n'

/** What becomes of a request to a receiver that answers with bytes of its own, once the request has come. */
async function answered(talk: (socket: Socket) => void, overrides: Partial<SafeFetchRequest> = {}) {
  const receiver = await startTcp((socket) => socket.once('data', () => talk(socket)))
  open.push(receiver)
  return fetch(`http://127.0.0.1:${receiver.port}/`, { ...request, ...overrides })
}

/** Again and again, until the connection is gone; waits while nobody reads. */
function forever(
  socket: Socket,
  piece: string | Uint8Array,
  { first = '', everyMs }: { readonly first?: string | Uint8Array; readonly everyMs?: number } = {},
): void {
  socket.write(first)
  if (everyMs !== undefined) {
    const timer = setInterval(() => socket.write(piece), everyMs)
    socket.once('close', () => clearInterval(timer))
    return
  }
  const write = () => {
    while (!socket.destroyed && socket.write(piece));
    if (!socket.destroyed) socket.once('drain', write)
  }
  write()
}

test.each<[string, (socket: Socket) => void]>([
  ['never answers', () => undefined],
  ['drips its status line', (socket) => forever(socket, 'a', { first: 'HTTP/1.1 200 ', everyMs: 20 })],
  ['drips its headers', (socket) => forever(socket, 'a', { first: `${ok}x: `, everyMs: 20 })],
])('a receiver that %s is timeout', async (_what, talk) => {
  const outcome = await answered(talk, { deadlineMs: 300 })
  expect(outcome).toMatchObject({ category: 'timeout', status: null })
})

test('a receiver that drips its body is timeout, with what came as evidence', async () => {
  const outcome = await answered(
    (socket) => forever(socket, '.', { first: `${ok}content-length: 9999\r\n\r\nhello`, everyMs: 20 }),
    { deadlineMs: 1000 },
  )
  expect(outcome).toMatchObject({ category: 'timeout', status: 200, bodyTruncated: true })
  expect(Buffer.from(outcome.body).toString()).toMatch(/^hello\.+$/)
})

test.each<[string, string, (socket: Socket) => void]>([
  ['resets the connection', 'connection_reset', (socket) => socket.resetAndDestroy()],
  ['closes without an answer', 'connection_reset', (socket) => socket.end()],
  ['closes within its headers', 'connection_reset', (socket) => socket.end(`${ok}x: `)],
  ['closes within its body', 'connection_reset', (socket) => socket.end(`${ok}content-length: 9\r\n\r\nhalf`)],
  [
    'closes within a chunk',
    'connection_reset',
    (socket) => socket.end(`${ok}transfer-encoding: chunked\r\n\r\n9\r\nab`),
  ],
  ['speaks something else', 'network_error', (socket) => socket.end('220 mail.example ESMTP\r\n')],
  ['sends one endless header', 'network_error', (socket) => forever(socket, 'a'.repeat(9999), { first: `${ok}x: ` })],
  ['sends endless headers', 'network_error', (socket) => forever(socket, 'x: y\r\n'.repeat(1000), { first: ok })],
  [
    'sends 101 headers',
    'network_error',
    (socket) => socket.end(`${ok}${'x: y\r\n'.repeat(101)}content-length: 0\r\n\r\n`),
  ],
  [
    'sends endless 1xx',
    'network_error',
    (socket) => forever(socket, 'HTTP/1.1 103 Early Hints\r\nx: y\r\n\r\n'.repeat(100)),
  ],
  ['switches protocols', 'network_error', (socket) => socket.write('HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n')],
  [
    'sends endless trailers',
    'network_error',
    (socket) => forever(socket, 'x: y\r\n'.repeat(1000), { first: `${ok}transfer-encoding: chunked\r\n\r\n0\r\n` }),
  ],
])('a receiver that %s is %s', async (_what, category, talk) => {
  expect((await answered(talk)).category).toBe(category)
})

test('a few 1xx, trailers and half-closing after a whole answer are in order', async () => {
  const informed = await answered((socket) =>
    socket.end(`${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(3)}${ok}content-length: 2\r\n\r\nok`),
  )
  expect(informed).toMatchObject({ category: 'success', status: 200 })
  const trailed = await answered((socket) =>
    socket.end(`${ok}transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx-checksum: 1\r\n\r\n`),
  )
  expect([trailed.category, Buffer.from(trailed.body).toString()]).toEqual(['success', 'ok'])
  expect(trailed.headers).not.toHaveProperty('x-checksum')
})

test('names of headers that objects have of their own are only names', async () => {
  const names = ['__proto__: a', '__proto__: b', 'constructor: c', 'constructor: d', 'toString: e']
  const { category, headers } = await answered((socket) =>
    socket.end(`${ok}${names.map((line) => `${line}\r\n`).join('')}content-length: 0\r\n\r\n`),
  )
  expect(category).toBe('success')
  expect(Object.entries(headers)).toEqual([
    ['__proto__', 'a, b'],
    ['constructor', 'c, d'],
    ['tostring', 'e'],
    ['content-length', '0'],
  ])
})

test('bytes behind an answer do not become the next answer', async () => {
  let answers = 0
  const receiver = await startTcp((socket) =>
    socket.on('data', () => {
      answers++
      socket.write(`${ok}content-length: 4\r\n\r\nreal${answers === 1 ? `${ok}content-length: 4\r\n\r\nfake` : ''}`)
    }),
  )
  open.push(receiver)
  const again = { ...request, connectionGroup: 'a' }
  const bodies: string[] = []
  for (let round = 0; round < 2; round++) {
    const { body } = await fetch(`http://127.0.0.1:${receiver.port}/`, again)
    bodies.push(Buffer.from(body).toString())
  }
  expect(bodies).toEqual(['real', 'real'])
})

test('an endless body is cut at the limit, and the connection is dropped', async () => {
  const gone = Promise.withResolvers<void>()
  const outcome = await answered(
    (socket) => {
      socket.once('close', () => gone.resolve())
      forever(socket, 'x'.repeat(10_000), { first: `${ok}\r\n` })
    },
    { connectionGroup: 'a' },
  )
  expect(outcome).toMatchObject({ category: 'success', status: 200, bodyTruncated: true })
  expect(outcome.body.byteLength).toBe(4096)
  await gone.promise
})

const codings = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync }

async function encoded(coding: string, body: Uint8Array, responseBytesMax = 4096) {
  const receiver = await startReceiver((_request, response) =>
    response.writeHead(200, { 'content-encoding': coding }).end(body),
  )
  open.push(receiver)
  return fetch(`http://127.0.0.1:${receiver.port}/`, { ...request, responseBytesMax })
}

test.each(Object.entries(codings))('the limit counts what %s decompresses to', async (coding, compress) => {
  const small = await encoded(coding, compress(Buffer.from('Grüße')))
  expect([small.category, small.bodyTruncated, Buffer.from(small.body).toString()]).toEqual(['success', false, 'Grüße'])
  const bomb = await encoded(coding, compress(Buffer.alloc(50_000_000)))
  expect([bomb.category, bomb.bodyTruncated, bomb.body.byteLength]).toEqual(['success', true, 4096])
})

test('a coding that is broken, stacked or unknown does not undo that the receiver accepted', async () => {
  const lied = await encoded('gzip', Buffer.from('not gzip'))
  expect([lied.category, lied.bodyTruncated, lied.body.byteLength]).toEqual(['success', true, 0])
  for (const coding of ['gzip, gzip', 'compress', 'constructor', 'identity']) {
    const asIs = await encoded(coding, Buffer.from('as it is'))
    expect([asIs.category, Buffer.from(asIs.body).toString()]).toEqual(['success', 'as it is'])
  }
})

test('input without end that decompresses to nothing ends', async () => {
  // Empty blocks of deflate, each five bytes.
  const nothing = gzipSync('', { finishFlush: constants.Z_SYNC_FLUSH })
  const outcome = await answered((socket) => {
    socket.write(`${ok}content-encoding: gzip\r\n\r\n`)
    forever(socket, Buffer.concat(Array.from({ length: 2000 }, () => Buffer.from([0, 0, 0, 0xff, 0xff]))), {
      first: nothing,
    })
  })
  expect(outcome).toMatchObject({ category: 'success', bodyTruncated: true })
})

test.each([
  ['aé', 2, 'a'],
  ['a€', 3, 'a'],
  ['a🚲b', 4, 'a'],
  ['a🚲b', 5, 'a🚲'],
  ['é€', 2, 'é'],
  ['abc', 2, 'ab'],
  ['🚲', 3, ''],
])('%s is cut to %i bytes without splitting a character', async (body, limit, kept) => {
  const outcome = await encoded('identity', Buffer.from(body), limit)
  expect([Buffer.from(outcome.body).toString(), outcome.bodyTruncated]).toEqual([kept, true])
})
