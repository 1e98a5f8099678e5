import Type from 'typebox'
import { fail } from '../../../kernel/errors.ts'
import { Strict, uuidPattern } from '../../../kernel/schemas.ts'
import type { ModuleField, ModuleValues } from '../module.ts'
import { amountIn, currency, exponentOf, written } from './currency.ts'
import { Decimal } from './decimal.ts'
import { boolean, DecimalText, decimal, list } from './fields.ts'

/**
 * Lines, taxes and totals of quotes, orders and invoices. Every amount of a line is rounded to the digits of the currency,
 * halves away from zero, and totals are sums of rounded amounts: what is printed adds up.
 */
interface Tax {
  readonly name: string
  readonly percent: string
}

interface Line {
  readonly description: string
  readonly kind?: 'item' | 'shipping' | 'fee'
  readonly quantity?: string
  readonly unitPrice: string
  readonly discountPercent?: string
  readonly discountAmount?: string
  readonly taxes?: readonly Tax[]
}

interface PricedLine extends Line {
  readonly subtotal: string
  readonly discount: string
  readonly taxAmounts: readonly string[]
  readonly tax: string
  readonly total: string
}

const percent = (description: string, example: string) =>
  Type.String({ pattern: '^(100(\\.0{1,4})?|\\d{1,2}(\\.\\d{1,4})?)$', description, examples: [example] })
const computed = (description: string, example: string) =>
  Type.Optional(Type.String({ description, examples: [example], readOnly: true }))

const LineTax = Strict({
  name: Type.String({ minLength: 1, maxLength: 50, description: 'The tax.', examples: ['VAT'] }),
  percent: percent('Its rate: 0 to 100, at most 4 digits after the point.', '20'),
})

const LineEntry = Strict({
  description: Type.String({
    minLength: 1,
    maxLength: 300,
    description: 'What is sold.',
    examples: ['Espresso machine'],
  }),
  kind: Type.Optional(
    Type.Enum(['item', 'shipping', 'fee'], { description: 'What the line is; item if absent.', examples: ['item'] }),
  ),
  productId: Type.Optional(
    Type.String({
      format: 'uuid',
      pattern: uuidPattern,
      description: 'The product that is sold.',
      examples: ['0199a1b2-0000-7000-8000-0000000000ab'],
    }),
  ),
  sku: Type.Optional(Type.String({ maxLength: 100, description: 'Its article number.', examples: ['ESP-100'] })),
  unit: Type.Optional(Type.String({ maxLength: 20, description: 'What is counted.', examples: ['piece'] })),
  quantity: Type.Optional(DecimalText('How many; 1 if absent. At most 6 digits after the point.', '2', 12, 6)),
  unitPrice: DecimalText('Price of one, at most 8 digits after the point; below zero for credits.', '450', 12, 8, true),
  discountPercent: Type.Optional(percent('Discount on the line, in per cent.', '10')),
  discountAmount: Type.Optional(DecimalText('Discount on the line, in place of a percentage.', '90.00', 15, 4)),
  taxes: Type.Optional(
    Type.Array(LineTax, {
      maxItems: 5,
      description: 'Taxes on what the discount leaves, side by side.',
      examples: [[{ name: 'VAT', percent: '20' }]],
    }),
  ),
  subtotal: computed('Quantity times price, rounded.', '900.00'),
  discount: computed('The discount as an amount.', '90.00'),
  taxAmounts: Type.Optional(
    Type.Array(Type.String({ description: 'One amount.', examples: ['162.00'] }), {
      maxItems: 5,
      description: 'The amount of each tax, in the order of `taxes`.',
      examples: [['162.00']],
      readOnly: true,
    }),
  ),
  tax: computed('All taxes of the line.', '162.00'),
  total: computed('What the line costs with taxes.', '972.00'),
})

const TaxTotal = Strict({
  name: Type.String({ description: 'The tax.', examples: ['VAT'] }),
  percent: Type.String({ description: 'Its rate.', examples: ['20'] }),
  net: Type.String({ description: 'What it is charged on, without taxes.', examples: ['810.00'] }),
  amount: Type.String({ description: 'The tax.', examples: ['162.00'] }),
})

const exampleLine = {
  description: 'Espresso machine',
  quantity: '2',
  unitPrice: '450',
  discountPercent: '10',
  taxes: [{ name: 'VAT', percent: '20' }],
}

/** The fields of everything that has lines; they are final in the states `lockedIn`. */
export function moneyFields(lockedIn: readonly string[]): readonly ModuleField[] {
  const total = (fieldKey: string, label: string, description: string, example: string, more = {}) =>
    decimal(fieldKey, label, `${description} Worked out by the service.`, example, { readOnly: true, ...more })
  const taxExample = [{ name: 'VAT', percent: '20', net: '810.00', amount: '162.00' }]
  return [
    currency({ required: true, indexed: true, lockedIn }),
    boolean('pricesIncludeTax', 'Prices include tax', 'Are taxes within the prices, or added to them?', false, {
      default: false,
      lockedIn,
    }),
    list('lines', 'Lines', 'What is sold, line by line.', LineEntry, 100, [exampleLine], { default: [], lockedIn }),
    total('subtotal', 'Subtotal', 'All lines before discounts.', '900.00'),
    total('discountTotal', 'Discounts', 'All discounts of lines.', '90.00'),
    total('taxTotal', 'Taxes', 'All taxes, those within the prices, too.', '162.00'),
    total('total', 'Total', 'What is to be paid, taxes included. Not below zero.', '972.00', { indexed: true }),
    list(
      'taxes',
      'Taxes by rate',
      'The taxes by name and rate. Worked out by the service.',
      TaxTotal,
      500,
      taxExample,
      {
        readOnly: true,
      },
    ),
  ]
}

/** Lines with their amounts, totals, taxes by rate. Throws `field_value_invalid` where amounts do not fit. */
export function totalsOf(
  values: ModuleValues,
): ModuleValues & { readonly lines: readonly PricedLine[]; total: string } {
  const code = String(values['currency'])
  const digits = exponentOf(code)
  const included = values['pricesIncludeTax'] === true
  const lines = ((values['lines'] ?? []) as readonly Line[]).map((line, index) => priced(line, index, code, included))
  const sum = (pick: (line: PricedLine) => string) =>
    written(
      lines.reduce((all, line) => all.plus(pick(line)), new Decimal(0)),
      digits,
    )
  const total = sum((line) => line.total)
  if (new Decimal(total).lt(0)) {
    throw fail('field_value_invalid', { field: 'lines', message: 'The total must not be below zero.' })
  }
  return {
    lines,
    subtotal: sum((line) => line.subtotal),
    discountTotal: sum((line) => line.discount),
    taxTotal: sum((line) => line.tax),
    total,
    taxes: taxesByRate(lines, digits),
  }
}

function priced(line: Line, index: number, code: string, included: boolean): PricedLine {
  const digits = exponentOf(code)
  const rounded = (amount: Decimal) => new Decimal(written(amount, digits))
  const subtotal = rounded(new Decimal(line.quantity ?? '1').times(line.unitPrice))
  const discount = rounded(discountOf(line, subtotal, index, code))
  const left = subtotal.minus(discount)
  const percents = (line.taxes ?? []).map((tax) => new Decimal(tax.percent))
  const base = included ? percents.reduce((all, one) => all.plus(one), new Decimal(100)) : new Decimal(100)
  const taxAmounts = percents.map((one) => rounded(left.times(one).div(base)))
  const tax = taxAmounts.reduce((all, one) => all.plus(one), new Decimal(0))
  const total = included ? left : left.plus(tax)
  const text = (amount: Decimal) => written(amount, digits)
  return {
    ...line,
    subtotal: text(subtotal),
    discount: text(discount),
    taxAmounts: taxAmounts.map(text),
    tax: text(tax),
    total: text(total),
  }
}

function discountOf(line: Line, subtotal: Decimal, index: number, code: string): Decimal {
  const field = `lines[${index}].discountAmount`
  if (line.discountAmount === undefined) return subtotal.times(line.discountPercent ?? '0').div(100)
  if (line.discountPercent !== undefined) {
    throw fail('field_value_invalid', { field, message: 'Give a discount as a percentage or as an amount, not both.' })
  }
  const amount = new Decimal(amountIn(code, field, line.discountAmount))
  if (amount.gt(subtotal)) {
    throw fail('field_value_invalid', { field, message: 'The discount is larger than the line.' })
  }
  return amount
}

function taxesByRate(lines: readonly PricedLine[], digits: number): readonly object[] {
  const groups = new Map<string, { tax: Tax; net: Decimal; amount: Decimal }>()
  for (const line of lines) {
    const net = new Decimal(line.total).minus(line.tax)
    for (const [index, tax] of (line.taxes ?? []).entries()) {
      const percent = new Decimal(tax.percent).toFixed()
      const key = JSON.stringify([tax.name, percent])
      const group = groups.get(key) ?? { tax: { name: tax.name, percent }, net: new Decimal(0), amount: new Decimal(0) }
      const amount = group.amount.plus(line.taxAmounts[index]!)
      groups.set(key, { ...group, net: group.net.plus(net), amount })
    }
  }
  return [...groups.values()].map(({ tax, net, amount }) => ({
    ...tax,
    net: written(net, digits),
    amount: written(amount, digits),
  }))
}
