import { defineModule } from '../module.ts'
import { requireOrder } from './coherence.ts'
import { attachments, autoNumber, date, longText, reference, state, stateTime, tags, text } from './fields.ts'
import { moneyFields, totalsOf } from './money.ts'
import { postalAddress } from './postal-address.ts'

const sent = ['sent', 'accepted', 'declined', 'expired']

export const quotes = defineModule({
  key: 'quotes',
  label: 'Quote',
  pluralLabel: 'Quotes',
  description:
    'Offers with prices, which customers accept or decline. What was sent is final; revising opens it again.',
  nameField: 'title',
  subtitleFields: ['number', 'customerName', 'status'],
  fields: [
    autoNumber('The number on the quote.'),
    text('title', 'Title', 'What is offered, at most 255 characters.', 'Espresso machines for Northwind', {
      required: true,
      minLength: 1,
      maxLength: 255,
      indexed: true,
      searchable: true,
      lockedIn: sent,
    }),
    state('status', 'Status', 'How far it has come.', {
      draft: 'Draft',
      sent: 'Sent',
      accepted: 'Accepted',
      declined: 'Declined',
      expired: 'Expired',
    }),
    reference('contactId', 'Contact', 'Whom it is for.', 'contacts', { lockedIn: sent }),
    reference('companyId', 'Company', 'The company that it is for.', 'companies', { lockedIn: sent }),
    reference('dealId', 'Deal', 'The deal that it belongs to.', 'deals'),
    text('customerName', 'Customer', 'The name on the quote.', 'Northwind Traders GmbH', {
      maxLength: 200,
      searchable: true,
      lockedIn: sent,
    }),
    postalAddress('billingAddress', 'Address', 'The address on the quote.', { lockedIn: sent }),
    date('issuedOn', 'Issued on', 'The date on the quote.', '2026-09-14', { indexed: true, lockedIn: sent }),
    date('validUntil', 'Valid until', 'The last day on which it can be accepted.', '2026-10-14', {
      indexed: true,
      lockedIn: sent,
    }),
    ...moneyFields(sent),
    text('purchaseOrderNumber', 'Order reference', 'The number that the customer gave to it.', 'PO-7781', {
      maxLength: 100,
      searchable: true,
    }),
    longText('introduction', 'Introduction', 'What stands above the lines.', 'Thank you for your interest.', {
      lockedIn: sent,
    }),
    longText('terms', 'Terms', 'On what terms it is made.', 'Delivery within four weeks.', { lockedIn: sent }),
    stateTime('sentAt', 'Sent at', 'When it was sent.'),
    stateTime('acceptedAt', 'Accepted at', 'When it was accepted.', { indexed: true }),
    stateTime('declinedAt', 'Declined at', 'When it was declined.'),
    stateTime('expiredAt', 'Expired at', 'When it expired.'),
    text('acceptedBy', 'Accepted by', 'Who accepted it, as they signed.', 'Ada Lovelace', {
      maxLength: 200,
      lockedIn: ['accepted'],
    }),
    text('declineReason', 'Reason', 'Why it was declined, at most 500 characters.', 'Too expensive', {
      maxLength: 500,
    }),
    tags(),
    attachments(),
  ],
  states: {
    field: 'status',
    initial: 'draft',
    transitions: {
      draft: ['sent'],
      sent: ['draft', 'accepted', 'declined', 'expired'],
      declined: ['draft'],
      expired: ['draft'],
    },
    createdIn: sent,
    times: {
      sentAt: { entering: sent, clearedIn: ['draft'] },
      acceptedAt: { entering: ['accepted'] },
      declinedAt: { entering: ['declined'], clearedIn: ['draft'] },
      expiredAt: { entering: ['expired'], clearedIn: ['draft'] },
    },
  },
  derive(after) {
    requireOrder(after, 'issuedOn', 'validUntil')
    return totalsOf(after)
  },
  relationships: [
    {
      relationshipKey: 'quotes_documents',
      label: 'Documents',
      inverseLabel: 'Quotes',
      to: 'documents',
      cardinality: 'many-to-many',
    },
  ],
})
