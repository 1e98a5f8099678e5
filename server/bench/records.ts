import pg from 'pg'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import type { Organization, Tenant } from './tenant.ts'

const companyCount = 500

/**
 * Fills an organisation with deals by INSERT … SELECT, with every row that the service would have written beside them,
 * or, where a million would take minutes, without. A sixth each: everybody's, one person's, a role's at either location, another role's, another person's.
 */
export async function fillOrganization(
  connection: ConnectionSettings,
  tenant: Tenant,
  organization: Organization,
  count: number,
  beside: 'with everything beside' | 'alone' = 'with everything beside',
): Promise<void> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    await client.query('BEGIN')
    await client.query(`CREATE TEMP TABLE seed_company ON COMMIT DROP AS
      SELECT n, uuidv7() AS record_id FROM generate_series(0, ${companyCount - 1}) AS n`)
    await client.query(
      `INSERT INTO ${tenant.company.table} (organization_id, record_id, created_at, created_by_kind, created_by_id,
         updated_at, updated_by_kind, updated_by_id, revision, f_name, x_name, f_domain, x_domain)
       SELECT $1, record_id, now(), 'system', 'bench', now(), 'system', 'bench', 1,
         'Company ' || n, 'company ' || n, n || '.example', n || '.example' FROM seed_company`,
      [organization.organizationId],
    )
    await client.query(`CREATE TEMP TABLE seed ON COMMIT DROP AS
      SELECT n, uuidv7(make_interval(secs => n - ${count})) AS record_id,
        (now() - make_interval(secs => ${count} - n))::timestamptz(3) AS at,
        (ARRAY['Renewal', 'Pilot', 'Expansion', 'Training', 'Migration', 'Support plan'])[1 + n % 6] || ' no. ' || n AS name,
        ((n * 7919::bigint) % 90000 + 500 + (n % 100) * 0.01)::numeric(12, 2) AS amount
      FROM generate_series(1, ${count}) AS n`)
    await client.query(dealsSql(tenant), [
      organization.organizationId,
      organization.sales.userId,
      organization.owner.userId,
      organization.dataRoles['sales'],
      organization.dataRoles['support'],
      organization.locations.north,
      organization.locations.south,
      organization.liveKeyId,
    ])
    if (beside !== 'alone') await besideDeals(client, tenant, organization.organizationId)
    await client.query('COMMIT')
  } finally {
    await client.end()
  }
}

function dealsSql({ deal }: Tenant): string {
  return `INSERT INTO ${deal.table} (organization_id, record_id, owner_user_id, data_role_id, location_id,
      created_at, created_by_kind, created_by_id, updated_at, updated_by_kind, updated_by_id, revision,
      f_name, x_name, f_stage, f_amount, x_amount, f_probability, "f_closeDate", f_company, f_notes)
    SELECT $1, s.record_id,
      CASE s.n % 6 WHEN 1 THEN $2::uuid WHEN 5 THEN $3::uuid END,
      CASE s.n % 6 WHEN 2 THEN $4::uuid WHEN 3 THEN $4::uuid WHEN 4 THEN $5::uuid END,
      CASE s.n % 6 WHEN 2 THEN $6::uuid WHEN 3 THEN $7::uuid END,
      s.at, 'credential', $8, s.at, 'credential', $8, 1,
      s.name, lower(s.name), (ARRAY['open', 'open', 'won', 'lost'])[1 + s.n / 6 % 4], s.amount, s.amount,
      (s.n % 90) / 100.0, date '2026-01-01' + (s.n % 365)::int, c.record_id,
      CASE WHEN s.n % 4 = 0 THEN 'Spoke about ' || lower(s.name) || '; next step is an offer.' END
    FROM seed s LEFT JOIN seed_company c ON c.n = s.n * 11 % ${companyCount + 50}`
}

async function besideDeals(client: pg.Client, { deal }: Tenant, organizationId: string): Promise<void> {
  const { objectId, searchTag } = deal
  await client.query(
    `INSERT INTO portico.record_directory (organization_id, record_id, object_id) SELECT $1, record_id, $2 FROM seed`,
    [organizationId, objectId],
  )
  await client.query(
    `INSERT INTO portico.record_history (organization_id, record_id, revision, changed_at, operation, actor_kind, actor_id)
     SELECT $1, record_id, 1, now()::timestamptz(3), 'created', 'system', 'bench' FROM seed`,
    [organizationId],
  )
  await client.query(
    `INSERT INTO portico.search_document (organization_id, object_id, record_id, content, created_at)
     SELECT $1, $2, record_id, $3 || lower(name), now() FROM seed`,
    [organizationId, objectId, searchTag],
  )
}

/** Statistics, visibility and a checkpoint now, so that none of them happens in the middle of a measurement. */
export async function settleDatabase(connection: ConnectionSettings): Promise<void> {
  const client = new pg.Client(connection)
  await client.connect()
  await client.query('VACUUM ANALYZE')
  await client.query('CHECKPOINT')
  await client.end()
}

/** Ids of deals, spread evenly over the organisation. */
export async function someDealIds(
  connection: ConnectionSettings,
  tenant: Tenant,
  count: number,
): Promise<{ deals: string[]; companies: string[] }> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    const ids = async (table: string) => {
      const { rows } = await client.query<{ id: string }>(
        `SELECT record_id AS id FROM ${table} WHERE organization_id = $1 ORDER BY md5(record_id::text) LIMIT $2`,
        [tenant.organization.organizationId, count],
      )
      return rows.map((row) => row.id)
    }
    return { deals: await ids(tenant.deal.table), companies: await ids(tenant.company.table) }
  } finally {
    await client.end()
  }
}
