import { objectOf, startApplication } from '../../../test/support/application.ts'
import type { TestCredential } from '../../../test/support/tenants.ts'
import type { ModelDocument } from '../../shared/modelling/document.ts'

/** An application with contacts, companies and an object of its own, and callers who see different parts of them. */
const full = { read: true, create: true, update: true, archive: true }

const document: ModelDocument = {
  objects: [
    objectOf('vessel', [
      { fieldKey: 'name', dataType: 'text', searchable: true },
      { fieldKey: 'log', dataType: 'longText', searchable: true },
      { fieldKey: 'secret', dataType: 'text', searchable: true },
      { fieldKey: 'radio', dataType: 'phone', searchable: true },
    ]),
    objectOf('safe', [{ fieldKey: 'name', dataType: 'text', searchable: true }]),
  ],
  roles: {
    crew: {
      label: 'Crew',
      objects: {
        vessel: { ...full, fields: { secret: { read: false, write: false } } },
        contacts: {
          ...full,
          fields: { phones: { read: false, write: false }, primaryPhone: { read: false, write: false } },
        },
      },
    },
    captain: { label: 'Captain', objects: { vessel: full, contacts: full } },
  },
}

const plan = {
  modules: true,
  dataRoles: ['crew', 'captain'],
  organizations: {
    a: {
      locations: ['north', 'south'],
      users: {
        owner: { owner: true },
        crew: { roles: ['crew'], locations: ['north'] },
        captain: { roles: ['captain'], locations: ['north'] },
        guest: { roles: ['captain'], locations: [] },
        outsider: {},
      },
    },
    b: { users: { owner: { owner: true } } },
  },
} as const

export interface Hit {
  readonly moduleKey: string
  readonly recordId: string
  readonly title: string | null
  readonly subtitle: string | null
  readonly snippet: string | null
  readonly score: number | null
}
export interface Page {
  readonly items: readonly Hit[]
  readonly hasMore: boolean
  readonly totalRecords: number
  readonly totalIsExact: boolean
  readonly browseLimit: number
}

export async function startSearch() {
  const application = await startApplication(plan, document)
  const { running, appId } = application
  const ask =
    <T>(verb: string) =>
    (credential: TestCredential, query: Readonly<Record<string, unknown>> = {}) =>
      running.send<T>(`developerModulesGlobalSearch${verb}`, credential, { params: { saasAppId: appId }, query })
  return {
    ...application,
    list: ask<Page>('List'),
    count: ask<{ totalRecords: number }>('Count'),
    suggest: ask<{ items: readonly Hit[] }>('Suggest'),
    recent: ask<{ items: readonly (Hit & { changedByCaller: boolean })[] }>('ListRecent'),
  }
}

export type Search = Awaited<ReturnType<typeof startSearch>>
