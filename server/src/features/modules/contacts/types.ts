import { type Context, operation } from '../../../shared/context.ts'
import { pageOf } from '../../../shared/cursors.ts'
import { basePath, moduleScope, readingOf } from '../declaration.ts'
import { contacts } from '../descriptors/contacts.ts'
import { ModuleParams } from '../schemas.ts'
import * as schema from './schema.ts'
import { findTypes, type TypeRow } from './store.ts'

/** A type needs no definition: an organization has those that its contacts have, as with tags. */
export const listTypes = operation({
  ...readingOf(contacts),
  id: 'developerModulesContactsListTypes',
  method: 'GET',
  path: `${basePath}/contacts/types`,
  summary: 'List the types of contacts, with how many there are of each.',
  description:
    'A type is a key that an organization gives to contacts (`contactTypeId`), for instance `supplier`. It exists from the first contact that has it to the last; no other definition is needed.',
  rateClass: 'search',
  params: ModuleParams,
  query: schema.TypesQuery,
  responses: { 200: schema.Types },
  errors: ['object_not_found', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler(context: Context, { query }) {
    const scope = await moduleScope(context, contacts)
    const { tx, caller, access } = scope
    const field = access.readableByKey.get('contactTypeId')
    const find = (after: readonly string[] | null, limit: number) =>
      field ? findTypes(tx, caller, access, field, after?.[0], limit) : Promise.resolve<TypeRow[]>([])
    const list = ['contact types', caller.organizationId]
    const { rows, nextCursor } = await pageOf(context.cursors, list, query, find, (row) => [row.contactTypeId])
    return { status: 200, body: { items: rows, nextCursor } }
  },
})
