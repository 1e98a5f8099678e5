import { type Context, operation } from '../../../shared/context.ts'
import { pageOf } from '../../../shared/cursors.ts'
import type { RecordRow } from '../../../shared/records/record.ts'
import type { RecordScope } from '../../../shared/records/scope.ts'
import { foldForSearch } from '../../../shared/search-text.ts'
import { basePath, moduleScope, readingOf } from '../declaration.ts'
import { contacts } from '../descriptors/contacts.ts'
import { rowOf } from '../row.ts'
import { ModuleParams } from '../schemas.ts'
import { isOlder, Pairs, type Reachable, reachable, sharedReasons } from './rules.ts'
import * as schema from './schema.ts'
import { findByPrimary, findNewest, findSimilar } from './store.ts'

const pageSizeDefault = 20

/**
 * Goes through the contacts, the newest first, and looks each up among all others: the cost of a page depends on its size,
 * not on how many contacts there are.
 */
export const listDuplicates = operation({
  ...readingOf(contacts),
  id: 'developerModulesContactsListDuplicates',
  method: 'GET',
  path: `${basePath}/contacts/duplicates`,
  summary: 'Find contacts that may be one and the same.',
  description:
    'Goes through the contacts, the newest first, `pageSize` at a time (20 unless said otherwise), and pairs each with those that have its e-mail address or telephone number as their primary one, or a similar name. Only what the caller may see and read is compared.',
  rateClass: 'search',
  params: ModuleParams,
  query: schema.DuplicatesQuery,
  responses: { 200: schema.Duplicates },
  errors: ['object_not_found', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler(context: Context, { query }) {
    const scope = await moduleScope(context, contacts)
    const { tx, caller, access } = scope
    const { rows, nextCursor } = await pageOf(
      context.cursors,
      ['duplicates', caller.organizationId],
      { pageSize: pageSizeDefault, ...query },
      (before, limit) => findNewest(tx, caller, access, before, limit),
      (row) => [row.created_at, row.record_id],
    )
    const items = (await pairsOf(scope, rows)).map(({ contacts: both, ...pair }) => ({
      contacts: both.map(({ recordId, displayName }) => ({ recordId, displayName })),
      ...pair,
    }))
    return { status: 200, body: { items, nextCursor } }
  },
})

async function pairsOf(scope: RecordScope, rows: readonly RecordRow[]) {
  const page = rows.map((row) => told(row, scope))
  const pairs = new Pairs()
  const [byEmail, byPhone, byName] = await Promise.all([
    sharing(
      scope,
      'primaryEmail',
      page.flatMap((contact) => contact.emails),
    ),
    sharing(
      scope,
      'primaryPhone',
      page.flatMap((contact) => contact.phones),
    ),
    similar(scope, page),
  ])
  const others = new Map([...byEmail, ...byPhone].map((contact) => [contact.recordId, contact]))
  for (const contact of page) {
    for (const other of others.values()) {
      if (other.recordId === contact.recordId || isToldByOther(contact, other)) continue
      for (const reason of sharedReasons(contact, other)) pairs.add(contact, other, reason)
    }
  }
  for (const { contact, other, similarity } of byName) pairs.add(contact, other, 'name', similarity)
  return pairs.sorted()
}

function told(row: RecordRow, scope: RecordScope): Reachable {
  return reachable(row.record_id, row.created_at, rowOf(row, scope))
}

async function sharing(scope: RecordScope, fieldKey: string, values: readonly string[]): Promise<Reachable[]> {
  const field = scope.access.readableByKey.get(fieldKey)
  if (!field || values.length === 0) return []
  const rows = await findByPrimary(scope.tx, scope.caller, scope.access, field, [...new Set(values)])
  return rows.map((row) => told(row, scope))
}

/** The page of the newer one of the two comes first, and tells of both, where it finds the other one by its primary. */
function isToldByOther(contact: Reachable, other: Reachable): boolean {
  if (isOlder(other, contact)) return false
  const { primaryEmail, primaryPhone } = contact
  return (
    (primaryEmail !== null && other.emails.includes(primaryEmail)) ||
    (primaryPhone !== null && other.phones.includes(primaryPhone))
  )
}

async function similar({ tx, caller, access }: RecordScope, page: readonly Reachable[]) {
  if (!access.readableByKey.has(access.object.nameField.fieldKey)) return []
  const named = page.filter((contact) => contact.displayName !== null)
  if (named.length === 0) return []
  const names = named.map((contact) => foldForSearch(contact.displayName!))
  const rows = await findSimilar(tx, caller, access, names)
  return rows.flatMap((row) => {
    const contact = named[row.ordinal - 1]!
    const other = { recordId: row.record_id, createdAt: row.created_at, displayName: row.name }
    if (!isOlder(other, contact)) return []
    // Two who have the same name need not be one: it never says as much as an address or a number.
    return [{ contact, other, similarity: Math.min(0.8, Math.round(row.similarity * 80) / 100) }]
  })
}
