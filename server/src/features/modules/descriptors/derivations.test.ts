import { expect, test } from 'vitest'
import { modules } from '../descriptors.ts'
import type { ModuleValues } from '../module.ts'

/** What single modules work out: stories of their users, told in writes. */
const moment = (day: number) => ({ now: `2026-09-${String(day).padStart(2, '0')}T09:30:00.000Z`, userId: null })

/** Writes one after the other on the days 1, 2, 3, …; answers the record after the last. */
function written(moduleKey: string, ...writes: readonly ModuleValues[]): ModuleValues {
  const module = modules.find(({ key }) => key === moduleKey)!
  const defaults = Object.fromEntries(module.fields.map((field) => [field.fieldKey, field.default ?? null]))
  let record: ModuleValues | undefined
  for (const [index, write] of writes.entries()) {
    const after: ModuleValues = { ...(record ?? defaults), ...write }
    record = { ...after, ...module.derive(after, record, moment(index + 1)) }
  }
  return record!
}

const refusal = (code: string, field: string) =>
  expect.objectContaining({ code, details: [expect.objectContaining({ field })] })

test.each<[ModuleValues, string]>([
  [{ firstName: ' Ada ', lastName: 'Lovelace', companyName: 'Northwind' }, 'Ada Lovelace'],
  [{ lastName: 'Lovelace' }, 'Lovelace'],
  [{ companyName: 'Northwind' }, 'Northwind'],
  [{ contactType: 'company', companyName: 'Northwind', lastName: 'Lovelace' }, 'Northwind'],
  [{ contactType: 'company', lastName: 'Lovelace' }, 'Lovelace'],
  [
    { emails: [{ address: 'ada@northwind.example' }], phones: [{ number: '+43 1 234 56 78' }] },
    'ada@northwind.example',
  ],
  [{ phones: [{ number: '+43 1 234 56 78' }] }, '+4312345678'],
])('the contact %j is called %s', (values, displayName) => {
  expect(written('contacts', values)).toMatchObject({ displayName })
})

test.each([
  [{}, 'lastName'],
  [{ firstName: '  ', lastName: '' }, 'lastName'],
  [{ contactType: 'company' }, 'companyName'],
])('the contact %j needs a name', (values, field) => {
  expect(() => written('contacts', values)).toThrow(refusal('required_field_missing', field))
})

test('of addresses and numbers exactly one is primary, and numbers have a form that can be found', () => {
  const contact = written('contacts', {
    lastName: 'Lovelace',
    emails: [
      { address: 'a@x.example' },
      { address: 'b@x.example', isPrimary: true },
      { address: 'c@x.example', isPrimary: true },
    ],
    phones: [{ number: '01 234 56 78', label: 'home', e164: '+1999' }, { number: '+44 (20) 7946-0958' }],
  })
  expect(contact).toMatchObject({
    emails: [{ isPrimary: false }, { isPrimary: true }, { isPrimary: false }],
    phones: [
      { number: '01 234 56 78', label: 'home', e164: null, isPrimary: true },
      { number: '+44 (20) 7946-0958', e164: '+442079460958', isPrimary: false },
    ],
    primaryEmail: 'b@x.example',
    primaryPhone: '01 234 56 78',
  })
  const found = modules[0]!.alsoFoundBy!(contact)
  expect(found).toEqual([
    'Lovelace',
    'a@x.example',
    'b@x.example',
    'c@x.example',
    '01 234 56 78',
    '+44 (20) 7946-0958',
    '+442079460958',
  ])
})

test.each([
  [{ emails: [{ address: 'a@x.example' }, { address: 'A@X.example' }] }, 'emails[1].address'],
  [{ phones: [{ number: '+44 20 7946 0958' }, { number: '+442079460958' }] }, 'phones[1].number'],
  [{ lastName: 'Lovelace', timeZone: 'Vienna' }, 'timeZone'],
])('the contact %j is refused', (values, field) => {
  expect(() => written('contacts', values)).toThrow(refusal('field_value_invalid', field))
})

test('a contact keeps when it gave and withdrew its consent', () => {
  const named = { lastName: 'Lovelace' }
  expect(written('contacts', named)['marketingConsentAt']).toBeNull()
  const writes = [named, { marketingConsent: 'granted' }, { jobTitle: 'CEO' }]
  expect(written('contacts', ...writes)['marketingConsentAt']).toBe(moment(2).now)
  expect(written('contacts', ...writes, { marketingConsent: 'withdrawn' })['marketingConsentAt']).toBe(moment(4).now)
})

test('a lead is converted into something', () => {
  const writes = [{ lastName: 'Lovelace' }, { status: 'qualified' }]
  expect(() => written('leads', ...writes, { status: 'converted' })).toThrow(
    refusal('required_field_missing', 'convertedContactId'),
  )
  const lead = written('leads', ...writes, { status: 'converted', convertedContactId: 'c' })
  expect(lead).toMatchObject({ name: 'Lovelace', qualifiedAt: moment(2).now, convertedAt: moment(3).now })
})

test('the probability of a deal follows its stage unless somebody knows better', () => {
  const deal = { name: 'Machines', amount: '1000', currency: 'EUR' }
  expect(written('deals', deal)).toMatchObject({ amount: '1000.00', probability: 10, weightedAmount: '100.00' })
  expect(written('deals', deal, { probability: 33 }, { nextStep: 'Call' })).toMatchObject({ weightedAmount: '330.00' })
  expect(written('deals', deal, { probability: 33 }, { stage: 'proposal' })).toMatchObject({ probability: 50 })
  expect(written('deals', deal, { stage: 'proposal', probability: 80 })).toMatchObject({ probability: 80 })
  const won = written('deals', deal, { stage: 'won', probability: 80 })
  expect(won).toMatchObject({ probability: 100, closedAt: moment(2).now, stageChangedAt: moment(2).now })
  expect(written('deals', deal, { stage: 'won' }, { stage: 'negotiation' })).toMatchObject({ closedAt: null })
})

test('a note without a title is called by its first line', () => {
  expect(written('notes', { body: '\n## Call with Ada\nShe wants…' })).toMatchObject({ title: 'Call with Ada' })
  expect(written('notes', { body: '---' })).toMatchObject({ title: 'Note', notedAt: moment(1).now })
  expect(written('notes', { body: 'Long', title: 'Mine' })).toMatchObject({ title: 'Mine' })
})

test.each([
  ['tasks', { title: 'x', startsAt: '2026-09-02T00:00:00.000Z', dueAt: '2026-09-01T00:00:00.000Z' }, 'dueAt'],
  ['tasks', { title: 'x', recurrence: 'FREQ=DAILY;COUNT=2;UNTIL=20270101' }, 'recurrence'],
  ['tasks', { title: 'x', recurrence: 'FREQ=DAILY;COUNT=2;COUNT=3' }, 'recurrence'],
  ['calendar-events', { startsAt: '2026-09-02T00:00:00.000Z', endsAt: '2026-09-02T00:00:00.000Z' }, 'endsAt'],
  ['appointments', { startsAt: '2026-09-02T00:00:00.000Z', endsAt: '2026-09-01T00:00:00.000Z' }, 'endsAt'],
  ['quotes', { currency: 'EUR', issuedOn: '2026-09-02', validUntil: '2026-09-01' }, 'validUntil'],
  ['projects', { startOn: '2026-09-02', dueOn: '2026-09-01' }, 'dueOn'],
  ['documents', { effectiveOn: '2026-09-02', expiresOn: '2026-09-01' }, 'expiresOn'],
  ['payments', { currency: 'EUR', amount: '0' }, 'amount'],
  ['payments', { currency: 'EUR', amount: '10', feeAmount: '10.01' }, 'feeAmount'],
  ['payments', { currency: 'EUR', amount: '10', amountRefunded: '1' }, 'amountRefunded'],
  ['payments', { currency: 'EUR', amount: '10', status: 'succeeded', amountRefunded: '11' }, 'amountRefunded'],
  ['orders', { currency: 'EUR', refundedAmount: '1' }, 'refundedAmount'],
  ['invoices', { currency: 'EUR', amountPaid: '1' }, 'amountPaid'],
  ['invoices', { currency: 'EUR', lines: [{ description: 'Credit', unitPrice: '-1' }] }, 'lines'],
  [
    'quotes',
    { currency: 'EUR', lines: [{ description: 'x', unitPrice: '1', discountAmount: '2' }] },
    'lines[0].discountAmount',
  ],
])('what does not fit together is refused: %s %j', (moduleKey, values, field) => {
  expect(() => written(moduleKey, values)).toThrow(refusal('field_value_invalid', field))
})

test('a calendar event counts what its guests must learn of', () => {
  const event = { title: 'Talk', startsAt: '2026-09-10T09:00:00.000Z', endsAt: '2026-09-10T10:00:00.000Z' }
  expect(written('calendar-events', event, { title: 'Long talk' })['sequence']).toBe(0)
  expect(written('calendar-events', event, { place: 'Room 2' }, { status: 'cancelled' })['sequence']).toBe(2)
})

test('an appointment counts how often it was moved', () => {
  const booked = { title: 'Talk', startsAt: '2026-09-10T09:00:00.000Z', endsAt: '2026-09-10T10:30:00.000Z' }
  expect(written('appointments', booked)).toMatchObject({ durationMinutes: 90, rescheduleCount: 0 })
  const moved = written('appointments', booked, { startsAt: '2026-09-10T10:00:00.000Z' })
  expect(moved).toMatchObject({ durationMinutes: 30, rescheduleCount: 1 })
})

test('an inbox item is read once, and sleeps until a time', () => {
  const item = { subject: 'Question' }
  expect(() => written('inbox', item, { status: 'snoozed' })).toThrow(refusal('required_field_missing', 'snoozedUntil'))
  const snoozed = { status: 'snoozed', snoozedUntil: '2026-09-20T07:00:00.000Z' }
  expect(written('inbox', item, { isRead: true }, snoozed)).toMatchObject({ readAt: moment(2).now, ...snoozed })
  expect(written('inbox', item, snoozed, { status: 'open' })['snoozedUntil']).toBeNull()
})

test('a solved ticket can be reopened, a closed one cannot', () => {
  const solved = [{ subject: 'Cold' }, { status: 'open' }, { status: 'solved' }]
  expect(written('tickets', ...solved)).toMatchObject({ openedAt: moment(2).now, solvedAt: moment(3).now })
  const reopened = written('tickets', ...solved, { status: 'open' })
  expect(reopened).toMatchObject({ openedAt: moment(2).now, solvedAt: null, reopenCount: 1 })
  expect(() => written('tickets', ...solved, { status: 'closed' }, { status: 'open' })).toThrow(
    refusal('state_transition_invalid', 'status'),
  )
})

test('a quote that was sent is final until it is revised', () => {
  const lines = [{ description: 'Machine', unitPrice: '450' }]
  const sent = [{ title: 'Offer', currency: 'EUR', lines }, { status: 'sent' }]
  const cheaper = { lines: [{ description: 'Machine', unitPrice: '400' }] }
  expect(() => written('quotes', ...sent, cheaper)).toThrow(refusal('field_locked', 'lines'))
  const revised = written('quotes', ...sent, { status: 'draft', ...cheaper })
  expect(revised).toMatchObject({ total: '400.00', sentAt: null })
})

test('an order tells shipping apart, and a refunded one was paid back as a whole', () => {
  const lines = [
    { description: 'Machine', unitPrice: '450' },
    { description: 'Parcel', kind: 'shipping', unitPrice: '9.90' },
  ]
  const placed = [{ currency: 'EUR', lines }, { status: 'confirmed' }, { refundedAmount: '100' }]
  expect(written('orders', ...placed)).toMatchObject({
    total: '459.90',
    shippingTotal: '9.90',
    refundedAmount: '100.00',
  })
  expect(written('orders', ...placed, { status: 'refunded' })).toMatchObject({ refundedAmount: '459.90' })
})

test('an invoice is open, partly paid, paid', () => {
  const invoice = { currency: 'EUR', lines: [{ description: 'Machine', unitPrice: '450' }] }
  const open = written('invoices', invoice, { status: 'open' })
  expect(open).toMatchObject({
    issuedOn: '2026-09-02',
    dueOn: '2026-10-02',
    amountDue: '450.00',
    openedAt: moment(2).now,
  })
  const partly = [invoice, { status: 'open' }, { amountPaid: '50' }]
  expect(written('invoices', ...partly)).toMatchObject({ status: 'open', amountPaid: '50.00', amountDue: '400.00' })
  const paid = { status: 'paid', amountPaid: '450.00', amountDue: '0.00', paidAt: moment(4).now }
  expect(written('invoices', ...partly, { amountPaid: '450' })).toMatchObject(paid)
  expect(written('invoices', ...partly, { status: 'paid' })).toMatchObject(paid)
  expect(written('invoices', ...partly, { status: 'void' })).toMatchObject({ amountPaid: '50.00', amountDue: '0.00' })
  expect(written('invoices', { ...invoice, issuedOn: '9999-12-20' }, { status: 'open' })['dueOn']).toBe('9999-12-31')
})

test('a payment follows what was paid back', () => {
  const payment = { currency: 'EUR', amount: '100', method: 'card', feeAmount: '2.5', status: 'succeeded' }
  expect(written('payments', payment)).toMatchObject({ netAmount: '97.50', succeededAt: moment(1).now })
  const partly = written('payments', payment, { amountRefunded: '40' })
  expect(partly).toMatchObject({ status: 'partiallyRefunded', netAmount: '57.50' })
  const whole = { status: 'refunded', amountRefunded: '100.00', netAmount: '-2.50' }
  expect(written('payments', payment, { amountRefunded: '100' })).toMatchObject({ ...whole, refundedAt: moment(2).now })
  expect(written('payments', payment, { status: 'refunded' })).toMatchObject(whole)
})

test('a document keeps its versions', () => {
  const document = written('documents', { name: 'Contract', assetId: 'a' }, { name: 'The contract' }, { assetId: 'b' })
  expect(document).toMatchObject({
    version: 2,
    versions: [
      { version: 2, assetId: 'b', addedAt: moment(3).now, addedBy: null },
      { version: 1, assetId: 'a', addedAt: moment(1).now },
    ],
  })
})

test('an article counts what was published', () => {
  const article = { title: 'Überhitzung: was tun?', body: 'Ausschalten.' }
  expect(written('knowledge-articles', article)).toMatchObject({ slug: 'uberhitzung-was-tun', version: 0 })
  const published = [article, { status: 'published' }]
  expect(written('knowledge-articles', ...published)).toMatchObject({ version: 1, publishedAt: moment(2).now })
  expect(written('knowledge-articles', ...published, { position: 4 })['version']).toBe(1)
  expect(written('knowledge-articles', ...published, { body: 'Abkühlen lassen.' })['version']).toBe(2)
  const again = written('knowledge-articles', ...published, { status: 'draft' }, { status: 'published' })
  expect(again).toMatchObject({ version: 2, firstPublishedAt: moment(2).now, publishedAt: moment(4).now })
})
