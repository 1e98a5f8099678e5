import { keysOfEnvironment } from '../../src/ports/key-management/environment.ts'
import type { Database } from '../../src/shared/database/database.ts'
import { openSecrets, type Secrets } from '../../src/shared/secrets.ts'

/** Real secrets under a master key of the tests' own, whose data keys are in the database of the test. */
export function openTestSecrets(database: Database): Promise<Secrets> {
  const keyManagement = [keysOfEnvironment({ current: Buffer.alloc(32, 7), previous: [] })] as const
  return openSecrets({ database, keyManagement, clock: { now: () => Date.now() }, log: { warn: () => undefined } })
}
