import pg from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../../test/support/database.ts'
import { uuidv7 } from '../kernel/ids.ts'
import { refreshStatistics } from './statistics.ts'

let test: TestDatabase
let admin: pg.Client

beforeAll(async () => {
  test = await createTestDatabase()
  admin = new pg.Client(test.connection)
  await admin.connect()
  // Nobody else may learn of it first.
  await admin.query('ALTER TABLE portico.record_directory SET (autovacuum_enabled = off)')
})

afterAll(async () => {
  await admin.end()
  await test.drop()
})

const organizationId = uuidv7(Date.now())

/** Rows of the directory, written by somebody else than the one who looks. */
async function grow(rows: number): Promise<void> {
  await admin.query(
    `INSERT INTO portico.record_directory (organization_id, record_id, object_id)
     SELECT $1, gen_random_uuid(), gen_random_uuid() FROM generate_series(1, $2)`,
    [organizationId, rows],
  )
  // Otherwise told to others within a second.
  await admin.query('SELECT pg_stat_force_next_flush()')
}

async function knownRows(): Promise<number> {
  const { rows } = await admin.query(
    `SELECT reltuples::int AS rows FROM pg_class WHERE oid = 'portico.record_directory'::regclass`,
  )
  return rows[0].rows
}

async function indexChosen(): Promise<string> {
  const { rows } = await admin.query(
    `EXPLAIN SELECT FROM portico.record_directory WHERE organization_id = '${organizationId}' AND object_id = gen_random_uuid()`,
  )
  return rows.map((row) => row['QUERY PLAN']).join('\n')
}

it('learns of a young table that has grown, once, and again when it has grown by a fifth', async () => {
  await refreshStatistics(test.database)
  await grow(1000)
  expect(await indexChosen()).toContain('Index')
  expect(await refreshStatistics(test.database)).toBe(1)
  expect(await knownRows()).toBe(1000)
  // One organisation has all the rows: the planner no longer takes its column for a selective one.
  expect(await indexChosen()).toContain('Seq Scan')

  expect(await refreshStatistics(test.database)).toBe(0)
  await grow(150)
  expect(await refreshStatistics(test.database)).toBe(0)
  await grow(100)
  expect(await refreshStatistics(test.database)).toBe(1)
  expect(await knownRows()).toBe(1250)
})

it('leaves it to another process that is at it', async () => {
  await grow(1000)
  await admin.query(`BEGIN; SELECT pg_advisory_xact_lock(hashtextextended('portico statistics', 0))`)
  expect(await refreshStatistics(test.database)).toBe(0)
  await admin.query('ROLLBACK')
  expect(await refreshStatistics(test.database)).toBe(1)
})
