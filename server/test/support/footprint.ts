import { expect } from 'vitest'
import { asAdministrator } from './administrator.ts'
import type { TestService } from './service.ts'

/** What the records of a database come to: rows and revisions by table. Two equal footprints: nothing was written between. */
export async function footprint({ db, app, otherApp }: TestService): Promise<Record<string, string>> {
  const shared = [
    'record_directory',
    'record_history',
    'record_participant',
    'record_relationship',
    'search_document',
    'auto_number',
    'idempotency_key',
  ]
  return asAdministrator(db.connection, async (admin) => {
    const tables = await admin.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname = ANY ($1) OR (schemaname = 'portico' AND tablename = ANY ($2)) ORDER BY 1`,
      [[app.schemaName, otherApp.schemaName], shared],
    )
    const print: Record<string, string> = {}
    for (const { name } of tables.rows) {
      // The digest of all rows, whatever their order.
      const { rows } = await admin.query<{ print: string }>(
        `SELECT count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)), 0) AS print FROM ${name} t`,
      )
      print[name] = rows[0]!.print
    }
    return print
  })
}

/** Whatever `work` asks for, the records stay as they were. */
export async function writesNothing(service: TestService, work: () => Promise<void>): Promise<void> {
  const before = await footprint(service)
  await work()
  expect(await footprint(service)).toEqual(before)
}
