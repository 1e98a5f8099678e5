import { fail } from '../../../kernel/errors.ts'
import { defineModule, type ModuleValues } from '../module.ts'
import { amountsOf, exponentOf, written } from './currency.ts'
import { Decimal } from './decimal.ts'
import {
  attachments,
  autoNumber,
  date,
  decimal,
  longText,
  reference,
  select,
  state,
  stateTime,
  tags,
  text,
  url,
} from './fields.ts'
import { moneyFields, totalsOf } from './money.ts'
import { postalAddress } from './postal-address.ts'

const placed = ['confirmed', 'fulfilled', 'completed', 'cancelled', 'refunded']
const shipped = ['fulfilled', 'completed', 'cancelled', 'refunded']

export const orders = defineModule({
  key: 'orders',
  label: 'Order',
  pluralLabel: 'Orders',
  description: 'What customers have ordered, from the draft through delivery. Lines of a confirmed order are final.',
  nameField: 'number',
  subtitleFields: ['customerName', 'total', 'status'],
  fields: [
    autoNumber('The number of the order.'),
    state('status', 'Status', 'How far it has come.', {
      draft: 'Draft',
      confirmed: 'Confirmed',
      fulfilled: 'Fulfilled',
      completed: 'Completed',
      cancelled: 'Cancelled',
      refunded: 'Refunded',
    }),
    select(
      'paymentStatus',
      'Payment',
      'Has it been paid?',
      { unpaid: 'Unpaid', partiallyPaid: 'Partly paid', paid: 'Paid' },
      { default: 'unpaid', indexed: true },
    ),
    select(
      'channel',
      'Channel',
      'Where it was placed.',
      {
        web: 'Web shop',
        store: 'Store',
        phone: 'Telephone',
        email: 'E-mail',
        marketplace: 'Marketplace',
        other: 'Other',
      },
      { default: 'other', indexed: true },
    ),
    text('channelOrderNumber', 'Number in the channel', 'What the channel calls it; unique.', 'SHOP-58213', {
      unique: true,
      maxLength: 100,
      searchable: true,
    }),
    reference('contactId', 'Contact', 'Who ordered.', 'contacts'),
    reference('companyId', 'Company', 'The company that ordered.', 'companies'),
    reference('quoteId', 'Quote', 'The quote that it follows.', 'quotes'),
    reference('dealId', 'Deal', 'The deal that it belongs to.', 'deals'),
    text('customerName', 'Customer', 'The name on the order.', 'Northwind Traders GmbH', {
      maxLength: 200,
      searchable: true,
    }),
    date('orderedOn', 'Ordered on', 'The date of the order.', '2026-09-14', { indexed: true }),
    ...moneyFields(placed),
    decimal('shippingTotal', 'Shipping', 'Shipping within the total, with taxes. Worked out by the service.', '0.00', {
      readOnly: true,
    }),
    decimal('refundedAmount', 'Refunded', 'What was paid back, in `currency`; at most the total.', '0.00', {
      minimum: 0,
      scale: 4,
      default: '0',
    }),
    postalAddress('billingAddress', 'Billing address', 'Where the invoice goes.'),
    postalAddress('shippingAddress', 'Shipping address', 'Where the goods go.', { lockedIn: shipped }),
    text('shippingMethod', 'Shipping method', 'How the goods go, at most 100 characters.', 'Express', {
      maxLength: 100,
    }),
    text('carrier', 'Carrier', 'Who brings them, at most 100 characters.', 'Post', { maxLength: 100 }),
    text('trackingNumber', 'Tracking number', 'What the carrier calls the parcel.', '1012345678901', {
      maxLength: 100,
      indexed: true,
      searchable: true,
    }),
    url('trackingUrl', 'Tracking', 'Where the parcel can be followed.', 'https://post.example/1012345678901'),
    date('promisedOn', 'Promised on', 'The day by which the goods are promised.', '2026-09-18', { indexed: true }),
    longText('customerNote', 'Note of the customer', 'What the customer added.', 'Ring at the back door.'),
    longText('internalNote', 'Internal note', 'What the customer does not see.', 'Pack with extra care.'),
    text('cancellationReason', 'Reason', 'Why it was cancelled or paid back.', 'Ordered twice', { maxLength: 500 }),
    stateTime('confirmedAt', 'Confirmed at', 'When it was confirmed.'),
    stateTime('fulfilledAt', 'Fulfilled at', 'When the goods were handed over.', { indexed: true }),
    stateTime('completedAt', 'Completed at', 'When it was completed.'),
    stateTime('cancelledAt', 'Cancelled at', 'When it was cancelled.'),
    stateTime('refundedAt', 'Refunded at', 'When all of it was paid back.'),
    tags(),
    attachments(),
  ],
  states: {
    field: 'status',
    initial: 'draft',
    transitions: {
      draft: ['confirmed', 'cancelled'],
      confirmed: ['fulfilled', 'cancelled', 'refunded'],
      fulfilled: ['completed', 'refunded'],
      completed: ['refunded'],
    },
    createdIn: placed,
    times: {
      confirmedAt: { entering: ['confirmed', 'fulfilled', 'completed', 'refunded'] },
      fulfilledAt: { entering: ['fulfilled', 'completed'] },
      completedAt: { entering: ['completed'] },
      cancelledAt: { entering: ['cancelled'] },
      refundedAt: { entering: ['refunded'] },
    },
  },
  derive(after) {
    const totals = totalsOf(after)
    return { ...totals, shippingTotal: shippingOf(totals.lines, after), ...refundOf(after, totals.total) }
  },
  relationships: [
    {
      relationshipKey: 'orders_products',
      label: 'Products',
      inverseLabel: 'Orders',
      to: 'products',
      cardinality: 'many-to-many',
    },
  ],
})

function shippingOf(lines: ReturnType<typeof totalsOf>['lines'], { currency }: ModuleValues): string {
  const shipping = lines.filter((line) => line.kind === 'shipping')
  const total = shipping.reduce((all, line) => all.plus(line.total), new Decimal(0))
  return written(total, exponentOf(String(currency)))
}

/** A refunded order was paid back as a whole; no order is paid back more than it cost. */
function refundOf(values: ModuleValues, total: string): ModuleValues {
  if (values['status'] === 'refunded') return { refundedAmount: total }
  const { refundedAmount } = amountsOf(values, 'refundedAmount')
  if (refundedAmount === undefined) return {}
  if (new Decimal(refundedAmount).gt(total)) {
    throw fail('field_value_invalid', { field: 'refundedAmount', message: `At most the total, ${total}.` })
  }
  return { refundedAmount }
}
