import { createHash } from 'node:crypto'
import Fastify from 'fastify'
import pg from 'pg'
import { uuidv7 } from '../src/kernel/ids.ts'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import { valueTypes } from '../src/shared/database/types.ts'
import { foldForSearch } from '../src/shared/search-text.ts'
import * as statements from './baseline-sql.ts'
import type { Tenant } from './tenant.ts'

/**
 * The yardstick (quality.md, Performance): a bare Fastify server that does for one fixed organisation what the service does
 * for all of them. The same rows behind the same row-level security, the same JSON; no authentication, no validation, no
 * limits, no diagnostics, no query language. Whatever made it faster while it did the same was kept:
 *
 * - a whole transaction leaves in one write, COMMIT included, on any connection: nothing is ever checked out;
 * - every statement is prepared, by a name that is known beforehand;
 * - the JSON is made from the rows directly and handed over as a string.
 */
export interface BaselineOptions {
  readonly connection: ConnectionSettings
  readonly poolSize: number
  readonly tenant: Tenant
  /** What `/contract` answers. */
  readonly contract: string
}

type Row = Record<string, unknown>
type Values = readonly unknown[]

const jsonType = 'application/json; charset=utf-8'

async function serve({ connection, poolSize, tenant, contract }: BaselineOptions): Promise<number> {
  const transact = await openConnections(connection, poolSize, tenant.organization.organizationId)
  const { organization, deal, appId } = tenant
  const sql = statements.forTenant(tenant)
  const app = Fastify()

  const page = (rows: Row[], pageSize: number) => {
    const hasMore = rows.length > pageSize
    if (hasMore) rows.pop()
    const { created_at, record_id } = rows.at(-1)!
    const nextCursor = hasMore ? Buffer.from(JSON.stringify([created_at, record_id])).toString('base64url') : null
    return JSON.stringify({ records: rows.map(viewOf), hasMore, page: 1, pageSize, nextCursor })
  }
  interface SearchBody {
    readonly filter: { readonly value: string }
    readonly pageSize: number
  }
  const { organizationId, sales, dataRoles, locations } = organization
  const ofEverybody = (stage: string) => [organizationId, stage]
  const ofSales = (stage: string) => [organizationId, sales.userId, [dataRoles['sales']], [locations.north], stage]
  for (const [path, statement, valuesOf, limited] of [
    ['/search', sql.search, ofEverybody, true],
    ['/search-fixed', sql.searchFixed, ofEverybody, false],
    ['/search-as-sales', sql.searchAsUser, ofSales, true],
    ['/search-as-sales-fixed', sql.searchAsUserFixed, ofSales, false],
  ] as const) {
    app.post<{ Body: SearchBody }>(path, async ({ body: { filter, pageSize } }, reply) => {
      const values = limited ? [...valuesOf(filter.value), pageSize + 1] : valuesOf(filter.value)
      const [rows] = await transact.read([statement, values])
      return reply.type(jsonType).send(page(rows!, pageSize))
    })
  }
  app.get<{ Params: { recordId: string } }>('/records/:recordId', async ({ params }, reply) => {
    const [rows] = await transact.read([sql.get, [organization.organizationId, params.recordId]])
    const record = viewOf(rows![0]!)
    return reply.type(jsonType).header('etag', `"${record.revision}"`).send(JSON.stringify(record))
  })
  app.get('/contract', async (_, reply) => {
    await transact.read()
    return reply.type(jsonType).send(contract)
  })

  interface CreateBody {
    readonly fields: Record<string, unknown> & { readonly name: string }
  }
  const newRow = ({ fields }: CreateBody): statements.NewRow & CreateBody => {
    const recordId = uuidv7(Date.now())
    const at = new Date().toISOString()
    const by = { kind: 'credential', id: organization.liveKeyId }
    const placement = { ownerUserId: null, dataRoleId: null, locationId: null, externalKey: null }
    const changes = { createdAt: at, createdBy: by, updatedAt: at, updatedBy: by, archivedAt: null, revision: 1 }
    const record = { recordId, objectKey: 'deal', fields, ...placement, ...changes }
    const event = { organizationId: organization.organizationId, record }
    return {
      recordId,
      fields,
      document: deal.searchTag + foldForSearch(fields.name),
      eventId: uuidv7(Date.now()),
      event,
    }
  }
  const insertValues = (body: CreateBody) => {
    const { recordId, fields, document, eventId, event } = newRow(body)
    const { name, stage, amount, probability, closeDate, company, notes } = fields
    const common = [organization.organizationId, recordId, deal.objectId, organization.liveKeyId, document]
    const told = [appId, eventId, JSON.stringify(event)]
    return [...common, name, stage, amount, probability, closeDate, company, notes, ...told]
  }
  const created = (row: Row) => JSON.stringify(viewOf(row))
  const headersOf = (row: Row) => ({
    etag: `"${row['revision']}"`,
    location: `/v1/apps/${appId}/objects/deal/records/${row['record_id']}`,
  })
  app.post<{ Body: CreateBody }>('/records', async ({ body, headers }, reply) => {
    const key = headers['idempotency-key']
    if (key === undefined) {
      const [rows] = await transact.write([sql.create, insertValues(body)])
      const row = rows![0]!
      return reply.code(201).type(jsonType).headers(headersOf(row)).send(created(row))
    }
    const payload = await transact.writeInTwo([sql.create, insertValues(body)], ([row]) => {
      const text = created(row!)
      const hash = createHash('sha256').update(JSON.stringify(body)).digest()
      const kept = [new Date().toISOString(), hash, 201, JSON.stringify(headersOf(row!)), text]
      return [text, [sql.keep, [organization.organizationId, organization.liveKeyId, key, ...kept]]]
    })
    return reply.code(201).type(jsonType).send(payload)
  })
  app.post<{ Body: { items: CreateBody[] } }>('/batch', { bodyLimit: 8 << 20 }, async ({ body }, reply) => {
    const input = JSON.stringify(body.items.map((item) => statements.batchRow(newRow(item))))
    const { organizationId, liveKeyId } = organization
    const [rows] = await transact.write([sql.batch, [organizationId, deal.objectId, liveKeyId, input, appId]])
    const results = rows!.map((row, index) => ({ index, status: 201, record: viewOf(row) }))
    return reply.type(jsonType).send(JSON.stringify({ results }))
  })

  await app.listen({ host: '127.0.0.1', port: 0 })
  return (app.server.address() as { port: number }).port
}

type Prepared = readonly [statement: statements.Named, values: Values]

/** Connections to which whole transactions are written, each in one piece, in turn. */
async function openConnections(connection: ConnectionSettings, count: number, organizationId: string) {
  const config = { ...connection, types: valueTypes, pipeline: true, options: '-c timezone=UTC -c role=portico_app' }
  const clients = Array.from({ length: count }, () => new pg.Client(config))
  await Promise.all(clients.map((client) => client.connect()))
  const idle = [...clients]
  const waiting: ((client: pg.Client) => void)[] = []
  let turn = 0

  async function inOneWrite(begin: string, work: readonly Prepared[]): Promise<Row[][]> {
    const client = clients[turn++ % clients.length]!
    const stream = (client as unknown as { connection: { stream: { cork(): void; uncork(): void } } }).connection.stream
    stream.cork()
    const begun = client.query(begin)
    const bound = client.query({ ...statements.bind, values: [organizationId] })
    const results = work.map(([statement, values]) => client.query<Row>({ ...statement, values: values as unknown[] }))
    const committed = client.query('COMMIT')
    stream.uncork()
    const all = await Promise.all([...results, begun, bound, committed])
    return all.slice(0, results.length).map((result) => result.rows as Row[])
  }

  /** A transaction that decides on the way needs a connection to itself. */
  async function writeInTwo<T>(first: Prepared, second: (rows: Row[]) => readonly [T, Prepared]): Promise<T> {
    const client = idle.pop() ?? (await new Promise<pg.Client>((resolve) => waiting.push(resolve)))
    const stream = (client as unknown as { connection: { stream: { cork(): void; uncork(): void } } }).connection.stream
    stream.cork()
    const begun = client.query('BEGIN')
    const bound = client.query({ ...statements.bind, values: [organizationId] })
    const inserted = client.query<Row>({ ...first[0], values: first[1] as unknown[] })
    stream.uncork()
    const [{ rows }] = await Promise.all([inserted, begun, bound])
    const [value, [statement, values]] = second(rows)
    stream.cork()
    const kept = client.query({ ...statement, values: values as unknown[] })
    const committed = client.query('COMMIT')
    stream.uncork()
    await Promise.all([kept, committed])
    const next = waiting.shift()
    if (next) next(client)
    else idle.push(client)
    return value
  }

  return {
    read: (...work: Prepared[]) => inOneWrite('BEGIN READ ONLY', work),
    write: (...work: Prepared[]) => inOneWrite('BEGIN', work),
    writeInTwo,
  }
}

function viewOf(row: Row) {
  const live = row['archived_at'] === null
  return {
    recordId: row['record_id'],
    objectKey: 'deal',
    displayName: row['f_name'],
    fields: {
      name: row['f_name'],
      stage: row['f_stage'],
      amount: row['f_amount'],
      probability: row['f_probability'],
      closeDate: row['f_closeDate'],
      company: row['f_company'],
      notes: row['f_notes'],
    },
    ownerUserId: row['owner_user_id'],
    dataRoleId: row['data_role_id'],
    locationId: row['location_id'],
    externalKey: row['external_key'],
    createdAt: row['created_at'],
    createdBy: { kind: row['created_by_kind'], id: row['created_by_id'] },
    updatedAt: row['updated_at'],
    updatedBy: { kind: row['updated_by_kind'], id: row['updated_by_id'] },
    archivedAt: row['archived_at'],
    revision: row['revision'],
    access: { canUpdate: live, canArchive: live },
  }
}

process.once('message', async (options: BaselineOptions) => process.send!({ port: await serve(options) }))
process.once('SIGTERM', () => process.exit(0))
