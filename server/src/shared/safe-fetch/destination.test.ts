import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isPublicAddress } from './addresses.ts'
import { checkDestination } from './destination.ts'

const vectors = new URL('../../../test/vectors/blocked-destinations.json', import.meta.url)
const { blocked } = JSON.parse(readFileSync(vectors, 'utf8')) as { blocked: string[] }
const check = (url: string) => checkDestination(url, { allowLoopback: false })

test.each(blocked)('%s is refused before it is saved', (url) => {
  expect(check(url)).toMatchObject({ url: null, problem: expect.stringMatching(/^(malformed|not_https|blocked)$/) })
})

test.each([
  ['https://example.com/hook?a=1', 'https://example.com/hook?a=1'],
  ['https://example.com:8443/', 'https://example.com:8443/'],
  ['https://example.com./', 'https://example.com./'],
  ['https://bücher.example/', 'https://xn--bcher-kva.example/'],
  ['https://localhost.example.com/', 'https://localhost.example.com/'],
  ['https://8.8.8.8/', 'https://8.8.8.8/'],
  ['https://[2606:4700::1111]/', 'https://[2606:4700::1111]/'],
])('%s is allowed', (url, href) => {
  expect(check(url).url?.href).toBe(href)
})

test.each([
  ['https://user@example.com/', 'blocked'],
  ['https://:pass@example.com/', 'blocked'],
  ['https://intranet/', 'blocked'],
  ['https://api.localhost/', 'blocked'],
  ['https://LOCALHOST/', 'blocked'],
  ['https://printer.local/', 'blocked'],
  ['https://metadata.google.internal/', 'blocked'],
  ['https://168.63.129.16/', 'blocked'],
  ['https://127.0.0.1./', 'blocked'],
  ['https://①②⑦.0.0.1/', 'blocked'],
  ['https://ⓛocalhost/', 'blocked'],
  ['https://example.com../', 'malformed'],
  ['https://example.com:0/', 'malformed'],
  ['https://example.com:65536/', 'malformed'],
  ['https://1.2.3.4.5/', 'malformed'],
  ['https://[fe80::1%25eth0]/', 'malformed'],
  ['https://exa mple.com/', 'malformed'],
  [`https://example.com/${'a'.repeat(2048)}`, 'malformed'],
  ['file:///etc/passwd', 'not_https'],
  ['wss://example.com/', 'not_https'],
])('%s is refused as %s', (url, problem) => {
  expect(check(url)).toMatchObject({ url: null, problem })
})

test('where this machine is allowed, nothing else of the network is', () => {
  const lenient = (url: string) => checkDestination(url, { allowLoopback: true }).problem
  expect(lenient('http://127.0.0.1:3000/hook')).toBeNull()
  expect(lenient('http://[::1]:3000/')).toBeNull()
  expect(lenient('http://localhost:3000/')).toBeNull()
  expect(lenient('https://example.com/')).toBeNull()
  for (const host of [
    '169.254.169.254',
    '10.0.0.1',
    '192.168.1.10',
    '[fe80::1]',
    '0.0.0.0',
    'metadata.internal',
    'router',
  ]) {
    expect(lenient(`http://${host}/`), host).toBe('blocked')
  }
  expect(lenient('ftp://127.0.0.1/')).toBe('not_https')
  expect(lenient('http://user:pass@127.0.0.1/')).toBe('blocked')
})

const octet = fc.integer({ min: 0, max: 255 })
/** The networks that no tenant may reach: first address and length of the prefix, written independently of the code. */
const privateV4 = [
  [0x00000000, 8],
  [0x0a000000, 8],
  [0x64400000, 10],
  [0x7f000000, 8],
  [0xa9fe0000, 16],
  [0xac100000, 12],
  [0xc0000000, 24],
  [0xc0000200, 24],
  [0xc0a80000, 16],
  [0xc6120000, 15],
  [0xc6336400, 24],
  [0xcb007100, 24],
  [0xe0000000, 4],
  [0xf0000000, 4],
] as const
const privateAddress = fc
  .tuple(fc.constantFrom(...privateV4), fc.nat())
  .map(([[start, length], rest]) => start + (rest % 2 ** (32 - length)))
const bytesOf = (address: number) => [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff)
const dotted = (address: number) => bytesOf(address).join('.')
const hexGroups = (address: number) => `${(address >>> 16).toString(16)}:${(address & 0xffff).toString(16)}`

test('a private IPv4 address is refused in every spelling that a URL knows', () => {
  const part = fc.constantFrom(
    (value: number) => `${value}`,
    (value: number) => `0x${value.toString(16)}`,
    (value: number) => `0X${value.toString(16).toUpperCase()}`,
    (value: number) => `0${value.toString(8)}`,
    (value: number) => `%3${`${value}`[0]}${`${value}`.slice(1)}`,
    (value: number) => `${value}`.replace(/\d/g, (digit) => String.fromCharCode(0xff10 + Number(digit))),
  )
  const parts = fc.tuple(part, part, part, part)
  const spelling = fc.tuple(
    privateAddress,
    parts,
    fc.integer({ min: 1, max: 4 }),
    fc.constantFrom('', '.'),
    fc.boolean(),
  )
  fc.assert(
    fc.property(spelling, ([address, write, count, end, wideDots]) => {
      const bytes = bytesOf(address)
      const last = bytes.slice(count - 1).reduce((value, byte) => value * 256 + byte, 0)
      const values = [...bytes.slice(0, count - 1), last]
      const host = values.map((value, at) => write[at]!(value)).join(wideDots ? '。' : '.')
      expect(check(`https://${host}${end}/`).problem).toBe('blocked')
    }),
    { numRuns: 2000 },
  )
})

test('a private IPv4 address is refused inside every IPv6 address that leads to it', () => {
  const wrap = fc.constantFrom(
    (address: number) => `::ffff:${dotted(address)}`,
    (address: number) => `::${dotted(address)}`,
    (address: number) => `::ffff:0:${hexGroups(address)}`,
    (address: number) => `64:ff9b::${dotted(address)}`,
    (address: number) => `64:ff9b:1::${hexGroups(address)}`,
    (address: number) => `2002:${hexGroups(address)}::1`,
    (address: number) => `2001:0:${hexGroups(address)}::1`,
    (address: number) => `2001:0:4136:e378:8000:63bf:${hexGroups(~address)}`,
  )
  fc.assert(
    fc.property(privateAddress, wrap, (address, wrapped) => {
      expect(isPublicAddress(dotted(address))).toBe(false)
      expect(isPublicAddress(wrapped(address))).toBe(false)
      expect(check(`https://[${wrapped(address)}]/`).problem).toBe('blocked')
    }),
    { numRuns: 2000 },
  )
})

test('an IPv4 address outside the private networks is public, also through NAT64', () => {
  const special = [...privateV4, [0xc0586300, 24], [0xc0af3000, 24], [0xc01fc400, 24], [0xc034c100, 24]] as const
  const isSpecial = (address: number) => special.some(([start, length]) => (address ^ start) >>> (32 - length) === 0)
  const anywhere = fc
    .tuple(octet, octet, octet, octet)
    .map(([a, b, c, d]) => ((a << 24) | (b << 16) | (c << 8) | d) >>> 0)
  fc.assert(
    fc.property(
      anywhere.filter((address) => !isSpecial(address) && dotted(address) !== '168.63.129.16'),
      (address) => {
        expect(isPublicAddress(dotted(address))).toBe(true)
        expect(isPublicAddress(`64:ff9b::${dotted(address)}`)).toBe(true)
      },
    ),
  )
})

test('outside 2000::/3 no IPv6 address is public', () => {
  const group = fc.integer({ min: 0, max: 0xffff })
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
      fc.pre(groups[0]! >> 13 !== 1 && !(groups[0] === 0x64 && groups[1] === 0xff9b))
      expect(isPublicAddress(groups.map((value) => value.toString(16)).join(':'))).toBe(false)
    }),
  )
})

test.each(['', 'example.com', '127.1', '0x7f000001', '[::1]', '1.2.3.4:80', 'fe80::1%eth0', '2606:4700::1%eth0'])(
  '%j is not the canonical form of a public address',
  (text) => {
    expect(isPublicAddress(text)).toBe(false)
  },
)
