import type { DataTypeKey } from '../../../src/shared/catalogue/data-types.ts'

/**
 * Text compares in lower case. Final sigma is a matter of spelling, not of case: whether Σ ends a word depends on what
 * follows it, so without this a piece of a text would not be found in it.
 */
export function fold(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ')
}

/** UTF-8 keeps the order of code points; UTF-16, in which JavaScript compares, does not. */
export function byCodePoint(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

type Compare = (a: never, b: never) => number

const byFoldedText = (a: string, b: string) => byCodePoint(fold(a), fold(b))
const byInteger = (a: string | number, b: string | number) => order(BigInt(a), BigInt(b))
const byId = (a: string, b: string) => byCodePoint(a.toLowerCase(), b.toLowerCase())

const comparisons: Readonly<Record<Exclude<DataTypeKey, 'json' | 'multiSelect'>, Compare>> = {
  text: byFoldedText,
  longText: byFoldedText,
  email: byFoldedText,
  phone: byFoldedText,
  url: byFoldedText,
  integer: byInteger,
  autoNumber: byInteger,
  float: (a: number, b: number) => order(a, b),
  decimal: (a: string | number, b: string | number) => order(scaled(a), scaled(b)),
  boolean: (a: boolean, b: boolean) => order(Number(a), Number(b)),
  date: (a: string, b: string) => byCodePoint(a, b),
  dateTime: (a: string, b: string) => order(instant(a), instant(b)),
  select: (a: string, b: string) => byCodePoint(a, b),
  user: byId,
  reference: byId,
}

/** Less than zero when `a` comes first. Neither is null. */
export function compareValues(dataType: DataTypeKey, a: unknown, b: unknown): number {
  if (dataType === 'json' || dataType === 'multiSelect') throw new Error(`${dataType} has no order.`)
  return comparisons[dataType](a as never, b as never)
}

function order<T extends number | bigint>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** A decimal with 18 digits after the point, as an integer. */
function scaled(value: string | number): bigint {
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,18}))?$/.exec(String(value)) ?? []
  if (whole === undefined) throw new Error(`${value} is no decimal.`)
  const digits = BigInt(whole + fraction.padEnd(18, '0'))
  return sign === '-' ? -digits : digits
}

/** Milliseconds since the epoch; finer parts are cut off. */
function instant(value: string): number {
  const time = Date.parse(value.toUpperCase().replace(/(\.\d{3})\d+/, '$1'))
  if (Number.isNaN(time)) throw new Error(`${value} is no time.`)
  return time
}
