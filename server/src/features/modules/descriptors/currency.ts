import { fail } from '../../../kernel/errors.ts'
import type { ModuleField, ModuleValues } from '../module.ts'
import { Decimal } from './decimal.ts'
import { text } from './fields.ts'

/**
 * Digits after the point of a currency where there are not two: ISO 4217, list one. Not asked of `Intl`, which knows what
 * is customary (no forint has a fillér) where the standard knows what is exact.
 */
const exponents: Readonly<Record<string, number>> = Object.fromEntries(
  (
    [
      [0, 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'],
      [3, 'BHD IQD JOD KWD LYD OMR TND'],
      [4, 'CLF UYW'],
    ] as const
  ).flatMap(([digits, codes]) => codes.split(' ').map((code) => [code, digits] as const)),
)

const known: ReadonlySet<string> = new Set([...Intl.supportedValuesOf('currency'), ...Object.keys(exponents)])

/** The digits after the point of a currency by its ISO 4217 code. Throws `field_value_invalid` where there is none. */
export function exponentOf(code: string): number {
  if (!known.has(code)) {
    throw fail('field_value_invalid', { field: 'currency', message: 'Expected the ISO 4217 code of a currency.' })
  }
  return exponents[code] ?? 2
}

/** The field that says in which currency a record's amounts are. */
export function currency(more: Partial<ModuleField> = {}): ModuleField {
  return text('currency', 'Currency', 'The currency of every amount of the record: an ISO 4217 code.', 'EUR', {
    pattern: '[A-Z]{3}',
    maxLength: 3,
    ...more,
  })
}

/**
 * The amounts of a record with as many digits as their currency has: "12.5" of euros becomes "12.50". Throws
 * `required_field_missing` for an amount without a currency, `field_value_invalid` for one with more digits.
 */
export function amountsOf(values: ModuleValues, ...fieldKeys: readonly string[]): Record<string, string> {
  const given = fieldKeys.filter((key) => (values[key] ?? null) !== null)
  const code = values['currency'] ?? null
  if (code !== null) exponentOf(String(code))
  if (given.length === 0) return {}
  if (code === null) {
    throw fail('required_field_missing', { field: 'currency', message: `${given[0]} needs a currency.` })
  }
  return Object.fromEntries(given.map((key) => [key, amountIn(String(code), key, String(values[key]))]))
}

/** One amount in a currency; `field` is what a failure names. */
export function amountIn(code: string, field: string, amount: string): string {
  const digits = exponentOf(code)
  const exact = new Decimal(amount)
  if (!exact.round(digits).eq(exact)) {
    throw fail('field_value_invalid', { field, message: `${code} has ${digits} digits after the point.` })
  }
  return written(exact, digits)
}

/** Rounded to `digits` after the point, halves away from zero; zero has no sign. */
export function written(amount: Decimal, digits: number): string {
  const rounded = amount.round(digits)
  return (rounded.eq(0) ? rounded.abs() : rounded).toFixed(digits)
}
