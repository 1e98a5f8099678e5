import { defineModule } from '../module.ts'
import { requireTimeZone } from './coherence.ts'
import { amountsOf, currency } from './currency.ts'
import { date, decimal, integer, longText, reference, select, tags, text, timeZone, url } from './fields.ts'
import { addresses } from './postal-address.ts'
import { reachabilityFields, reachabilityOf, spellingsOf } from './reachability.ts'

export const companies = defineModule({
  key: 'companies',
  label: 'Company',
  pluralLabel: 'Companies',
  description: 'Organizations that people of the organization do business with: customers, suppliers, partners.',
  nameField: 'name',
  subtitleFields: ['domain', 'industry', 'primaryEmail', 'primaryPhone'],
  fields: [
    text('name', 'Name', 'What the company is called, at most 200 characters.', 'Northwind Traders', {
      required: true,
      minLength: 1,
      maxLength: 200,
      indexed: true,
      searchable: true,
    }),
    text('legalName', 'Legal name', 'Its name in the register of companies.', 'Northwind Traders GmbH', {
      maxLength: 200,
      searchable: true,
    }),
    text('domain', 'Domain', 'Its domain on the internet, in lower case.', 'northwind.example', {
      pattern: '([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z0-9-]{2,63}',
      maxLength: 253,
      indexed: true,
      searchable: true,
    }),
    url('website', 'Website', 'Where it is on the web.', 'https://northwind.example/'),
    select(
      'companyType',
      'Type',
      'What it is to the organization.',
      {
        prospect: 'Prospect',
        customer: 'Customer',
        partner: 'Partner',
        supplier: 'Supplier',
        competitor: 'Competitor',
        other: 'Other',
      },
      { indexed: true },
    ),
    text('industry', 'Industry', 'What it does for a living, at most 100 characters.', 'Food wholesale', {
      maxLength: 100,
      indexed: true,
    }),
    ...reachabilityFields(),
    addresses(),
    integer('employeeCount', 'Employees', 'How many people work there.', 240, { minimum: 0, indexed: true }),
    decimal('annualRevenue', 'Annual revenue', 'Revenue of a year, in `currency`.', '12500000.00', {
      minimum: 0,
      scale: 4,
      indexed: true,
    }),
    currency(),
    date('foundedOn', 'Founded on', 'When it was founded.', '1998-04-01'),
    text('taxId', 'Tax number', 'Its number for value added tax, or another tax number.', 'ATU12345678', {
      maxLength: 50,
      searchable: true,
    }),
    text('registrationNumber', 'Registration number', 'Its number in the register of companies.', 'FN 123456 a', {
      maxLength: 50,
      searchable: true,
    }),
    reference('parentCompanyId', 'Parent company', 'The company that it belongs to.', 'companies'),
    timeZone('Where it is, for calls and meetings.'),
    longText('description', 'Description', 'What else to know about it.', 'Wholesaler of fine food in six countries.'),
    tags(),
  ],
  derive(after) {
    requireTimeZone(after)
    return { ...reachabilityOf(after), ...amountsOf(after, 'annualRevenue') }
  },
  alsoFoundBy: spellingsOf,
  relationships: [
    {
      relationshipKey: 'companies_partners',
      label: 'Partners',
      inverseLabel: 'Partner of',
      to: 'companies',
      cardinality: 'many-to-many',
    },
  ],
})
