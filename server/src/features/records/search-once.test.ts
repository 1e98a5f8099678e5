import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Deals, startDeals } from '../../../test/support/deals.ts'

/** The words of a search are looked up once for each statement, however small the planner takes the table to be. */
let deals: Deals
let admin: pg.Client
const rows = 150

beforeAll(async () => {
  deals = await startDeals()
  admin = new pg.Client(deals.running.db.connection)
  await admin.connect()
  await admin.query(
    `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET track_functions = pl', current_database()); END $$`,
  )
  // Written at once and never analysed: without statistics its rows look few.
  const items = Array.from({ length: rows }, (_, n) => ({ operation: 'create', fields: { name: `Needle ${n}` } }))
  expect((await deals.owner.batch(items)).status).toBe(200)
  await endSessions()
})
afterAll(async () => {
  await admin?.end()
  await deals?.close()
})

/** Ends the service's sessions: the next ones have the setting, and those that end tell what they counted. */
async function endSessions(): Promise<void> {
  const others = 'pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
  await admin.query(`SELECT pg_terminate_backend(pid) FROM ${others}`)
  while ((await admin.query(`SELECT FROM ${others}`)).rowCount) await pause(10)
}

test('one look-up serves a page, and one its total', async () => {
  const { body } = await deals.owner.search({ search: 'needle 14', sort: 'name_asc', pageSize: 5, includeTotal: true })
  expect(body.totalRecords).toBe(12)
  await endSessions()
  const { rows: counted } = await admin.query(
    `SELECT sum(calls)::int AS calls FROM pg_stat_user_functions WHERE funcname IN ('search_records', 'search_count')`,
  )
  expect(counted[0].calls).toBe(2)
})
