import fc from 'fast-check'
import type { ModelField } from './world.ts'

/**
 * Values that records are made of: half of them from lists of what has broken software before, the rest random. Letters
 * are of scripts whose case ICU 60 (in the embedded PostgreSQL, Unicode 10) and V8 (Unicode 17) agree on; letters that got
 * a lower case since (Georgian Mtavruli, Vithkuqi, Garay, Latin Extended-D) compare as the server's ICU knows them.
 */
const letters = [
  ...'abzABZ019 .,-',
  ...'İıIiß\u1e9eΣσςΑαΩ',
  // Combining: acute, dot above, cedilla, ypogegrammeni; then the same letters composed, and signs that equal letters.
  ...['\u0301', '\u0307', '\u0327', '\u0345', 'é', 'É', '\u212b', '\u212a', '\u2126', 'ǅ', 'ﬁ', 'Ꭰ'],
  ...['😀', '👩\u200d👧', '🇹🇷', '𐐀', '𐐨', '𠮷', '漢', '字', 'ｶ', '\ufffd', '\uffff', '\ue000'],
  ...['%', '_', '\\', "'", '"', ';', '--', '$', '{', '}', ',', '\u001f', '\t', '\n', '\u00a0', '\u200d', '\u00ad'],
]

const texts = [
  ...[
    '',
    ' ',
    '%',
    '_',
    '\\',
    '%%',
    '\\%',
    "'",
    '"',
    ';',
    '--',
    "'; DROP TABLE portico.epoch; --",
    '{}',
    'NULL',
    'null',
  ],
  ...['__proto__', 'constructor', 'toString', 'undefined', '$me', '$now', '$today', '$1', ':x', '{{x}}', '<b>'],
  ...['İstanbul', 'ISTANBUL', 'istanbul', 'ıstanbul', 'i\u0307stanbul', 'STRASSE', 'straße', 'STRA\u1e9eE'],
  ...[
    'ΟΔΟΣ',
    'οδος',
    'ΟΔΟΣΑ',
    'Σ',
    'ς',
    'ΑΣ.Β',
    'ΑΣ',
    'résumé',
    're\u0301sume\u0301',
    'RÉSUMÉ',
    'Å',
    '\u212b',
    'K',
    '\u212a',
  ],
  ...['😀', '𐐀', '𐐨', '\uffff', '\ue000', '漢字', 'a%b', 'a_b', 'A\\B', 'aXb', 'a\nb'],
]

const short = fc.oneof(fc.constantFrom(...texts), fc.string({ unit: fc.constantFrom(...letters), maxLength: 6 }))

/** Text of up to `longest` UTF-16 units, now and then exactly that long. */
export function text(longest: number): fc.Arbitrary<string> {
  const long = fc.constantFrom('ab%_', 'İ', 'Σa').map((unit) => unit.repeat(longest / unit.length))
  return fc.oneof({ weight: 30, arbitrary: short }, { weight: 1, arbitrary: long })
}

const emails = ['ada@example.com', 'ADA@EXAMPLE.COM', "o'neil+tag@exämple.de", 'İ%_@x.tr', 'σ@a.gr', 'Σ@A.GR']
const phones = ['+44 20 7946 0958', '+442079460958', '(020) 7946-0958 x12', '(020) 7946-0958 X12', '020/7946', '123']
const urls = [
  'https://example.com/',
  'HTTPS://EXAMPLE.COM/',
  'http://a.b/%41?q=a_b',
  "https://x.y/'--",
  'https://x.y/İ?Σ',
]

const integers = [
  ...[0, 1, -1, 7, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, '9007199254740992', '9007199254740993'],
  ...['-9007199254740993', '9223372036854775807', '9223372036854775806', '-9223372036854775808', '007', '-0'],
]
const floats = [0, 1, -1, 0.1, 0.1 + 0.2, 0.3, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, 1.5, 2 ** 53]
const largestFloats = [Number.MAX_VALUE, -Number.MAX_VALUE, Number.MIN_VALUE, Number.EPSILON]
const decimals = [
  ...[
    '1.5',
    '1.50',
    '1.500000000000000000',
    '0001.5',
    '0',
    '-0',
    '0.00',
    '0.000000000000000001',
    '-0.000000000000000001',
  ],
  ...['9'.repeat(38), `-${'9'.repeat(38)}`, `${'9'.repeat(20)}.${'9'.repeat(18)}`, `${'9'.repeat(37)}8`],
  // Neighbours that share a float8.
  ...[
    '9007199254740992',
    '9007199254740993',
    '9007199254740992.5',
    '0.1',
    '0.10000000000000000',
    '0.100000000000000001',
  ],
  ...[12.5, 7, -0.25],
]
const dates = ['0001-01-01', '0099-12-31', '1582-10-10', '1969-12-31', '1970-01-01', '2024-02-29', '9999-12-31']
const times = [
  ...['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z', '1969-12-31T23:59:59.999Z', '1970-01-01T00:00:00Z'],
  ...[
    '2026-01-01T00:00:00+14:00',
    '2025-12-31t10:00:00z',
    '2025-12-31T10:00:00.000999999Z',
    '2026-09-14T09:30:00-23:59',
  ],
  ...['2026-09-14T09:30:00.1Z', '2026-09-14T09:30:00.100+00:00', '2026-09-14T09:30:00.1009Z'],
]

const day = 24 * 60 * 60 * 1000

/** What a value of this field may be, without null. `relatives` are ids of the records that a reference may point to. */
export function valuesOf(field: ModelField, { now, userIds, relatives, textMax }: ValueScope): fc.Arbitrary<unknown> {
  const near = fc.integer({ min: -3, max: 3 }).map((days) => new Date(now + days * day).toISOString())
  switch (field.dataType) {
    case 'text':
      return text(textMax)
    case 'longText':
      return fc.oneof({ weight: 200, arbitrary: text(300) }, { weight: 1, arbitrary: text(100_000) })
    case 'email':
      return fc.oneof(
        fc.constantFrom(...emails),
        fc.nat(9).map((n) => `Person${n}@Example.com`),
      )
    case 'phone':
      return fc.oneof(fc.constantFrom(...phones), fc.integer({ min: 1000, max: 1009 }).map(String))
    case 'url':
      return fc.oneof(
        fc.constantFrom(...urls),
        short.map((path) => `https://example.com/${path}`),
      )
    case 'integer':
    case 'autoNumber':
      return fc.oneof(
        fc.constantFrom(...integers),
        fc.integer({ min: -5, max: 5 }),
        fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n).map(String),
      )
    case 'float':
      return fc.oneof(fc.constantFrom(...floats, ...largestFloats), fc.double({ noNaN: true, noDefaultInfinity: true }))
    case 'decimal':
      return fc.oneof(
        fc.constantFrom(...decimals),
        fc.integer({ min: -500, max: 500 }).map((cents) => (cents / 100).toFixed(2)),
      )
    case 'boolean':
      return fc.boolean()
    case 'date':
      return fc.oneof(
        fc.constantFrom(...dates),
        near.map((time) => time.slice(0, 10)),
      )
    case 'dateTime':
      return fc.oneof(fc.constantFrom(...times), near)
    case 'select':
      return fc.constantFrom(...field.options!)
    case 'multiSelect':
      return fc.subarray([...field.options!])
    case 'json':
      return fc.jsonValue({ maxDepth: 2 }).filter((value) => value !== null)
    case 'user':
      return fc.constantFrom(...userIds)
    case 'reference':
      return fc.constantFrom(...relatives)
  }
}

export interface ValueScope {
  readonly now: number
  readonly userIds: readonly string[]
  readonly relatives: readonly string[]
  readonly textMax: number
}

/** Options whose spelling array literals, LIKE and JavaScript objects could stumble over. */
export const awkwardOptions = [
  ...[
    'open',
    'OPEN',
    'won',
    '%',
    '_',
    'a,b',
    '{}',
    '{a}',
    '"',
    '"q"',
    '\\',
    "o'neil",
    'NULL',
    'null',
    ' ',
    '__proto__',
  ],
  ...['constructor', 'İ', 'i', 'ß', 'Σ', '😀', '--', ';', '$me'],
]
