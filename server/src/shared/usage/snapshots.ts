import sql from 'sql-template-tag'
import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../database/database.ts'
import { type Figure, measureApplication } from './measure.ts'
import { type MeasuredApplication, measuredByDay } from './resources.ts'

interface DueApplication extends MeasuredApplication {
  readonly accountId: string
}

/** The last measure of a day is what stays of it: at most this long before midnight. */
const measuredEveryMs = 60 * 60 * 1000
/** In the background a count of many millions of rows may take its time. */
const figureWithinMs = 60_000
const applicationsAtOnce = 100

/**
 * Measures the applications that were not measured for an hour and keeps the figures under today's date, UTC. Returns how
 * many were measured. Any number of processes may do this at once: each application is measured by one of them.
 */
export async function takeUsageSnapshots(parts: {
  readonly database: Database
  readonly clock: Clock
}): Promise<number> {
  const { database, clock } = parts
  let measured = 0
  for (;;) {
    const now = clock.now()
    const due = await findDue(database, now)
    const before = measured
    const failures: unknown[] = []
    for (const application of due) {
      // One that cannot be measured must not keep the others from it.
      const done = await takeSnapshot(database, application, now).catch((error) => void failures.push(error))
      if (done) measured++
    }
    if (failures.length > 0) throw new AggregateError(failures, 'Some applications could not be measured.')
    // What is still due is being measured elsewhere, or is for the next time.
    if (due.length < applicationsAtOnce || measured === before) return measured
  }
}

function findDue(database: Database, now: number): Promise<DueApplication[]> {
  return database.as('portico_owner', (tx) =>
    tx.rows<DueApplication>(sql`
      SELECT a.account_id AS "accountId", a.app_id AS "saasAppId", a.schema_name AS "schemaName"
      FROM portico.application a
      WHERE NOT EXISTS (SELECT FROM portico.usage_daily u WHERE u.account_id = a.account_id AND u.app_id = a.app_id
        AND ${recently(now)})
      ORDER BY a.app_id LIMIT ${applicationsAtOnce}`),
  )
}

function recently(now: number) {
  return sql`u.day = ${dayOf(now)}::date AND u.measured_at > ${new Date(now - measuredEveryMs).toISOString()}`
}

/** As the service's own role for callers, bound to the account: row-level security holds while it counts. */
function takeSnapshot(database: Database, application: DueApplication, now: number): Promise<boolean> {
  const { accountId, saasAppId } = application
  return database.as('portico_app', async (tx) => {
    await tx.rows(sql`SELECT set_config('portico.account_id', ${accountId}, true)`)
    const [lock] = await tx.rows<{ held: boolean }>(
      sql`SELECT pg_try_advisory_xact_lock(hashtextextended(${`usage ${saasAppId}`}, 0)) AS held`,
    )
    if (!lock?.held) return false
    // Another process may have done it between the question what is due and the lock.
    const done = await tx.rows(sql`SELECT FROM portico.usage_daily u
      WHERE u.account_id = ${accountId} AND u.app_id = ${saasAppId} AND ${recently(now)} LIMIT 1`)
    if (done.length > 0) return false
    const within = () => figureWithinMs
    const today = await measureApplication(tx, application, dayOf(now), within)
    await tx.rows(upserting(application, today, dayOf(now), now))
    // What happened yesterday after it was measured last.
    const yesterday = dayOf(now - 24 * 60 * 60 * 1000)
    const late = await measureApplication(tx, application, yesterday, within, measuredByDay)
    await tx.rows(upserting(application, late, yesterday, now))
    return today.length > 0
  })
}

function upserting({ accountId, saasAppId }: DueApplication, figures: readonly Figure[], day: string, now: number) {
  return sql`INSERT INTO portico.usage_daily (account_id, app_id, day, resource, quantity, measured_at)
    SELECT ${accountId}, ${saasAppId}, ${day}::date, f."resourceKey", f.quantity, ${new Date(now).toISOString()}
    FROM json_to_recordset(${JSON.stringify(figures)}::json) AS f ("resourceKey" text, quantity bigint)
    ON CONFLICT (account_id, app_id, day, resource)
      DO UPDATE SET quantity = EXCLUDED.quantity, measured_at = EXCLUDED.measured_at`
}

/** The day of a moment in UTC. */
export function dayOf(now: number): string {
  return new Date(now).toISOString().slice(0, 10)
}
