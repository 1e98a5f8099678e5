import type { ModelDocument } from '../../src/shared/modelling/document.ts'
import { objectOf, startApplication } from './application.ts'

/** Deals of companies, and people with rights to them: what most tests of records need. */
const full = { read: true, create: true, update: true, archive: true }

export const dealsDocument: ModelDocument = {
  objects: [
    objectOf('company', [{ fieldKey: 'name', dataType: 'text', searchable: true }]),
    objectOf('deal', [
      { fieldKey: 'name', dataType: 'text', required: true, searchable: true, indexed: true },
      { fieldKey: 'code', dataType: 'text', unique: true, searchable: true },
      {
        fieldKey: 'stage',
        dataType: 'select',
        searchable: true,
        options: [
          { value: 'open', label: 'Still negotiating' },
          { value: 'won', label: 'Closed well' },
          { value: 'lost', label: '100% lost_' },
        ],
      },
      { fieldKey: 'amount', dataType: 'decimal' },
      { fieldKey: 'notes', dataType: 'longText', searchable: true },
      { fieldKey: 'secret', dataType: 'text', searchable: true },
      { fieldKey: 'contact', dataType: 'email', searchable: true },
      { fieldKey: 'company', dataType: 'reference', references: 'company' },
    ]),
  ],
  roles: {
    sales: { label: 'Sales', objects: { deal: full, company: full } },
    /** Reads and writes deals, but neither reads their secret nor writes their amount. */
    clerk: {
      label: 'Clerk',
      objects: {
        deal: { ...full, fields: { secret: { read: false, write: false }, amount: { read: true, write: false } } },
        company: { read: true },
      },
    },
    reader: { label: 'Reader', objects: { deal: { read: true } } },
  },
}

export const dealsPlan = {
  dataRoles: ['sales', 'clerk', 'reader'],
  organizations: {
    a: {
      locations: ['north', 'south'],
      users: {
        owner: { owner: true },
        sales: { roles: ['sales'], locations: ['north'] },
        clerk: { roles: ['clerk'], locations: 'all' },
        reader: { roles: ['reader'], locations: 'all' },
      },
      credentials: { live: {} },
    },
    b: { users: { owner: { owner: true }, clerk: { roles: ['clerk'] } } },
  },
} as const

export type Deals = Awaited<ReturnType<typeof startDeals>>

export async function startDeals() {
  const application = await startApplication(dealsPlan, dealsDocument)
  const { a, b } = application.organizations
  const deals = (credential: Parameters<typeof application.records>[0]) => application.records(credential, 'deal')
  return {
    ...application,
    organization: a,
    owner: deals(a.users.owner),
    live: deals(a.credentials.live),
    sales: deals(a.users.sales),
    clerk: deals(a.users.clerk),
    reader: deals(a.users.reader),
    /** In another organisation. */
    stranger: deals(b.users.owner),
    companies: application.records(a.users.owner, 'company'),
  }
}

let names = 0
/** A name that no other record has. */
export const newName = () => `Deal ${++names}`
