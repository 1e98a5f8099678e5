import type { Database } from '../database/database.ts'
import type { Log } from '../log.ts'
import { buildIndexes } from './apply.ts'

/** Builds the indexes of published fields in the background, one application after the other. */
export interface IndexBuilder {
  /** Returns at once. Asked again while it builds, it looks once more when it is done. */
  build(appId: string): void
  /** Resolves when nothing is being built. */
  idle(): Promise<void>
}

export function createIndexBuilder({ database, log }: { readonly database: Database; readonly log: Log }): IndexBuilder {
  const asked = new Set<string>()
  let working: Promise<void> | undefined

  async function work(): Promise<void> {
    for (const appId of asked) {
      asked.delete(appId)
      try {
        await buildIndexes(database, appId)
      } catch (error) {
        log.error({ err: error, appId }, 'Indexes could not be built. They are tried again at the next start.')
      }
    }
    working = undefined
  }

  return {
    build(appId) {
      asked.add(appId)
      working ??= Promise.resolve().then(work)
    },
    idle: async () => working,
  }
}
