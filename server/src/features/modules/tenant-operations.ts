import type { Operation } from '../../kernel/operation.ts'
import { Strict } from '../../kernel/schemas.ts'
import { CountResult } from '../../shared/records/shapes.ts'
import { type TenantContext, tenantOperation } from '../../shared/tenant-context.ts'
import { contacts } from './descriptors/contacts.ts'
import { countOf } from './reading.ts'
import { shapesOf } from './schemas.ts'

/** The count of contacts for users on the host of their organisation: the same number as in the API (contract 5). */
const countContacts = tenantOperation({
  id: 'developerTenantModulesContactsCount',
  method: 'GET',
  path: '/api/modules/contacts/count',
  area: contacts.pluralLabel,
  summary: 'Count contacts exactly.',
  description:
    'The same number as the count of the API gives for the user who is signed in. A count that cannot be made in time is an error, never zero.',
  credentials: ['ses'],
  scope: 'modules.contacts.read',
  rateClass: 'search',
  transaction: 'read',
  mcp: false, // for the pages of the tenant
  params: Strict({}),
  query: shapesOf(contacts).CountQuery,
  responses: { 200: CountResult },
  errors: ['object_not_found', 'count_unavailable'],

  async handler(context, { query }) {
    return { status: 200, body: await countOf(context, contacts, query) }
  },
})

export const moduleTenantOperations: readonly Operation<TenantContext>[] = [countContacts]
