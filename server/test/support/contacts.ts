import type { ModelDocument } from '../../src/shared/modelling/document.ts'
import { objectOf, startApplication } from './application.ts'
import type { Answer } from './record-service.ts'
import type { TestCredential } from './tenants.ts'

/** Contacts of one organisation and its people: everybody who may see some of them. */
const full = { read: true, create: true, update: true, archive: true }

const document: ModelDocument = {
  objects: [
    objectOf('visit', [
      { fieldKey: 'name', dataType: 'text', required: true, searchable: true },
      { fieldKey: 'contact', dataType: 'reference', references: 'contacts' },
    ]),
  ],
  roles: {
    sales: { label: 'Sales', objects: { contacts: full, tasks: full, tickets: full, visit: full } },
    /** Reads contacts without their notes and their kind, and nothing that refers to them. */
    clerk: {
      label: 'Clerk',
      objects: {
        contacts: {
          ...full,
          archive: false,
          fields: { notes: { read: false, write: false }, contactType: { read: false, write: false } },
        },
      },
    },
  },
}

const plan = {
  modules: true,
  dataRoles: ['sales', 'clerk'],
  organizations: {
    a: {
      locations: ['north', 'south'],
      users: {
        owner: { owner: true },
        /** A role and a location. */
        sales: { roles: ['sales'], locations: ['north'] },
        /** Sees records of no location but those that it takes part in. */
        guest: { roles: ['sales'] },
        clerk: { roles: ['clerk'], locations: 'all' },
        /** Without any role. */
        outsider: {},
      },
      credentials: { live: {} },
    },
    b: { users: { owner: { owner: true } } },
  },
} as const

export type Row = Record<string, unknown> & { readonly recordId: string; readonly revision: number }
export interface List<T = Row> {
  readonly items: readonly T[]
  readonly hasMore: boolean
  readonly totalRecords: number
  readonly totalIsExact: boolean
  readonly nextCursor: string | null
}

interface Sent {
  readonly recordId?: string
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

export async function startContacts() {
  const application = await startApplication(plan, document)
  const { a } = application.organizations
  async function as<T = Row>(credential: TestCredential, verb: string, sent: Sent = {}): Promise<Answer<T>> {
    const { recordId, ...rest } = sent
    const params = { saasAppId: application.appId, ...(recordId !== undefined && { recordId }) }
    return application.running.send<T>(`developerModules${verb}`, credential, { params, ...rest })
  }
  const { owner } = a.users
  return {
    ...application,
    organization: a,
    as,
    async create(body: object, module = 'Contacts', credential: TestCredential = owner): Promise<Row> {
      const answer = await as(credential, `${module}Create`, { body })
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body))
      return answer.body
    },
    async ids(query: Readonly<Record<string, unknown>>, credential: TestCredential = owner): Promise<string[]> {
      const answer = await as<List>(credential, 'ContactsList', { query })
      if (answer.status !== 200) throw new Error(JSON.stringify(answer.body))
      return answer.body.items.map((row) => row.recordId)
    },
  }
}
