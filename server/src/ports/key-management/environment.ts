/** The environment adapter: the master key is handed to the process (`PORTICO_MASTER_KEY`). */
import { keepMasterKeys, type MasterKeys } from './master-keys.ts'
import type { KeyManagement } from './port.ts'

/** `PORTICO_MASTER_KEY` wraps; it and those of `PORTICO_MASTER_KEY_PREVIOUS` unwrap. */
export function keysOfEnvironment(masterKeys: MasterKeys): KeyManagement {
  return keepMasterKeys('PORTICO_MASTER_KEY', masterKeys)
}
