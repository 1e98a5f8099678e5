import sql from 'sql-template-tag'
import type { Database } from '../database/database.ts'
import type { Log } from '../log.ts'
import type { IndexBuilder } from './index-builder.ts'
import { installNativeObjects, type NativeObjects } from './native-objects.ts'
import { inTurn } from './turn.ts'

/** Brings the applications that were made before a module or a field came to what it is now, one after the other. */
export interface NativeUpgrade {
  /** Returns at once; meanwhile requests are answered with what each application has. */
  start(): void
  /** Begins with no further application, and resolves when the one under way is done. */
  stop(): Promise<void>
  /** Resolves when none is left. */
  idle(): Promise<void>
}

export interface NativeUpgradeOptions {
  readonly database: Database
  readonly native: NativeObjects
  readonly indexBuilder: Pick<IndexBuilder, 'build'>
  readonly log: Log
}

export function createNativeUpgrade({ database, native, indexBuilder, log }: NativeUpgradeOptions): NativeUpgrade {
  let stopping = false
  let working: Promise<void> | undefined

  async function work(): Promise<void> {
    for (const appId of await applicationsToUpgrade(database, native)) {
      if (stopping) return
      try {
        // Who waited for another process finds that nothing is left to do.
        await inTurn(database, appId, () =>
          database.as('portico_owner', (tx) => installNativeObjects(tx, appId, native)),
        )
        indexBuilder.build(appId)
      } catch (error) {
        log.error({ err: error, appId }, 'Native modules could not be installed. It is tried again at the next start.')
      }
    }
  }

  return {
    start() {
      working ??= work().catch((error: unknown) => {
        log.error({ err: error }, 'Which applications miss native modules could not be read.')
      })
    },
    async stop() {
      stopping = true
      await working
    },
    async idle() {
      await working
    },
  }
}

/** One query, which finds nothing at most starts. */
async function applicationsToUpgrade(database: Database, { version }: NativeObjects): Promise<string[]> {
  const rows = await database.as('portico_owner', (tx) =>
    tx.rows<{ appId: string }>(sql`SELECT app_id AS "appId" FROM portico.application
      WHERE native_version IS DISTINCT FROM ${version} ORDER BY app_id`),
  )
  return rows.map(({ appId }) => appId)
}
