import { deepStrictEqual } from 'node:assert/strict'
import pg from 'pg'
import { uuidv7 } from '../src/kernel/ids.ts'
import { nativeModules } from '../src/native-modules.ts'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import { readModel } from '../src/shared/catalogue/catalogue.ts'
import { openDatabase } from '../src/shared/database/database.ts'
import { documentOf } from '../src/shared/records/search-document.ts'
import { fillContacts } from './search-data.ts'
import type { Tenant } from './tenant.ts'

export interface Size {
  readonly records: number
  readonly neighbours: number
  readonly neighbourRecords: number
}

/** Contacts of the organisation that is asked, and of its neighbours in the same tables. Says how long what took. */
export async function loadContacts(
  connection: ConnectionSettings,
  tenant: Tenant,
  participantId: string,
  { records, neighbours, neighbourRecords }: Size,
  say: (sentence: string) => void,
): Promise<void> {
  const clients = [new pg.Client(connection), new pg.Client(connection)]
  const [first] = clients as [pg.Client]
  for (const client of clients) await client.connect()
  try {
    const from = Date.now()
    const remake = await dropIndexes(first, tenant)
    const { organizationId, owner, sales, dataRoles, locations } = tenant.organization
    const own = {
      organizationId,
      count: records,
      seed: 0,
      ownerIds: [sales.userId, owner.userId] as const,
      roleId: dataRoles['sales']!,
      locationIds: [locations.north, locations.south] as const,
      participantId,
    }
    const someone = uuidv7(Date.now())
    const theirs = Array.from({ length: neighbours }, (_, n) => ({
      ...own,
      organizationId: uuidv7(Date.now()),
      count: neighbourRecords,
      seed: (n + 1) * 10_000_000,
      participantId: someone,
    }))
    const waiting = [own, ...theirs]
    const work = async (client: pg.Client) => {
      for (let next = waiting.shift(); next; next = waiting.shift()) await fillContacts(client, tenant, next)
    }
    await Promise.all(clients.map(work))
    const filled = Date.now()
    await remake()
    say(`Rows in ${Math.round((filled - from) / 1000)} s, indexes in ${Math.round((Date.now() - filled) / 1000)} s.`)
    say(await sizes(first, tenant))
  } finally {
    for (const client of clients) await client.end()
  }
  await requireSameDocuments(connection, tenant)
}

/**
 * Takes away every index that is no key, and returns what makes them again: entering six million documents into the index of
 * words one by one takes an hour, making it anew some minutes.
 */
async function dropIndexes(client: pg.Client, { contacts }: Tenant): Promise<() => Promise<void>> {
  const { rows } = await client.query<{ name: string; definition: string }>(
    `SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition
     FROM pg_index i WHERE NOT i.indisprimary
       AND i.indrelid IN ($1::regclass, 'portico.search_document'::regclass)`,
    [contacts.table],
  )
  await client.query(`DROP INDEX ${rows.map(({ name }) => name).join(', ')}`)
  return async () => {
    await client.query(`SET maintenance_work_mem = '1GB'`)
    for (const { definition } of rows) await client.query(definition.replace(' ON ONLY ', ' ON '))
  }
}

async function sizes(client: pg.Client, { contacts }: Tenant): Promise<string> {
  const parts = (name: string) =>
    `(SELECT sum(pg_relation_size(relid)) FROM pg_partition_tree('portico.search_document${name}'))`
  const { rows } = await client.query<{ size: string }>(
    `SELECT string_agg(what || ' ' || pg_size_pretty(bytes::bigint), ', ') AS size FROM (VALUES
       ('Contacts', pg_relation_size($1)), ('their indexes', pg_indexes_size($1)), ('documents', ${parts('')}),
       ('words', ${parts('_words')}), ('titles', ${parts('_title')})) AS s (what, bytes)`,
    [contacts.table],
  )
  return rows[0]!.size
}

/** What SQL wrote is what the service would have written, or the bench measures something else. */
async function requireSameDocuments(connection: ConnectionSettings, { appId, contacts }: Tenant): Promise<void> {
  const database = openDatabase({ connection, poolSize: 1 })
  const client = new pg.Client(connection)
  await client.connect()
  try {
    const model = await database.as('portico_owner', (tx) => readModel(tx, appId, '', nativeModules.behaviours))
    const object = model.byKey.get('contacts')!
    const { rows } = await client.query<Record<string, unknown>>(
      `SELECT t.*, d.content, d.title FROM (SELECT * FROM ${contacts.table} TABLESAMPLE SYSTEM (0.5) LIMIT 2000) AS t
       JOIN portico.search_document d USING (organization_id, record_id)`,
    )
    for (const row of rows) {
      deepStrictEqual(
        documentOf(object, (field) => row[field.column]),
        { content: row['content'], title: row['title'] },
      )
    }
  } finally {
    await client.end()
    await database.close()
  }
}
