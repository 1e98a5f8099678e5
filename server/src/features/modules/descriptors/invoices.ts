import { fail } from '../../../kernel/errors.ts'
import { defineModule, type ModuleValues } from '../module.ts'
import { has, requireOrder } from './coherence.ts'
import { amountIn, exponentOf, written } from './currency.ts'
import { Decimal } from './decimal.ts'
import {
  attachments,
  autoNumber,
  date,
  decimal,
  integer,
  longText,
  reference,
  state,
  stateTime,
  tags,
  text,
  url,
} from './fields.ts'
import { moneyFields, totalsOf } from './money.ts'
import { postalAddress } from './postal-address.ts'

const final = ['open', 'paid', 'void', 'uncollectible']

export const invoices = defineModule({
  key: 'invoices',
  label: 'Invoice',
  pluralLabel: 'Invoices',
  description: 'What customers have to pay. From the moment it is open, what stands on an invoice is final.',
  nameField: 'number',
  subtitleFields: ['customerName', 'total', 'status'],
  fields: [
    autoNumber('The number on the invoice.'),
    state('status', 'Status', 'How far it has come; open and fully paid, the service makes it paid.', {
      draft: 'Draft',
      open: 'Open',
      paid: 'Paid',
      void: 'Void',
      uncollectible: 'Uncollectible',
    }),
    reference('contactId', 'Contact', 'Who has to pay.', 'contacts', { lockedIn: final }),
    reference('companyId', 'Company', 'The company that has to pay.', 'companies', { lockedIn: final }),
    reference('orderId', 'Order', 'The order that it is for.', 'orders', { lockedIn: final }),
    reference('projectId', 'Project', 'The project that it is for.', 'projects'),
    text('customerName', 'Customer', 'The name on the invoice.', 'Northwind Traders GmbH', {
      maxLength: 200,
      searchable: true,
      lockedIn: final,
    }),
    text('customerTaxId', 'Tax number of the customer', 'As it stands on the invoice.', 'ATU12345678', {
      maxLength: 50,
      lockedIn: final,
    }),
    postalAddress('billingAddress', 'Address', 'The address on the invoice.', { lockedIn: final }),
    date('issuedOn', 'Issued on', 'The date on it; the day (UTC) on which it is opened unless given.', '2026-09-14', {
      indexed: true,
      lockedIn: final,
    }),
    integer('paymentTermDays', 'Payment term', 'Days from `issuedOn` until it is due.', 30, {
      minimum: 0,
      maximum: 3650,
      default: 30,
      lockedIn: final,
    }),
    date('dueOn', 'Due on', 'The last day to pay; `issuedOn` plus the payment term unless given.', '2026-10-14', {
      indexed: true,
    }),
    date('serviceFrom', 'Services from', 'The first day of what is billed.', '2026-08-01', { lockedIn: final }),
    date('serviceTo', 'Services to', 'The last day of what is billed.', '2026-08-31', { lockedIn: final }),
    ...moneyFields(final),
    decimal('amountPaid', 'Paid', 'What has been paid, in `currency`; at most the total.', '0.00', {
      minimum: 0,
      scale: 4,
      default: '0',
      lockedIn: ['paid', 'void'],
    }),
    decimal(
      'amountDue',
      'Due',
      'What is left to pay: nothing of a void invoice. Worked out by the service.',
      '972.00',
      {
        readOnly: true,
        indexed: true,
      },
    ),
    text('purchaseOrderNumber', 'Order reference', 'The number that the customer gave to it.', 'PO-7781', {
      maxLength: 100,
      searchable: true,
      lockedIn: final,
    }),
    longText('notes', 'Notes', 'What stands below the lines.', 'Thank you for your business.', { lockedIn: final }),
    longText('internalNote', 'Internal note', 'What the customer does not see.', 'Pays late as a rule.'),
    url('paymentUrl', 'Pay online', 'Where the customer can pay.', 'https://pay.example/i/42'),
    stateTime('openedAt', 'Opened at', 'When it was opened, and became final.'),
    stateTime('paidAt', 'Paid at', 'When it was fully paid.', { indexed: true }),
    stateTime('voidedAt', 'Voided at', 'When it was declared void.'),
    stateTime('uncollectibleAt', 'Uncollectible at', 'When it was written off.'),
    tags(),
    attachments(),
  ],
  states: {
    field: 'status',
    initial: 'draft',
    transitions: {
      draft: ['open'],
      open: ['paid', 'void', 'uncollectible'],
      uncollectible: ['paid', 'void'],
    },
    createdIn: final,
    times: {
      openedAt: { entering: final },
      paidAt: { entering: ['paid'] },
      voidedAt: { entering: ['void'] },
      uncollectibleAt: { entering: ['uncollectible'], clearedIn: ['paid', 'void'] },
    },
  },
  derive(after, _before, { now }) {
    const totals = totalsOf(after)
    const dates = datesOf(after, now)
    requireOrder({ ...after, ...dates }, 'issuedOn', 'dueOn')
    requireOrder(after, 'serviceFrom', 'serviceTo')
    return { ...totals, ...dates, ...settlementOf(after, totals.total) }
  },
  relationships: [
    {
      relationshipKey: 'invoices_replacements',
      label: 'Replaced by',
      inverseLabel: 'Replaces',
      to: 'invoices',
      cardinality: 'one-to-many',
    },
  ],
})

const dayMs = 86_400_000
/** Of the years that dates have. */
const lastDay = Date.parse('9999-12-31')

/** An invoice that is no draft has a date and a day on which it is due. */
function datesOf(values: ModuleValues, now: string): ModuleValues {
  if (values['status'] === 'draft') return {}
  const issuedOn = String(values['issuedOn'] ?? now.slice(0, 10))
  const term = Number(values['paymentTermDays'] ?? 0)
  const due = new Date(Math.min(Date.parse(issuedOn) + term * dayMs, lastDay)).toISOString().slice(0, 10)
  return { issuedOn, dueOn: has(values, 'dueOn') ? values['dueOn'] : due }
}

/** What is paid, what is due, and whether that settles the invoice. */
function settlementOf(values: ModuleValues, total: string): ModuleValues {
  const code = String(values['currency'])
  const status = String(values['status'])
  const paid = new Decimal(amountIn(code, 'amountPaid', String(values['amountPaid'] ?? '0')))
  if (paid.gt(total)) {
    throw fail('field_value_invalid', { field: 'amountPaid', message: `At most the total, ${total}.` })
  }
  // Somebody says that it is paid: by whatever way, all of it.
  if (status === 'paid' || (['open', 'uncollectible'].includes(status) && paid.eq(total))) {
    return { status: 'paid', amountPaid: total, amountDue: written(new Decimal(0), exponentOf(code)) }
  }
  const due = status === 'void' ? new Decimal(0) : new Decimal(total).minus(paid)
  return { amountPaid: written(paid, exponentOf(code)), amountDue: written(due, exponentOf(code)) }
}
