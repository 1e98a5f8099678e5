import { fail } from '../../../kernel/errors.ts'
import { defineModule } from '../module.ts'
import { has } from './coherence.ts'
import { amountsOf, currency } from './currency.ts'
import { decimal, email, longText, phone, reference, select, state, stateTime, tags, text, url } from './fields.ts'
import { personNameFields, personNameOf } from './person-name.ts'
import { postalAddress } from './postal-address.ts'
import { e164Of } from './reachability.ts'

const converted = ['converted']

export const leads = defineModule({
  key: 'leads',
  label: 'Lead',
  pluralLabel: 'Leads',
  description: 'People and companies that may become customers. A lead is converted into a contact, company and deal.',
  nameField: 'name',
  subtitleFields: ['companyName', 'email', 'phone'],
  fields: [
    text('name', 'Name', 'The person, else the company, else how it is reached. Set by the service.', 'Ada Lovelace', {
      readOnly: true,
      maxLength: 255,
      indexed: true,
      searchable: true,
    }),
    ...personNameFields(),
    email('email', 'E-mail', 'The e-mail address.', 'ada@northwind.example', { indexed: true, searchable: true }),
    phone('phone', 'Telephone', 'The telephone number, as it was written.', '+43 1 234 56 78', { searchable: true }),
    text('phoneE164', 'Telephone (E.164)', 'The number as E.164, if its country can be told.', '+4312345678', {
      readOnly: true,
      maxLength: 20,
      indexed: true,
      searchable: true,
    }),
    url('website', 'Website', 'Where they are on the web.', 'https://northwind.example/'),
    postalAddress('address', 'Address', 'Where they are.'),
    state('status', 'Status', 'How far the lead has come.', {
      new: 'New',
      contacted: 'Contacted',
      nurturing: 'Nurturing',
      qualified: 'Qualified',
      converted: 'Converted',
      unqualified: 'Unqualified',
    }),
    select('rating', 'Rating', 'How promising it is.', { hot: 'Hot', warm: 'Warm', cold: 'Cold' }, { indexed: true }),
    text('source', 'Source', 'How the lead came, at most 100 characters.', 'Trade fair', {
      maxLength: 100,
      indexed: true,
    }),
    text('campaign', 'Campaign', 'What it answered to, at most 100 characters.', 'Autumn 2026', { maxLength: 100 }),
    decimal('estimatedValue', 'Estimated value', 'What it may bring, in `currency`.', '12000.00', {
      minimum: 0,
      scale: 4,
      indexed: true,
    }),
    currency(),
    longText('description', 'Description', 'What they asked for.', 'Looks for an espresso machine for 40 people.', {
      searchable: true,
    }),
    text('unqualifiedReason', 'Reason', 'Why the lead is unqualified.', 'No budget this year', { maxLength: 500 }),
    stateTime('qualifiedAt', 'Qualified at', 'When it was qualified.'),
    stateTime('convertedAt', 'Converted at', 'When it was converted.'),
    reference('convertedContactId', 'Contact', 'The contact that it became.', 'contacts', { lockedIn: converted }),
    reference('convertedCompanyId', 'Company', 'The company that it became.', 'companies', { lockedIn: converted }),
    reference('convertedDealId', 'Deal', 'The deal that it became.', 'deals', { lockedIn: converted }),
    tags(),
  ],
  states: {
    field: 'status',
    initial: 'new',
    transitions: {
      new: ['contacted', 'nurturing', 'qualified', 'unqualified'],
      contacted: ['nurturing', 'qualified', 'unqualified'],
      nurturing: ['contacted', 'qualified', 'unqualified'],
      qualified: ['converted', 'nurturing', 'unqualified'],
      unqualified: ['new', 'contacted', 'nurturing', 'qualified'],
    },
    createdIn: ['contacted', 'nurturing', 'qualified', 'converted', 'unqualified'],
    times: {
      qualifiedAt: { entering: ['qualified'], clearedIn: ['new', 'contacted', 'nurturing', 'unqualified'] },
      convertedAt: { entering: ['converted'] },
    },
  },
  derive(after) {
    if (after['status'] === 'converted' && !has(after, 'convertedContactId') && !has(after, 'convertedCompanyId')) {
      const message = 'A converted lead names the contact or the company that it became.'
      throw fail('required_field_missing', { field: 'convertedContactId', message })
    }
    const name = personNameOf(after) ?? [after['companyName'], after['email'], after['phone']].find(Boolean)
    if (typeof name !== 'string') {
      const message = 'A lead needs a name, a company, an e-mail address or a number.'
      throw fail('required_field_missing', { field: 'lastName', message })
    }
    const phoneE164 = has(after, 'phone') ? e164Of(String(after['phone'])) : null
    return { name, phoneE164, ...amountsOf(after, 'estimatedValue') }
  },
  relationships: [
    {
      relationshipKey: 'leads_products',
      label: 'Interested in',
      inverseLabel: 'Interested leads',
      to: 'products',
      cardinality: 'many-to-many',
    },
  ],
})
