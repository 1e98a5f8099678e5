import fc from 'fast-check'
import { expect, test } from 'vitest'
import { patienceMs, runs, seed } from '../../../../test/support/seed.ts'
import { Failure } from '../../../kernel/errors.ts'
import { amountsOf } from './currency.ts'
import { totalsOf } from './money.ts'

/** Totals against a model that counts in whole numbers alone: fractions of BigInt, rounded where the contract says so. */
const exponents = { JPY: 0, EUR: 2, KWD: 3, CLF: 4 } as const
type Currency = keyof typeof exponents

interface Line {
  readonly description: string
  readonly quantity?: string
  readonly unitPrice: string
  readonly discountPercent?: string
  readonly discountAmount?: string
  readonly taxes?: readonly { readonly name: string; readonly percent: string }[]
}

const decimal = (whole: number, scale: number) =>
  fc
    .tuple(
      fc.bigInt({ min: 0n, max: 10n ** BigInt(whole) - 1n }),
      fc.integer({ min: 0, max: scale }),
      fc.bigInt({ min: 0n, max: 10n ** BigInt(scale) - 1n }),
    )
    .map(([units, digits, fraction]) =>
      digits === 0 ? `${units}` : `${units}.${String(fraction).padStart(scale, '0').slice(0, digits)}`,
    )
const percent = fc.oneof(fc.constantFrom('0', '10', '20', '100', '33.3333', '7.5'), decimal(2, 4))
const tax = fc.record({ name: fc.constantFrom('VAT', 'City'), percent })

const lineOf = (currency: Currency) =>
  fc
    .record(
      {
        description: fc.constant('Something'),
        quantity: fc.oneof(fc.constantFrom('1', '3', '0.5'), decimal(12, 6)),
        unitPrice: fc
          .tuple(fc.oneof(fc.constantFrom('0.005', '0.5', '1.015', '99.99'), decimal(4, 8), decimal(12, 8)), fc.nat(9))
          .map(([price, sign]) => (sign === 0 ? `-${price}` : price)),
        discount: fc.oneof(
          fc.record({ discountPercent: percent }),
          decimal(2, exponents[currency]).map((discountAmount) => ({ discountAmount })),
          fc.constant({}),
        ),
        taxes: fc.uniqueArray(tax, { maxLength: 3, selector: ({ name, percent: rate }) => `${name} ${Number(rate)}` }),
      },
      { requiredKeys: ['description', 'unitPrice'] },
    )
    .map(({ discount, ...line }): Line => ({ ...line, ...discount }))

const documents = fc.constantFrom(...(Object.keys(exponents) as Currency[])).chain((currency) =>
  fc.record({
    currency: fc.constant(currency),
    pricesIncludeTax: fc.boolean(),
    lines: fc.array(lineOf(currency), { maxLength: 8 }),
  }),
)

test(`totals are what whole numbers say (seed ${seed})`, { timeout: patienceMs }, () => {
  let accepted = 0
  fc.assert(
    fc.property(documents, (document) => {
      const expected = modelOf(document)
      if (expected === undefined) {
        expect(() => totalsOf(document)).toThrow(Failure)
        return
      }
      accepted++
      const { lines, ...totals } = totalsOf(document)
      expect(totals).toMatchObject(expected.totals)
      expect(lines.map(({ subtotal, discount, tax: taxed, total }) => [subtotal, discount, taxed, total])).toEqual(
        expected.lines,
      )
      const byRate = (totals['taxes'] as { amount: string }[]).reduce((all, one) => all + units(one.amount), 0n)
      expect(byRate).toBe(units(expected.totals.taxTotal))
    }),
    runs(500),
  )
  expect(accepted).toBeGreaterThan(50)
})

/** What totals should be; undefined where they must be refused. */
function modelOf(document: { currency: Currency; pricesIncludeTax: boolean; lines: readonly Line[] }) {
  const digits = exponents[document.currency]
  const scale = 10n ** BigInt(digits)
  const rows: [bigint, bigint, bigint, bigint][] = []
  for (const line of document.lines) {
    const [quantity, quantityOver] = fraction(line.quantity ?? '1')
    const [price, priceOver] = fraction(line.unitPrice)
    const subtotal = rounded(quantity * price * scale, quantityOver * priceOver)
    const [rate, rateOver] = fraction(line.discountPercent ?? '0')
    const [amount, amountOver] = fraction(line.discountAmount ?? '0')
    const isAmount = line.discountAmount !== undefined
    const discount = isAmount ? (amount * scale) / amountOver : rounded(subtotal * rate, rateOver * 100n)
    if (isAmount && discount > subtotal) return undefined
    const left = subtotal - discount
    const rates = (line.taxes ?? []).map((one) => ten4(one.percent))
    const base = 1_000_000n + (document.pricesIncludeTax ? rates.reduce((all, one) => all + one, 0n) : 0n)
    const taxed = rates.reduce((all, one) => all + rounded(left * one, base), 0n)
    rows.push([subtotal, discount, taxed, document.pricesIncludeTax ? left : left + taxed])
  }
  const sums = [0, 1, 2, 3].map((column) => rows.reduce((all, row) => all + row[column]!, 0n))
  if (sums[3]! < 0n) return undefined
  const text = (value: bigint) => written(value, digits)
  const [subtotal, discountTotal, taxTotal, total] = sums.map(text) as [string, string, string, string]
  return { totals: { subtotal, discountTotal, taxTotal, total }, lines: rows.map((row) => row.map(text)) }
}

/** Half away from zero. */
function rounded(numerator: bigint, denominator: bigint): bigint {
  const magnitude = numerator < 0n ? -numerator : numerator
  const result = (2n * magnitude + denominator) / (2n * denominator)
  return numerator < 0n ? -result : result
}

function fraction(text: string): [bigint, bigint] {
  const [, digits = ''] = text.split('.')
  return [BigInt(text.replace('.', '')), 10n ** BigInt(digits.length)]
}

/** Ten-thousandths of a per cent. */
function ten4(percentage: string): bigint {
  const [numerator, denominator] = fraction(percentage)
  return (numerator * 10_000n) / denominator
}

const units = (amount: string) => BigInt(amount.replace('.', ''))

function written(value: bigint, digits: number): string {
  const text = String(value < 0n ? -value : value).padStart(digits + 1, '0')
  const whole = text.slice(0, text.length - digits)
  return `${value < 0n ? '-' : ''}${whole}${digits === 0 ? '' : `.${text.slice(-digits)}`}`
}

test.each([
  ['JPY', '2.5', '3', '3'],
  ['EUR', '1.005', '1.01', '1.01'],
  ['EUR', '1.0049999', '1.00', '1.00'],
  ['KWD', '1.0005', '1.001', '1.001'],
  ['IQD', '1.0005', '1.001', '1.001'],
  ['HUF', '10.005', '10.01', '10.01'],
])('in %s a price of %s is %s', (currency, unitPrice, subtotal, total) => {
  expect(totalsOf({ currency, lines: [{ description: 'x', unitPrice }] })).toMatchObject({ subtotal, total })
})

test('taxes by rate say on what they are charged', () => {
  const vat = (percentage: string) => [{ name: 'VAT', percent: percentage }]
  const lines = [
    { description: 'Machine', unitPrice: '119', taxes: vat('19') },
    { description: 'Coffee', unitPrice: '10.70', taxes: vat('7') },
    { description: 'Cup', unitPrice: '11.90', taxes: vat('19.0') },
  ]
  expect(totalsOf({ currency: 'EUR', pricesIncludeTax: true, lines })).toMatchObject({
    total: '141.60',
    taxTotal: '21.60',
    taxes: [
      { name: 'VAT', percent: '19', net: '110.00', amount: '20.90' },
      { name: 'VAT', percent: '7', net: '10.00', amount: '0.70' },
    ],
  })
})

test.each([
  [{ amount: '12.5', currency: 'EUR' }, { amount: '12.50' }],
  [{ amount: '12', currency: 'JPY' }, { amount: '12' }],
  [{ amount: null, currency: null }, {}],
])('the amounts of %j are %j', (values, amounts) => {
  expect(amountsOf(values, 'amount')).toEqual(amounts)
})

test.each([
  [{ amount: '12.505', currency: 'EUR' }, 'field_value_invalid', 'amount'],
  [{ amount: '0.5', currency: 'JPY' }, 'field_value_invalid', 'amount'],
  [{ amount: '1', currency: 'XYZ' }, 'field_value_invalid', 'currency'],
  [{ amount: null, currency: 'XYZ' }, 'field_value_invalid', 'currency'],
  [{ amount: '1', currency: null }, 'required_field_missing', 'currency'],
])('the amounts of %j are refused', (values, code, field) => {
  expect(() => amountsOf(values, 'amount')).toThrow(
    expect.objectContaining({ code, details: [expect.objectContaining({ field })] }),
  )
})
