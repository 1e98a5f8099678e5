import sql from 'sql-template-tag'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { asAdministrator } from '../../../test/support/administrator.ts'
import { objectOf } from '../../../test/support/application.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { text } from '../../../test/support/modelled-application.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import { systemClock } from '../../kernel/clock.ts'
import { createLog } from '../log.ts'
import { startMaintenance } from '../maintenance.ts'
import { takeUsageSnapshots } from './snapshots.ts'

let db: TestDatabase
beforeAll(async () => {
  db = await createTestDatabase()
})
afterAll(() => db.drop())

test('the service measures every application by itself, archived ones too', async () => {
  const applications = await Promise.all([1, 2].map(() => createTenant(db.database, { organizations: { a: {} } })))
  const appIds = applications.map(({ appId }) => appId).sort()
  await db.database.as('portico_owner', (tx) =>
    tx.rows(sql`UPDATE portico.application SET archived_at = now() WHERE app_id = ${appIds[0]}`),
  )
  const log = createLog({ level: 'silent', pretty: false })
  vi.useFakeTimers({ toFake: ['setInterval'] })
  const stop = startMaintenance({ database: db.database, clock: systemClock, log })
  try {
    vi.advanceTimersByTime(5 * 60 * 1000)
    const measured = () =>
      db.database.as('portico_owner', (tx) =>
        tx.rows<{ id: string }>(sql`SELECT DISTINCT app_id AS id FROM portico.usage_daily ORDER BY 1`),
      )
    await vi.waitFor(async () => expect((await measured()).map(({ id }) => id)).toEqual(appIds), 10_000)
  } finally {
    stop()
    vi.useRealTimers()
  }
})

test('an application that somebody has locked misses a figure, and keeps no other from being measured', async () => {
  const model = { objects: [objectOf('note', [text('title')])], roles: {} }
  const applications = await Promise.all(
    [1, 2].map(() => createTenant(db.database, { model, organizations: { a: {} } })),
  )
  const [locked, free] = applications as [(typeof applications)[0], (typeof applications)[0]]
  await asAdministrator(db.connection, async (admin) => {
    const { rows } = await admin.query(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname = $1`,
      [locked.schemaName],
    )
    await admin.query('BEGIN')
    await admin.query(`LOCK TABLE ${rows[0].name} IN ACCESS EXCLUSIVE MODE`)
    await takeUsageSnapshots({ database: db.database, clock: systemClock })
    await admin.query('ROLLBACK')
  })
  const measured = await db.database.as('portico_owner', (tx) =>
    tx.rows<{ id: string; resource: string }>(
      sql`SELECT DISTINCT app_id AS id, resource FROM portico.usage_daily ORDER BY 1, 2`,
    ),
  )
  const of = ({ appId }: { appId: string }) => measured.filter(({ id }) => id === appId).map(({ resource }) => resource)
  expect([of(locked), of(free)]).toEqual([
    ['deliveries', 'records'],
    ['deliveries', 'records', 'storageBytes'],
  ])
})
