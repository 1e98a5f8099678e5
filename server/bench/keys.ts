import { readConfig } from '../src/config.ts'
import { systemClock } from '../src/kernel/clock.ts'
import { configuredKeys } from '../src/key-management.ts'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import { openDatabase } from '../src/shared/database/database.ts'
import { type Keys, openKeys } from '../src/shared/keys.ts'

/** Those that the service will find. */
export async function makeKeys(connection: ConnectionSettings, dataDir: string): Promise<Keys> {
  const database = openDatabase({ connection, poolSize: 1 })
  try {
    const configured = await configuredKeys({ ...readConfig({}), dataDir })
    return (await openKeys({ ...configured, database, clock: systemClock, log: console })).keys
  } finally {
    await database.close()
  }
}
