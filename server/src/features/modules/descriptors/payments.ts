import { fail } from '../../../kernel/errors.ts'
import { defineModule, type ModuleValues } from '../module.ts'
import { amountsOf, currency, exponentOf, written } from './currency.ts'
import { Decimal } from './decimal.ts'
import { autoNumber, date, decimal, longText, reference, select, state, stateTime, tags, text } from './fields.ts'

const received = ['succeeded', 'partiallyRefunded', 'refunded']
const ended = [...received, 'failed', 'cancelled']

export const payments = defineModule({
  key: 'payments',
  label: 'Payment',
  pluralLabel: 'Payments',
  description: 'Money that customers pay or get back, by whatever way. What has been received is final.',
  nameField: 'number',
  subtitleFields: ['payerName', 'amount', 'status'],
  fields: [
    autoNumber('What people call the payment by.'),
    state('status', 'Status', 'How far it has come; the service follows `amountRefunded`.', {
      pending: 'Pending',
      processing: 'Processing',
      succeeded: 'Succeeded',
      partiallyRefunded: 'Partly refunded',
      refunded: 'Refunded',
      failed: 'Failed',
      cancelled: 'Cancelled',
    }),
    decimal('amount', 'Amount', 'What is paid, in `currency`; above zero.', '972.00', {
      required: true,
      minimum: 0,
      scale: 4,
      indexed: true,
      lockedIn: ended,
    }),
    currency({ required: true, indexed: true, lockedIn: ended }),
    select(
      'method',
      'Method',
      'How it is paid.',
      {
        card: 'Card',
        bankTransfer: 'Bank transfer',
        directDebit: 'Direct debit',
        wallet: 'Wallet',
        cash: 'Cash',
        check: 'Cheque',
        other: 'Other',
      },
      { required: true, indexed: true },
    ),
    reference('invoiceId', 'Invoice', 'The invoice that it pays.', 'invoices'),
    reference('orderId', 'Order', 'The order that it pays.', 'orders'),
    reference('contactId', 'Contact', 'Who pays.', 'contacts'),
    reference('companyId', 'Company', 'The company that pays.', 'companies'),
    text('payerName', 'Payer', 'The name of who pays, at most 200 characters.', 'Northwind Traders GmbH', {
      maxLength: 200,
      searchable: true,
    }),
    date('bookedOn', 'Booked on', 'The day on which the money arrived.', '2026-09-20', { indexed: true }),
    decimal('feeAmount', 'Fee', 'What the provider keeps, in `currency`; at most the amount.', '14.40', {
      minimum: 0,
      scale: 4,
    }),
    decimal('amountRefunded', 'Refunded', 'What was paid back, in `currency`; at most the amount.', '0.00', {
      minimum: 0,
      scale: 4,
      default: '0',
      indexed: true,
    }),
    decimal('netAmount', 'Net', 'The amount without fee and refunds. Worked out by the service.', '957.60', {
      readOnly: true,
    }),
    text('provider', 'Provider', 'Who carries it out, at most 50 characters.', 'stripe', {
      maxLength: 50,
      indexed: true,
    }),
    text('providerReference', 'Provider’s reference', 'What the provider calls it; unique.', 'pi_3Nk42', {
      unique: true,
      maxLength: 255,
      searchable: true,
    }),
    text('remittance', 'Remittance text', 'What the payer wrote on it, at most 500 characters.', 'Invoice 1001', {
      maxLength: 500,
      searchable: true,
    }),
    text('cardLastFour', 'Card', 'The last four digits of the card.', '4242', { pattern: '[0-9]{4}', maxLength: 4 }),
    text('failureCode', 'Failure code', 'Why it failed, in the provider’s words.', 'card_declined', { maxLength: 100 }),
    text('failureMessage', 'Failure', 'The same for people.', 'The card was declined.', { maxLength: 500 }),
    longText('notes', 'Notes', 'What else to know about it.', 'Paid in two parts.'),
    stateTime('succeededAt', 'Succeeded at', 'When it succeeded.', { indexed: true }),
    stateTime('failedAt', 'Failed at', 'When it failed.'),
    stateTime('cancelledAt', 'Cancelled at', 'When it was cancelled.'),
    stateTime('refundedAt', 'Refunded at', 'When all of it was paid back.'),
    tags(),
  ],
  states: {
    field: 'status',
    initial: 'pending',
    transitions: {
      pending: ['processing', 'succeeded', 'failed', 'cancelled'],
      processing: ['succeeded', 'failed', 'cancelled'],
      succeeded: ['partiallyRefunded', 'refunded'],
      partiallyRefunded: ['refunded'],
      failed: ['pending', 'processing'],
    },
    createdIn: ['processing', ...ended],
    times: {
      succeededAt: { entering: received },
      failedAt: { entering: ['failed'], clearedIn: ['pending', 'processing'] },
      cancelledAt: { entering: ['cancelled'] },
      refundedAt: { entering: ['refunded'] },
    },
  },
  derive(after) {
    const { amount = '0', feeAmount, amountRefunded = '0' } = amountsOf(after, 'amount', 'feeAmount', 'amountRefunded')
    if (new Decimal(amount).lte(0)) refuse('amount', 'Must be above zero.')
    if (new Decimal(feeAmount ?? '0').gt(amount)) refuse('feeAmount', `At most the amount, ${amount}.`)
    const refund = refundOf(after, amount, amountRefunded)
    const net = new Decimal(amount).minus(feeAmount ?? '0').minus(refund.amountRefunded)
    const digits = exponentOf(String(after['currency']))
    return { amount, ...(feeAmount !== undefined && { feeAmount }), ...refund, netAmount: written(net, digits) }
  },
  relationships: [
    {
      relationshipKey: 'payments_invoices',
      label: 'Further invoices',
      inverseLabel: 'Further payments',
      to: 'invoices',
      cardinality: 'many-to-many',
    },
  ],
})

/** The state follows what was paid back; a payment that is said to be refunded was paid back as a whole. */
function refundOf(values: ModuleValues, amount: string, given: string): ModuleValues & { amountRefunded: string } {
  const status = String(values['status'])
  const refunded = new Decimal(status === 'refunded' ? amount : given)
  if (refunded.gt(amount)) refuse('amountRefunded', `At most the amount, ${amount}.`)
  const digits = exponentOf(String(values['currency']))
  const amountRefunded = written(refunded, digits)
  if (!received.includes(status)) {
    if (refunded.gt(0)) refuse('amountRefunded', 'Only a payment that has succeeded can be paid back.')
    return { amountRefunded }
  }
  if (refunded.eq(amount)) return { amountRefunded, status: 'refunded' }
  if (refunded.gt(0)) return { amountRefunded, status: 'partiallyRefunded' }
  if (status !== 'succeeded') refuse('amountRefunded', 'Say how much was paid back.')
  return { amountRefunded }
}

function refuse(field: string, message: string): never {
  throw fail('field_value_invalid', { field, message })
}
