import type { DataTypeKey } from '../../src/shared/catalogue/data-types.ts'

/**
 * What each data type keeps and gives back. Values travel as JSON text, since that is where -0, numbers beyond 2^53 and
 * names like `__proto__` show.
 */
export interface TypeCases {
  /** As it is written, and as it reads afterwards. */
  readonly values: readonly (readonly [written: string, read: string])[]
  /** Two spellings of one value: writing the second over the first changes nothing. */
  readonly same?: readonly (readonly [first: string, second: string])[]
  readonly refused: readonly string[]
}

const asWritten = (...values: readonly string[]) => values.map((value) => [value, value] as const)
const quoted = (value: string) => JSON.stringify(value)
const texts = [
  'Hello',
  '',
  ' ',
  'İı ß Σς 😀 é',
  '%_\\',
  `'"; --`,
  '__proto__',
  'constructor',
  '$me',
  'a\nb',
  '\uffff',
].map(quoted)
const nines = '9'.repeat(38)

export const dataTypeCases: Readonly<Record<Exclude<DataTypeKey, 'user' | 'reference' | 'autoNumber'>, TypeCases>> = {
  text: {
    // A character is a code point: what looks like one character of an emoji counts as one.
    values: asWritten(...texts, quoted('x'.repeat(2000)), quoted('😀'.repeat(2000))),
    refused: [
      '5',
      'true',
      '[]',
      '{}',
      quoted('x'.repeat(2001)),
      quoted('😀'.repeat(2001)),
      '"a\\u0000b"',
      '"a\\ud800"',
      '"\\udc00a"',
    ],
  },
  longText: {
    values: asWritten(...texts, quoted('x'.repeat(100_000)), quoted('😀'.repeat(100_000))),
    refused: ['5', quoted('x'.repeat(100_001)), '"\\u0000"', '"\\ud800"'],
  },
  integer: {
    values: [
      ...asWritten('42', '-1', '0', '9007199254740991', '-9007199254740991'),
      ...asWritten('"9007199254740992"', '"9007199254740993"', '"9223372036854775807"', '"-9223372036854775808"'),
      ...([
        ['"42"', '42'],
        ['"007"', '7'],
        ['-0', '0'],
        ['"-0"', '0'],
        ['5.0', '5'],
        ['1e3', '1000'],
      ] as const),
    ],
    same: [
      ['42', '"42"'],
      ['7', '"007"'],
      ['"9223372036854775807"', '"9223372036854775807"'],
      ['0', '-0'],
    ],
    refused: [
      '1.5',
      '9007199254740992',
      '1e400',
      '"9223372036854775808"',
      '"1.0"',
      '"1e3"',
      '""',
      '" 1"',
      '"+1"',
      'true',
      '[1]',
    ],
  },
  float: {
    values: [
      ...asWritten(
        '1.5',
        '0.1',
        '0.30000000000000004',
        '1e+308',
        '-1.7976931348623157e+308',
        '5e-324',
        '2.2250738585072014e-308',
      ),
      ...asWritten('9007199254740992', '123456789012345680000'),
      ...([
        ['-0', '0'],
        ['-0.0', '0'],
        ['1e-400', '0'],
      ] as const),
    ],
    same: [
      ['0', '-0'],
      ['0.1', '0.1000000000000000055'],
      ['5e-324', '4e-324'],
    ],
    refused: ['"1.5"', '1e400', '-1e400', 'true', '[1]'],
  },
  decimal: {
    values: [
      ...asWritten('"12.50"', '"12.5"', '"0"', '"0.00"', `"${nines}"`, `"-${nines}"`, `"0.${'0'.repeat(17)}1"`),
      ...asWritten(`"${nines.slice(0, 20)}.${nines.slice(0, 18)}"`, '"9007199254740993"'),
      ...([
        ['12.5', '"12.5"'],
        ['"0001.50"', '"1.50"'],
        ['"-0"', '"0"'],
        ['"-0.00"', '"0.00"'],
        ['-7', '"-7"'],
        ['123456789012.345', '"123456789012.345"'],
        ['-0.00123456789012345', '"-0.00123456789012345"'],
      ] as const),
    ],
    same: [
      ['"1.5"', '"0001.5"'],
      ['"1.5"', '1.5'],
      ['"0.00"', '"-0.00"'],
      [`"${nines}"`, `"${nines}"`],
    ],
    refused: [
      `"${nines}9"`,
      `"0.${'1'.repeat(19)}"`,
      '"1e5"',
      '1e21',
      // As numbers they are others already: what was written cannot be kept.
      '9007199254740993',
      '0.30000000000000004',
      '100000000000000000001',
      '1e-7',
      '""',
      '".5"',
      '"5."',
      '"1,5"',
      '"NaN"',
      '"Infinity"',
      'true',
    ],
  },
  boolean: { values: asWritten('true', 'false'), refused: ['"true"', '1', '0', '""'] },
  date: {
    values: asWritten('"2026-09-14"', '"2024-02-29"', '"0001-01-01"', '"0099-12-31"', '"1582-10-10"', '"9999-12-31"'),
    refused: [
      '"2026-02-29"',
      '"2026-13-01"',
      '"2026-00-10"',
      '"0000-01-01"',
      '"10000-01-01"',
      '"2026-9-14"',
      '"2026-09-14T00:00:00Z"',
      '20260914',
      '"today"',
    ],
  },
  dateTime: {
    values: [
      ...asWritten('"2026-09-14T09:30:00.000Z"', '"0001-01-01T00:00:00.000Z"', '"9999-12-31T23:59:59.999Z"'),
      ...asWritten('"1969-12-31T23:59:59.999Z"', '"0099-06-01T10:20:30.400Z"'),
      ...([
        ['"2026-09-14T09:30:00+02:00"', '"2026-09-14T07:30:00.000Z"'],
        ['"2026-09-14T23:30:00-23:59"', '"2026-09-15T23:29:00.000Z"'],
        ['"2026-09-14t09:30:00z"', '"2026-09-14T09:30:00.000Z"'],
        ['"2026-09-14T09:30:00.1Z"', '"2026-09-14T09:30:00.100Z"'],
        ['"2026-09-14T09:30:00.123999999Z"', '"2026-09-14T09:30:00.123Z"'],
      ] as const),
    ],
    same: [
      ['"2026-09-14T09:30:00Z"', '"2026-09-14T11:30:00+02:00"'],
      ['"2026-09-14T09:30:00.1Z"', '"2026-09-14T09:30:00.1004Z"'],
      ['"0001-01-01T00:00:00Z"', '"0001-01-01T00:00:00.000+00:00"'],
    ],
    refused: [
      '"2026-09-14T09:30:00"',
      '"2026-09-14"',
      '"2026-02-30T00:00:00Z"',
      '"2026-09-14T24:00:00Z"',
      '"2026-09-14T09:30:60Z"',
      '"2026-09-14T09:30:00+24:00"',
      '"2026-09-14 09:30:00Z"',
      '"0001-01-01T00:00:00+00:01"',
      '"9999-12-31T23:59:59-00:01"',
      '1789000000',
    ],
  },
  select: {
    values: asWritten('"open"', '"a,b"', '"NULL"', '"{}"', '"__proto__"', '"constructor"'),
    refused: ['"OPEN"', '"Label open"', '""', '"toString"', '["open"]', '0'],
  },
  multiSelect: {
    values: asWritten(
      '[]',
      '["open"]',
      '["a,b","open"]',
      '["open","a,b"]',
      '["NULL","{}","\\\\","\\"","o\'neil","__proto__"]',
    ),
    refused: ['"open"', '["open","open"]', '["other"]', '[null]', '{}', '[["open"]]'],
  },
  email: {
    values: asWritten('"Ada@Example.COM"', `"o'neil+tag@exämple.de"`, '"σ@a.gr"'),
    refused: ['"ada"', '"ada@example"', '"a b@c.de"', '"a@b@c.de"', '"<a@b.de>"', '""', `"${'a'.repeat(250)}@b.de"`],
  },
  phone: {
    values: asWritten('"+44 20 7946 0958"', '"(020) 7946-0958 x12"', '"123"'),
    refused: ['"12"', '"call me"', '"+"', '""', `"${'1'.repeat(41)}"`],
  },
  url: {
    values: asWritten('"https://example.com/"', '"HTTP://EXAMPLE.COM/%41?q=a_b#c"', '"https://user@x.y:8080/İ"'),
    refused: [
      '"example.com"',
      '"javascript:alert(1)"',
      '"ftp://x.y"',
      '"https://"',
      '""',
      `"https://x.y/${'a'.repeat(2048)}"`,
    ],
  },
  json: {
    values: [
      ...asWritten('{"b":1,"aa":[1,null,{"c":"é😀"}]}', '[]', '{}', '""', '"text"', '0', 'false', 'true', '[[[]]]'),
      ...asWritten(
        '{"__proto__":{"polluted":true}}',
        '{"constructor":{"prototype":1}}',
        '"\\\\u0000"',
        '"null"',
        '1e+308',
      ),
      ...([
        ['-0', '0'],
        ['1.10', '1.1'],
        ['{"a":1,"a":2}', '{"a":2}'],
      ] as const),
    ],
    same: [
      ['{"a":1,"b":{"c":2,"d":3}}', '{"b":{"d":3,"c":2},"a":1}'],
      ['{"longer":1,"b":2}', '{"b":2,"longer":1}'],
      ['[{"b":1,"a":2}]', '[{"a":2,"b":1}]'],
      ['[0]', '[-0]'],
      ['{"__proto__":1,"a":2}', '{"a":2,"__proto__":1}'],
    ],
    refused: [
      '"\\u0000"',
      '{"a\\u0000":1}',
      '"\\ud800"',
      '{"\\udc00":1}',
      '1e400',
      '{"a":[-1e400]}',
      `${'['.repeat(33)}${']'.repeat(33)}`,
      quoted('x'.repeat(65_535)),
    ],
  },
}

/** What the select and multiSelect cases choose from. */
export const caseOptions = ['open', 'a,b', 'NULL', '{}', '\\', '"', "o'neil", '__proto__', 'constructor'].map(
  (value) => ({
    value,
    label: `Label ${value}`,
  }),
)
