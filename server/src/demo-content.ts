import { moduleKeys } from './kernel/scopes.ts'
import type { ModelDocument } from './shared/modelling/document.ts'

/** What the demo shows: the model of contract 1, and records that look like somebody's. */
export const demoModel: ModelDocument = {
  objects: [
    {
      objectKey: 'company',
      label: 'Company',
      pluralLabel: 'Companies',
      nameField: 'name',
      fields: [
        { fieldKey: 'name', label: 'Name', dataType: 'text', required: true, searchable: true, indexed: true },
        { fieldKey: 'domain', label: 'Domain', dataType: 'text', unique: true, searchable: true },
        { fieldKey: 'employees', label: 'Employees', dataType: 'integer', validation: { minimum: 0 }, indexed: true },
        { fieldKey: 'country', label: 'Country', dataType: 'text' },
      ],
    },
    {
      objectKey: 'deal',
      label: 'Deal',
      pluralLabel: 'Deals',
      nameField: 'name',
      fields: [
        { fieldKey: 'name', label: 'Name', dataType: 'text', required: true, searchable: true, indexed: true },
        {
          fieldKey: 'stage',
          label: 'Stage',
          dataType: 'select',
          indexed: true,
          options: [
            { value: 'open', label: 'Open' },
            { value: 'won', label: 'Won' },
            { value: 'lost', label: 'Lost' },
          ],
        },
        { fieldKey: 'amount', label: 'Amount', dataType: 'decimal', indexed: true },
        { fieldKey: 'probability', label: 'Probability', dataType: 'float', validation: { minimum: 0, maximum: 1 } },
        { fieldKey: 'closeDate', label: 'Close date', dataType: 'date', indexed: true },
        { fieldKey: 'company', label: 'Company', dataType: 'reference', references: 'company' },
        { fieldKey: 'notes', label: 'Notes', dataType: 'longText' },
      ],
    },
  ],
  roles: {
    sales: {
      label: 'Sales',
      objects: {
        company: { read: true, create: true, update: true, archive: true },
        deal: { read: true, create: true, update: true, archive: true },
      },
    },
    support: {
      label: 'Support',
      objects: {
        company: { read: true },
        deal: { read: true, fields: { amount: { read: false, write: false } } },
      },
    },
  },
}

/** Support reads what it needs to help somebody, and nothing about money. */
const modulesOfSupport = [
  'contacts',
  'companies',
  'tasks',
  'notes',
  'activities',
  'appointments',
  'tickets',
  'documents',
]

function rightsOn(keys: readonly string[], writes: boolean) {
  const rights = { read: true, create: writes, update: writes, archive: writes }
  return Object.fromEntries(keys.map((key) => [key, rights]))
}

/** The same with what the roles may do in the native modules, for applications that have them. */
export const demoModelWithModules: ModelDocument = {
  ...demoModel,
  roles: {
    sales: withRights('sales', rightsOn(moduleKeys, true)),
    support: withRights('support', rightsOn(modulesOfSupport, false)),
  },
}

function withRights(role: 'sales' | 'support', rights: ReturnType<typeof rightsOn>) {
  const { label, objects } = demoModel.roles![role]!
  return { label, objects: { ...objects, ...rights } }
}

interface People {
  readonly slug: string
  readonly users: Readonly<Record<'owner' | 'sales' | 'support', { readonly userId: string }>>
  readonly dataRoles: Readonly<Record<string, string>>
  readonly locations: { readonly north: string; readonly south: string }
}

const firsts = ['Blue', 'Red', 'Silver', 'Green', 'North', 'Bright', 'Old', 'Grand', 'Clear', 'Wild']
const seconds = ['River', 'Harbour', 'Mountain', 'Bridge', 'Orchard', 'Lantern', 'Falcon', 'Meadow', 'Anchor', 'Summit']
const kinds = ['Foods', 'Logistics', 'Textiles', 'Software', 'Energy', 'Travel']
const countries = ['DE', 'FR', 'GB', 'US', 'JP', 'BR', 'IN']
const topics = ['Renewal', 'Pilot', 'Expansion', 'Training', 'Migration', 'Support plan']

/** The same every time: the n-th of anything is chosen by its number. */
function pick<T>(list: readonly T[], n: number): T {
  return list[n % list.length]!
}

/** By external key, so that a demo that was interrupted can be gone on with. */
export function companies(count: number, organization: People): object[] {
  return Array.from({ length: count }, (_, n) => {
    const name = `${pick(firsts, n)} ${pick(seconds, n * 3 + Math.floor(n / 10))} ${pick(kinds, n * 7)}`
    return {
      operation: 'upsert',
      fields: {
        name,
        domain: `${name.toLowerCase().replaceAll(' ', '-')}-${n}.example`,
        employees: ((n * 37) % 500) + 3,
        country: pick(countries, n * 5),
      },
      externalKey: `${organization.slug}-company-${n + 1}`,
    }
  })
}

export function deals(count: number, organization: People, companyIds: readonly string[]): object[] {
  return Array.from({ length: count }, (_, n) => {
    const stage = pick(['open', 'open', 'won', 'lost'], n)
    return {
      operation: 'upsert',
      fields: {
        name: `${pick(topics, n)} ${2026 + (n % 2)} no. ${n + 1}`,
        stage,
        amount: `${((n * 7919) % 90_000) + 500}.${String((n * 13) % 100).padStart(2, '0')}`,
        probability: stage === 'won' ? 1 : stage === 'lost' ? 0 : ((n * 17) % 90) / 100,
        closeDate: new Date(Date.UTC(2026, n % 12, (n % 28) + 1)).toISOString().slice(0, 10),
        company: n % 9 === 0 ? null : pick(companyIds, n * 11),
        notes: n % 4 === 0 ? `Spoke about ${pick(topics, n).toLowerCase()}; next step is an offer.` : null,
      },
      externalKey: `${organization.slug}-deal-${n + 1}`,
      ...placement(n, organization),
    }
  })
}

const givenNames = [
  'Ada',
  'Bruno',
  'Chloé',
  'Deniz',
  'Elif',
  'Farid',
  'Grace',
  'Hanna',
  'Igor',
  'Jürgen',
  'Keiko',
  'Luca',
]
const familyNames = [
  'Novak',
  'Okafor',
  'Péreira',
  'Quist',
  'Rossi',
  'Sato',
  'Tanaka',
  'Ümit',
  'Vogel',
  'Weiß',
  'Yıldız',
]

/** Contacts of the native module; what is flat in its rows is flat here. */
export function contacts(count: number, organization: People): object[] {
  return Array.from({ length: count }, (_, n) => {
    const firstName = pick(givenNames, n)
    const lastName = pick(familyNames, n * 5 + Math.floor(n / 12))
    const companyName = `${pick(firsts, n)} ${pick(seconds, n * 3)} ${pick(kinds, n * 7)}`
    const address = `${firstName}.${lastName}.${n + 1}@${organization.slug}-customers.example`
    return {
      operation: 'upsert',
      externalKey: `${organization.slug}-contact-${n + 1}`,
      contactType: 'person',
      contactTypeId: pick(['customer', 'customer', 'partner', 'supplier'], n),
      firstName,
      lastName,
      companyName,
      emails: [{ address: plain(address), label: 'work', isPrimary: true }],
      phones: [{ number: `+44 20 7946 ${String(n % 1000).padStart(4, '0')}`, label: 'work', isPrimary: true }],
      ...placement(n, organization),
    }
  })
}

function plain(text: string): string {
  return text.normalize('NFKD').replaceAll(/\p{M}/gu, '').replaceAll('ß', 'ss').replaceAll('ı', 'i').toLowerCase()
}

/** Some for everybody, some of one person, some of a role, with and without a location. */
function placement(n: number, { users, dataRoles, locations }: People): object {
  switch (n % 6) {
    case 0:
      return {}
    case 1:
      return { ownerUserId: users.sales.userId }
    case 2:
      return { dataRoleId: dataRoles['sales'], locationId: locations.north }
    case 3:
      return { dataRoleId: dataRoles['sales'], locationId: locations.south }
    case 4:
      return { dataRoleId: dataRoles['support'] }
    default:
      return { ownerUserId: users.owner.userId, participants: n % 12 === 5 ? [users.support.userId] : [] }
  }
}
