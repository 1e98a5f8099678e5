import type { Config } from './config.ts'
import { keysOfEnvironment } from './ports/key-management/environment.ts'
import { keysOfFile, readMasterKeyFile } from './ports/key-management/local-file.ts'
import type { KeyManagement } from './ports/key-management/port.ts'
import { keysOfVault } from './ports/key-management/vault.ts'

/** What `openKeys` needs of the settings. */
export interface ConfiguredKeys {
  /** The chosen one first. Everything else that is configured can still open: so secrets move from one to another. */
  readonly keyManagement: readonly [KeyManagement, ...KeyManagement[]]
  readonly masterKeys: readonly Uint8Array[]
}

type KeySettings = Pick<Config, 'keyManagement' | 'masterKey' | 'masterKeyPrevious' | 'vault' | 'dataDir'>

/** Chooses the adapters of the key-management port. Only `local` reads, and at first makes, `master.key`. */
export async function configuredKeys(config: KeySettings): Promise<ConfiguredKeys> {
  const { keyManagement: chosen, vault } = config
  const vaults = vault ? [keysOfVault(vault)] : []
  const inEnvironment = [...(config.masterKey ? [config.masterKey] : []), ...config.masterKeyPrevious]
  const [current, ...previous] = inEnvironment
  const environments = current ? [keysOfEnvironment({ current, previous })] : []
  const file = chosen === 'local' ? await readMasterKeyFile(config.dataDir) : undefined
  const ordered = {
    local: [...(file ? [keysOfFile(file)] : []), ...environments, ...vaults],
    environment: [...environments, ...vaults],
    vault: [...vaults, ...environments],
  }
  const [first, ...others] = ordered[chosen]
  if (!first) throw new Error(`The settings name ${chosen} and hold no key for it.`)
  return {
    keyManagement: [first, ...others],
    masterKeys: [...(file ? [file.current, ...file.previous] : []), ...inEnvironment],
  }
}
