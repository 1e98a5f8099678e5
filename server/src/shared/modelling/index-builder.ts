import sql from 'sql-template-tag'
import { type Behaviours, noBehaviours } from '../catalogue/behaviour.ts'
import { readModel } from '../catalogue/catalogue.ts'
import type { Field } from '../catalogue/field.ts'
import type { Database } from '../database/database.ts'
import type { Log } from '../log.ts'
import { fieldIndex } from './physical-table.ts'
import { rebuildSearchDocuments } from './search-rebuild.ts'
import { inTurn } from './turn.ts'

/** Finishes in the background what a release leaves to be built, one application after the other. */
export interface IndexBuilder {
  /** Returns at once. Asked again while it builds, it looks once more when it is done. */
  build(appId: string): void
  /** Takes up what an earlier process did not finish, in every application. Returns at once. */
  resume(): void
  /** Resolves when nothing is being built. */
  idle(): Promise<void>
}

export function createIndexBuilder({
  database,
  log,
  behaviours,
}: {
  readonly database: Database
  readonly log: Log
  readonly behaviours?: Behaviours
}): IndexBuilder {
  const asked = new Set<string>()
  let working: Promise<void> | undefined
  let resuming: Promise<void> | undefined

  async function work(): Promise<void> {
    for (const appId of asked) {
      asked.delete(appId)
      try {
        await buildIndexes(database, appId, behaviours)
      } catch (error) {
        log.error({ err: error, appId }, 'Indexes could not be built. They are tried again at the next start.')
      }
    }
    working = undefined
  }

  function build(appId: string): void {
    asked.add(appId)
    working ??= Promise.resolve().then(work)
  }

  return {
    build,
    resume() {
      resuming = unfinishedApplications(database).then(
        (appIds) => appIds.forEach(build),
        (error: unknown) => log.error({ err: error }, 'What is to be built could not be read.'),
      )
    },
    async idle() {
      await resuming
      await working
    },
  }
}

async function unfinishedApplications(database: Database): Promise<string[]> {
  const rows = await database.as('portico_owner', (tx) =>
    tx.rows<{ appId: string }>(sql`
      SELECT app_id AS "appId" FROM portico.field_definition WHERE index_state IN ('building', 'failed')
      UNION SELECT app_id FROM portico.object_definition WHERE search_state = 'building'`),
  )
  return rows.map(({ appId }) => appId)
}

/**
 * Builds the indexes that fields on existing tables still wait for, without blocking writes, and writes search documents
 * anew where fields became searchable or ceased to be; reports how it went as `indexState` and `searchState`. Safe to run
 * again: what a crash left invalid is dropped first, and what failed is tried again.
 */
export async function buildIndexes(database: Database, appId: string, behaviours?: Behaviours): Promise<void> {
  await inTurn(database, appId, () => buildUnfinished(database, appId, behaviours))
}

/** The same for who has the turn of the application already. */
export async function buildUnfinished(
  database: Database,
  appId: string,
  behaviours: Behaviours = noBehaviours,
): Promise<void> {
  const model = await database.as('portico_owner', (tx) => readModel(tx, appId, '', behaviours))
  for (const object of model.objects) {
    for (const field of object.fields.filter(isUnfinished)) {
      const schema = object.table.split('.')[0]
      const index = fieldIndex(object.table, field)
      let state: Field['indexState'] = 'ready'
      if (index) {
        try {
          await database.alone(`DROP INDEX CONCURRENTLY IF EXISTS ${schema}."${index.name}"`)
          await database.alone(`CREATE ${index.unique ? 'UNIQUE ' : ''}INDEX CONCURRENTLY ${index.definition}`)
        } catch {
          state = 'failed'
        }
      }
      await database.as('portico_owner', async (tx) => {
        await tx.rows(sql`UPDATE portico.field_definition SET index_state = ${index ? state : 'none'}
          WHERE app_id = ${appId} AND object_id = ${object.objectId} AND field_id = ${field.fieldId}`)
        await tx.rows(sql`SELECT portico.bump_epoch(${appId})`)
      })
    }
    if (object.searchState !== 'ready') await rebuildSearchDocuments(database, appId, object)
  }
}

function isUnfinished({ indexState }: Field): boolean {
  return indexState === 'building' || indexState === 'failed'
}
