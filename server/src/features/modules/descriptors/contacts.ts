import { fail } from '../../../kernel/errors.ts'
import { defineModule, type ModuleValues } from '../module.ts'
import { changes, requireTimeZone } from './coherence.ts'
import { date, language, longText, reference, select, stateTime, tags, text, timeZone, url } from './fields.ts'
import { personNameFields, personNameOf } from './person-name.ts'
import { addresses } from './postal-address.ts'
import { reachabilityFields, reachabilityOf, spellingsOf } from './reachability.ts'

/** People and companies that an organization deals with (contract 5). */
export const contacts = defineModule({
  key: 'contacts',
  label: 'Contact',
  pluralLabel: 'Contacts',
  description: 'People and companies that the organization deals with, and how to reach them.',
  nameField: 'displayName',
  subtitleFields: ['companyName', 'jobTitle', 'primaryEmail', 'primaryPhone'],
  fields: [
    select(
      'contactType',
      'Kind',
      'Is it a person or a company?',
      { person: 'Person', company: 'Company' },
      { required: true, default: 'person', indexed: true },
    ),
    text('contactTypeId', 'Contact type', 'The key of a contact type that the organization defines.', 'supplier', {
      pattern: '[a-z][a-z0-9-]{0,49}',
      maxLength: 50,
      indexed: true,
    }),
    text('displayName', 'Name', 'What the contact is called: its name, else how it is reached.', 'Ada Lovelace', {
      readOnly: true,
      indexed: true,
      searchable: true,
      maxLength: 255,
    }),
    ...personNameFields(),
    ...reachabilityFields(),
    addresses(),
    tags(),
    reference('companyId', 'Company', 'The company that the contact works for, where it has a record.', 'companies'),
    date('birthday', 'Birthday', 'Date of birth of a person.', '1985-12-10'),
    url('website', 'Website', 'Where they are on the web.', 'https://northwind.example/'),
    language('The language to write to them in: a BCP 47 tag.'),
    timeZone('Where they are, for calls and meetings.'),
    select('source', 'Source', 'How they came to the organization.', {
      web: 'Website',
      form: 'Form',
      referral: 'Referral',
      event: 'Event',
      advertising: 'Advertising',
      outbound: 'Outreach',
      partner: 'Partner',
      import: 'Import',
      other: 'Other',
    }),
    select(
      'lifecycleStage',
      'Lifecycle stage',
      'How far the relation has come.',
      { subscriber: 'Subscriber', lead: 'Lead', opportunity: 'Opportunity', customer: 'Customer', former: 'Former' },
      { indexed: true },
    ),
    select(
      'marketingConsent',
      'Marketing consent',
      'May the organization send them advertising?',
      { unknown: 'Not asked', granted: 'Granted', withdrawn: 'Withdrawn' },
      { default: 'unknown', indexed: true },
    ),
    stateTime('marketingConsentAt', 'Consent changed at', 'When they granted or withdrew their consent.'),
    reference('mergedIntoId', 'Merged into', 'The contact that it became a part of. Set by merging.', 'contacts', {
      readOnly: true,
    }),
    longText('notes', 'Notes', 'What else to know about them.', 'Prefers to be called in the morning.'),
  ],
  derive(after, before, { now }) {
    requireTimeZone(after)
    const reachability = reachabilityOf(after)
    const consent = after['marketingConsent'] ?? 'unknown'
    return {
      ...reachability,
      displayName: displayNameOf({ ...after, ...reachability }),
      ...(changes('marketingConsent', { marketingConsent: consent }, { marketingConsent: 'unknown', ...before }) && {
        marketingConsentAt: consent === 'unknown' ? null : now,
      }),
    }
  },
  alsoFoundBy(record) {
    // The person behind a contact that is a company.
    const person = personNameOf(record)
    return person === null ? spellingsOf(record) : [person, ...spellingsOf(record)]
  },
  // A merged contact that is restored by hand is one of its own again.
  clearedOnRestore: ['mergedIntoId'],
  relationships: [
    {
      relationshipKey: 'contacts_companies',
      label: 'Further companies',
      inverseLabel: 'Associated contacts',
      to: 'companies',
      cardinality: 'many-to-many',
    },
    {
      relationshipKey: 'contacts_related',
      label: 'Knows',
      inverseLabel: 'Known by',
      to: 'contacts',
      cardinality: 'many-to-many',
    },
  ],
})

/** Throws `required_field_missing` for a contact that nothing names. */
function displayNameOf(values: ModuleValues): string {
  const company = String(values['companyName'] ?? '').trim()
  const own = values['contactType'] === 'company' ? company : personNameOf(values)
  const name = own || company || personNameOf(values) || values['primaryEmail'] || values['primaryPhone']
  if (typeof name === 'string') return name
  const field = values['contactType'] === 'company' ? 'companyName' : 'lastName'
  throw fail('required_field_missing', { field, message: 'A contact needs a name, an e-mail address or a number.' })
}
