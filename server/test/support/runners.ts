import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../src/kernel/clock.ts'
import { nativeModules } from '../../src/native-modules.ts'
import { createCatalogue } from '../../src/shared/catalogue/catalogue.ts'
import { createCursors } from '../../src/shared/cursors.ts'
import { type Database, openDatabase } from '../../src/shared/database/database.ts'
import { createLog } from '../../src/shared/log.ts'
import type { WorkKind } from '../../src/shared/operations/kind.ts'
import { createOperationRunner, type OperationRunner } from '../../src/shared/operations/runner.ts'
import { workKinds } from '../../src/work.ts'
import type { TestDatabase } from './database.ts'

/** Workers of long-running operations, each with connections of its own, that can be killed. */
export interface TestRunner extends OperationRunner {
  /** As `kill -9` does it: its connections end, and only then does what it was waiting for come. It says nothing. */
  kill(letGo: () => void): Promise<void>
}

const cursors = createCursors(randomBytes(32))

export function startRunner(
  db: TestDatabase,
  {
    clock,
    kinds = workKinds,
    log = [],
  }: { readonly clock: Clock; readonly kinds?: readonly WorkKind[]; readonly log?: string[] },
): TestRunner {
  const database: Database = openDatabase({ connection: db.login, poolSize: 4 })
  const lines = createLog({ level: 'trace', pretty: false, destination: { write: (line) => void log.push(line) } })
  const runner = createOperationRunner(
    { database, transact: database.transact, catalogue: createCatalogue(nativeModules), cursors, clock, log: lines },
    kinds,
  )
  let closing: Promise<void> | undefined
  const end = () => {
    closing ??= database.close()
    return closing
  }
  return {
    wake: runner.wake,
    async close() {
      await runner.close()
      await end()
    },
    async kill(letGo) {
      const ended = end()
      // Connections that are held in a transaction are cut after a second.
      await Promise.race([ended, pause(1_200)])
      letGo()
      await runner.close()
      await ended
    },
  }
}
