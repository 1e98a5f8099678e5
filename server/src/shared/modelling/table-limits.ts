import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import type { Change } from './changes.ts'
import type { FieldDocument, ObjectDocument } from './document.ts'
import { columnCount, envelopeColumns } from './physical-table.ts'
import type { Issue } from './problems.ts'
import type { PublishedModel } from './published.ts'

/** Columns that one release may make, those of the tables themselves included: some 10 s on a slow machine. */
const columnsOfReleaseMax = 3000

/** PostgreSQL's; columns that were dropped count. */
const columnsOfTableMax = 1600

/** What tables stand against: a release that makes too much of them at once, and tables that have no column left. */
export async function refusalsOfTables(
  tx: Tx,
  published: PublishedModel,
  changes: readonly Change[],
): Promise<Issue[]> {
  const added = changes.filter(({ verb }) => verb === 'added')
  const made = added.filter(({ part }) => part === 'object').map(({ after }) => after as unknown as ObjectDocument)
  const grown = new Map<string, number>()
  for (const { part, key, after } of added) {
    if (part !== 'field') continue
    grown.set(key, (grown.get(key) ?? 0) + columnCount(after as unknown as FieldDocument))
  }
  const columns =
    made.reduce(
      (sum, { fields }) => sum + fields.reduce((its, field) => its + columnCount(field), envelopeColumns),
      0,
    ) + [...grown.values()].reduce((sum, count) => sum + count, 0)
  if (columns > columnsOfReleaseMax) {
    const message = `The release would make ${columns} columns; ${columnsOfReleaseMax} is the most. Publish it in parts.`
    return [{ path: 'objects', code: 'release_too_large', message }]
  }
  return grown.size === 0 ? [] : fullTables(tx, published, grown)
}

async function fullTables(
  tx: Tx,
  { schemaName, objects }: PublishedModel,
  grown: ReadonlyMap<string, number>,
): Promise<Issue[]> {
  const rows = await tx.rows<{ name: string; columns: number }>(sql`
    SELECT c.relname AS name, c.relnatts::integer AS columns FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ${schemaName} AND c.relkind = 'r'`)
  const used = new Map(rows.map(({ name, columns }) => [name, columns]))
  return [...grown].flatMap(([key, more]) => {
    const had = used.get(objects.get(key)!.tableName) ?? 0
    if (had + more <= columnsOfTableMax) return []
    const message =
      `${key}: ${more} columns are wanted, and ${Math.max(0, columnsOfTableMax - had)} are left. Fields that were removed ` +
      `count: the table of an object has ${columnsOfTableMax} columns in its life. Archive fields instead, or add another object.`
    return [{ path: `objects/${key}`, code: 'columns_used_up', message }]
  })
}
