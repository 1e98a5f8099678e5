import { type Context, operation } from '../../../shared/context.ts'
import { parseQuery } from '../../../shared/records/query.ts'
import { findPage } from '../../../shared/records/read-store.ts'
import type { RecordRow } from '../../../shared/records/record.ts'
import type { RecordScope } from '../../../shared/records/scope.ts'
import { positionOf } from '../../../shared/records/sort.ts'
import { foldForSearch } from '../../../shared/search-text.ts'
import { basePath, moduleScope, readingOf } from '../declaration.ts'
import { contacts } from '../descriptors/contacts.ts'
import { rowOf } from '../row.ts'
import { ModuleParams } from '../schemas.ts'
import { isOlder, Pairs, type Reachable, reachable, sharedReasons } from './rules.ts'
import * as schema from './schema.ts'
import { findByPrimary, findSimilar } from './store.ts'

const pageSizeDefault = 20

/** Names that are looked up together. One takes some 30 ms among a million, and five times that when they come from a disk. */
const namesAtOnce = 4
/** After so long a page ends with the contact that it has come to: somebody waits for it, and a statement has five seconds. */
const patienceMs = 1_000

/**
 * Goes through the contacts, the newest first, and looks each up among all others. How far a page comes is decided by its
 * size, and by the time that looking up names takes.
 */
export const listDuplicates = operation({
  ...readingOf(contacts),
  id: 'developerModulesContactsListDuplicates',
  method: 'GET',
  path: `${basePath}/contacts/duplicates`,
  summary: 'Find contacts that may be one and the same.',
  description:
    'Goes through the contacts, the newest first, `pageSize` at a time (20 unless said otherwise; fewer where looking them up takes more than a second), and pairs each with those that have its e-mail address or telephone number as their primary one, or a similar name. Only what the caller may see and read is compared.',
  rateClass: 'search',
  params: ModuleParams,
  query: schema.DuplicatesQuery,
  responses: { 200: schema.Duplicates },
  errors: ['object_not_found', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler(context: Context, { query }) {
    const scope = await moduleScope(context, contacts)
    const { cursors } = context
    const { cursor, pageSize = pageSizeDefault } = query
    const list = ['duplicates', scope.caller.organizationId]
    const position = cursor === undefined ? undefined : cursors.open(list, cursor)
    const newest = { ...parseQuery({ pageSize }, scope, cursors), position }
    const { rows, next } = await findPage(scope.tx, scope.caller, newest)
    const all = rows.map((row) => told(row, scope))
    const { byName, count } = await similarOnes(scope, all)
    const pairs = await pairsOf(scope, all.slice(0, count), byName)
    const items = pairs.map(({ contacts: both, ...pair }) => ({
      contacts: both.map(({ recordId, displayName }) => ({ recordId, displayName })),
      ...pair,
    }))
    const ended = count < rows.length ? positionOf(newest.sort, rows[count - 1]!) : next
    return { status: 200, body: { items, nextCursor: ended ? cursors.seal(list, ended) : null } }
  },
})

async function pairsOf(scope: RecordScope, page: readonly Reachable[], byName: readonly Similar[]) {
  const pairs = new Pairs()
  const [byEmail, byPhone] = await Promise.all([
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

interface Similar {
  readonly contact: Reachable
  readonly other: Pick<Reachable, 'recordId' | 'createdAt' | 'displayName'>
  readonly similarity: number
}

/** Older contacts with similar names, of so many of the page as there is time for; of some at least. */
async function similarOnes(
  scope: RecordScope,
  page: readonly Reachable[],
): Promise<{ readonly byName: readonly Similar[]; readonly count: number }> {
  const byName: Similar[] = []
  const from = performance.now()
  let count = 0
  while (count < page.length && (count === 0 || performance.now() - from < patienceMs)) {
    const some = page.slice(count, count + namesAtOnce)
    byName.push(...(await similar(scope, some)))
    count += some.length
  }
  return { byName, count }
}

async function similar({ tx, caller, access }: RecordScope, page: readonly Reachable[]): Promise<Similar[]> {
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
