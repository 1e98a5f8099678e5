import { deepStrictEqual, ok } from 'node:assert/strict'
import pg from 'pg'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import { type Asking, ask, type CallerName } from './search-measures.ts'
import { type Kind, kinds } from './search-questions.ts'
import type { Tenant } from './tenant.ts'

/**
 * The same questions answered plainly, by the owner of the tables: every contact of the organisation with its words beside it,
 * read from end to end, and the rules of the envelope written out for each caller. It knows neither search documents nor
 * trigrams nor the indexes of contacts.
 */
export async function requireSameAsNaive(connection: ConnectionSettings, asking: Asking): Promise<string> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    await client.query(naiveTable(asking.tenant), [asking.tenant.organization.organizationId])
    let answers = 0
    for (const caller of Object.keys(asking.tokens) as CallerName[]) {
      const naive = { client, sees: seenBy(asking, caller) }
      answers += await requireSameLists(asking, naive, asking.tokens[caller])
      for (const kind of Object.keys(kinds) as Kind[]) {
        if (kind === 'a misspelt name') continue // the order of what is similar is the service's own
        for (const n of [1, 2]) {
          answers += await requireSameSearch(asking, naive, asking.tokens[caller], kinds[kind](n, asking.samples))
        }
      }
    }
    return `${answers} answers are those of the naive model.`
  } finally {
    await client.end()
  }
}

interface Naive {
  readonly client: pg.Client
  readonly sees: string
}

function naiveTable({ contacts }: Tenant): string {
  const plain = (text: string) => `regexp_replace(normalize(lower(${text}), NFKD), '[\\u0300-\\u036f]', '', 'g')`
  return `CREATE TEMP TABLE naive AS
    SELECT record_id, created_at, owner_user_id, data_role_id, location_id,
      ${plain(`concat_ws(E'\\n', "f_displayName", "f_firstName", "f_lastName", "f_companyName", f_emails::text, f_phones::text)`)} AS words,
      regexp_replace(f_phones::text, '[^0-9"]', '', 'g') AS digits
    FROM ${contacts.table} WHERE organization_id = $1 AND archived_at IS NULL`
}

function seenBy({ tenant, participantId }: Asking, caller: CallerName): string {
  const { sales, dataRoles, locations } = tenant.organization
  const everybodys = '(owner_user_id IS NULL AND data_role_id IS NULL)'
  const takesPart = `record_id IN (SELECT record_id FROM portico.record_participant WHERE user_id = '${participantId}')`
  return {
    owner: 'true',
    'role and location': `(${everybodys} OR owner_user_id = '${sales.userId}'
      OR (data_role_id = '${dataRoles['sales']}' AND (location_id IS NULL OR location_id = '${locations.north}')))`,
    participant: `(${everybodys} OR ${takesPart})`,
    outsider: everybodys,
  }[caller]
}

interface Page {
  readonly items: readonly { readonly recordId: string }[]
}
interface Count {
  readonly totalRecords: number
}
interface Found {
  readonly records: readonly { readonly recordId: string }[]
  readonly totalRecords: number
}

const idsOf = (items: readonly { readonly recordId: string }[]) => items.map(({ recordId }) => recordId)

async function requireSameLists({ base, tenant }: Asking, { client, sees }: Naive, token: string): Promise<number> {
  const { north } = tenant.organization.locations
  for (const [page, location] of [
    [1, ''],
    [100, ''],
    [1, `&locationId=${north}`],
  ] as const) {
    const where = location ? `${sees} AND location_id = '${north}'` : sees
    const { rows } = await client.query<{ record_id: string }>(
      `SELECT record_id FROM naive WHERE ${where} ORDER BY created_at DESC, record_id DESC OFFSET ${50 * (page - 1)} LIMIT 50`,
    )
    const wanted = rows.map((row) => row.record_id)
    const listed = await ask<Page>(base, token, { path: `/modules/contacts?pageSize=50&pageNumber=${page}${location}` })
    deepStrictEqual(idsOf(listed.items), wanted)
    const count = await client.query<{ count: string }>(`SELECT count(*) FROM naive WHERE ${where}`)
    const counted = await ask<Count>(base, token, { path: `/modules/contacts/count?${location.slice(1)}` })
    deepStrictEqual(counted.totalRecords, Number(count.rows[0]!.count))
    if (location) continue
    const body = { page, pageSize: 50 }
    const found = await ask<Found>(base, token, { path: '/objects/contacts/records/search', body })
    deepStrictEqual(idsOf(found.records), wanted)
  }
  return 8
}

async function requireSameSearch(
  { base }: Asking,
  { client, sees }: Naive,
  token: string,
  search: string,
): Promise<number> {
  const isNumber = /^[+\d ]+$/.test(search)
  const words = isNumber
    ? [search.replace(/\D/g, '')]
    : search.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase().split(' ')
  const holds = words.map((_, n) => `${isNumber ? 'digits' : 'words'} LIKE $${n + 1}`).join(' AND ')
  const { rows } = await client.query<{ record_id: string }>(
    `SELECT record_id FROM naive WHERE ${sees} AND ${holds} ORDER BY created_at DESC, record_id DESC`,
    words.map((word) => `%${word}%`),
  )
  const wanted = rows.map((row) => row.record_id)
  const query = encodeURIComponent(search)
  const listed = await ask<Page>(base, token, { path: `/modules/contacts?pageSize=50&search=${query}` })
  deepStrictEqual(idsOf(listed.items), wanted.slice(0, 50))
  const body = { pageSize: 50, search, includeTotal: true }
  const found = await ask<Found>(base, token, { path: '/objects/contacts/records/search', body })
  deepStrictEqual(idsOf(found.records), wanted.slice(0, 50))
  const counted = await ask<Count>(base, token, { path: `/modules/contacts/count?search=${query}` })
  deepStrictEqual([counted.totalRecords, found.totalRecords], [wanted.length, wanted.length])
  // Where nothing holds the words global search finds what is similar.
  if (wanted.length === 0) return 3
  const all = await ask<Count>(base, token, { path: `/modules/global-search/count?query=${query}` })
  deepStrictEqual(all.totalRecords, wanted.length)
  const best = await ask<Page>(base, token, { path: `/modules/global-search?pageSize=200&query=${query}` })
  const known = new Set(wanted)
  ok(best.items.length === Math.min(200, wanted.length) && idsOf(best.items).every((id) => known.has(id)), search)
  return 5
}
