import { asAdministrator } from './administrator.ts'
import type { TestDatabase } from './database.ts'

/** Columns that say whose a row is. */
const owning = [
  'account_id',
  'app_id',
  'organization_id',
  'target_organization_id',
  'builder_id',
  'tenant_id',
  'scope_id',
]

/**
 * Columns that change by themselves: uses are noted a little after they happened, and indexes are built in the background.
 */
const restless = ['last_used_at', 'index_state', 'rows_done']

/** The log of requests is written a little after they were answered. */
const leftOut = ['request_log']

/**
 * Every row that belongs to an account, its applications, its organisations or its members, whatever table it stands in,
 * and the tables of its models: as text, by table, in an order that only what they hold decides.
 */
export async function accountRows({ connection }: TestDatabase, accountId: string): Promise<Record<string, string[]>> {
  return asAdministrator(connection, async (admin) => {
    const select = async <Row extends object>(text: string, values: unknown[]) =>
      (await admin.query<Row>(text, values)).rows
    const ids = await select<{ id: string }>(
      `SELECT $1::text AS id
       UNION SELECT builder_id::text FROM portico.account_member WHERE account_id = $1::uuid
       UNION SELECT app_id::text FROM portico.application WHERE account_id = $1::uuid
       UNION SELECT organization_id::text FROM portico.organization JOIN portico.application USING (app_id)
         WHERE account_id = $1::uuid`,
      [accountId],
    )
    const tables = await select<{ name: string; columns: string[] }>(
      `SELECT c.table_name AS name, array_agg(c.column_name::text) AS columns
       FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
       WHERE table_schema = 'portico' AND t.table_type = 'BASE TABLE' AND c.column_name = ANY ($1)
         AND NOT table_name = ANY ($2)
       GROUP BY 1 ORDER BY 1`,
      [owning, leftOut],
    )
    const found: Record<string, string[]> = {}
    for (const { name, columns } of tables) {
      const isTheirs = columns.map((column) => `t.${column}::text = ANY ($1)`).join(' OR ')
      const rows = await select<{ row: string }>(
        `SELECT (to_jsonb(t) - $2::text[])::text AS row FROM portico.${name} t WHERE ${isTheirs} ORDER BY 1`,
        [ids.map(({ id }) => id), restless],
      )
      if (rows.length > 0) found[name] = rows.map(({ row }) => row)
    }
    const model = await select<{ row: string }>(
      `SELECT concat_ws(' ', table_schema, table_name, column_name, data_type) AS row
       FROM information_schema.columns JOIN portico.application a ON a.schema_name = table_schema
       WHERE a.account_id = $1 ORDER BY 1`,
      [accountId],
    )
    return { ...found, model: model.map(({ row }) => row) }
  })
}
