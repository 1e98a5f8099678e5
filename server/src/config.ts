import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { closest } from './kernel/closest.ts'
import { rows, type Setting, settings } from './settings.ts'

/** This file alone reads the environment; what may stand there is in `settings.ts`. */
export type Environment = Readonly<Record<string, string | undefined>>

/** Every problem of the environment at once, each naming its variable. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly problems: readonly string[]

  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

type Values = { readonly [K in keyof typeof rows]: ReturnType<(typeof rows)[K]['read']> }

type Apart =
  | 'databaseUrl'
  | 'masterKey'
  | 'metricsToken'
  | 'smtpUrl'
  | 'billingCatalogFile'
  | 'extraCaFile'
  | `vault${string}`

export interface Config extends Omit<Values, Apart> {
  /** Null: the embedded PostgreSQL. */
  readonly databaseUrl: string | null
  /** 32 bytes, or null: not in the environment. */
  readonly masterKey: Uint8Array | null
  /** Null: Vault is not configured. */
  readonly vault: VaultSettings | null
  /** Null: mail is written into files. */
  readonly smtpUrl: string | null
  /** Null: the plans of the software. */
  readonly billingCatalogFile: string | null
  /** Null: no authorities beside those of Node.js. */
  readonly extraCaFile: string | null
  /** Null: `/metrics` does not exist. Undefined: everybody may read it. */
  readonly metricsToken: string | null | undefined
}

export interface VaultSettings {
  readonly address: string
  /** Mount and name. */
  readonly key: string
  readonly auth: { readonly token: string } | { readonly roleId: string; readonly secretId: string }
}

/** The value of a row, or the fallback where it is not set or not valid. */
type Get = <T, F>(row: Setting<T>, fallback: F) => T | F

/** Reads all settings, or throws a `ConfigError` with everything that is wrong with them. */
export function readConfig(env: Environment = process.env): Config {
  const problems: string[] = []
  const isSet = (row: Setting<unknown>) => (env[row.name] ?? '') !== ''
  const get: Get = (row, fallback) => {
    if (!isSet(row)) return fallback
    try {
      return row.read(env[row.name]!.trim())
    } catch (error) {
      problems.push(`${row.name} ${(error as Error).message}.`)
      return fallback
    }
  }

  const mode = get(rows.mode, 'development')
  const port = get(rows.port, 8080)
  const masterKey = get(rows.masterKey, null)
  const baseUrl = get(rows.baseUrl, `http://127.0.0.1:${port}`)
  const vault = readVault(get, problems)
  const config: Config = {
    mode,
    role: get(rows.role, 'all'),
    host: get(rows.host, '127.0.0.1'),
    port,
    baseUrl,
    trustedProxies: get(rows.trustedProxies, []),
    dnsServers: get(rows.dnsServers, []),
    // Whatever the setting says: in production tenants choose destinations (contract 1).
    allowPrivateDestinations: get(rows.allowPrivateDestinations, false) && mode === 'development',
    extraCaFile: get(rows.extraCaFile, null),
    dataDir: get(rows.dataDir, resolve('data')),
    databaseUrl: get(rows.databaseUrl, null),
    databasePoolSize: get(rows.databasePoolSize, 16),
    keyManagement: get(rows.keyManagement, vault ? 'vault' : masterKey ? 'environment' : 'local'),
    masterKey,
    masterKeyPrevious: get(rows.masterKeyPrevious, []),
    vault,
    smtpUrl: get(rows.smtpUrl, null),
    mailFrom: get(rows.mailFrom, { name: 'Portico', address: `no-reply@${mailDomain(baseUrl)}` }),
    billingCatalogFile: get(rows.billingCatalogFile, null),
    demo: get(rows.demo, mode === 'development'),
    rateLimitScale: get(rows.rateLimitScale, 1),
    logLevel: get(rows.logLevel, 'info'),
    metricsToken: get(rows.metricsToken, mode === 'production' ? null : undefined),
    shutdownSeconds: get(rows.shutdownSeconds, 15),
  }
  if (problems.length === 0) problems.push(...missingKeys(config))
  if (mode === 'production') problems.push(...missingInProduction(config, isSet))
  if (problems.length > 0) throw new ConfigError(problems)
  return config
}

/**
 * A setting that is misspelt would do nothing, in silence. Said and not refused: one that another release knows must not
 * keep this one from starting.
 */
export function unknownSettings(env: Environment = process.env): string[] {
  const names = settings.map((row) => row.name)
  const unknown = Object.keys(env).filter((name) => name.startsWith('PORTICO_') && !names.includes(name))
  return unknown.map((name) => {
    const meant = closest(name, names)
    return `${name} is no setting of this release.${meant === undefined ? '' : ` Did you mean ${meant}?`}`
  })
}

/** What is set and does nothing in this mode, in sentences for the log. */
export function idleSettings(config: Config, env: Environment = process.env): string[] {
  const { name } = rows.allowPrivateDestinations
  if (config.mode !== 'production' || env[name]?.trim() !== '1') return []
  return [`${name} has no effect in production: webhooks go to public addresses only.`]
}

/** Vault as a whole: an address, and something to show it. */
function readVault(get: Get, problems: string[]): VaultSettings | null {
  const address = get(rows.vaultAddr, null)
  const key = get(rows.vaultKey, 'transit/portico')
  const token = get(rows.vaultToken, null)
  const [roleId, secretId] = [get(rows.vaultRoleId, null), get(rows.vaultSecretId, null)]
  if (address === null) return null
  if (token !== null) return { address, key, auth: { token } }
  if (roleId !== null && secretId !== null) return { address, key, auth: { roleId, secretId } }
  const [ofToken, ofRole, ofSecret] = [rows.vaultToken, rows.vaultRoleId, rows.vaultSecretId].map(({ name }) => name)
  problems.push(`${rows.vaultAddr.name} needs ${ofToken}, or ${ofRole} and ${ofSecret}.`)
  return null
}

/** A holder that was chosen by name needs what it is to hold. */
function missingKeys({ keyManagement, masterKey, vault }: Config): string[] {
  const chosen = `${rows.keyManagement.name} is ${keyManagement}, which needs`
  if (keyManagement === 'environment' && !masterKey) return [`${chosen} ${rows.masterKey.name}.`]
  if (keyManagement === 'vault' && !vault) return [`${chosen} ${rows.vaultAddr.name}.`]
  return []
}

/** Contract 1: what production does not let anyone leave out or turn off. */
function missingInProduction(config: Config, isSet: (row: Setting<unknown>) => boolean): string[] {
  const keyRow = config.keyManagement === 'vault' ? [] : [rows.masterKey]
  const required = [rows.baseUrl, rows.databaseUrl, ...keyRow].filter((row) => !isSet(row))
  const problems = required.map((row) => `${row.name} is required in production: ${row.values}.`)
  if (isSet(rows.baseUrl) && !config.baseUrl.startsWith('https:')) {
    problems.push(`${rows.baseUrl.name} must be an https URL in production.`)
  }
  if (isSet(rows.keyManagement) && config.keyManagement === 'local') {
    problems.push(`${rows.keyManagement.name} cannot be local in production.`)
  }
  if (config.vault && !isPrivate(config.vault.address)) {
    problems.push(`${rows.vaultAddr.name} must be an https URL in production: data keys pass through it.`)
  }
  if (config.demo) problems.push(`${rows.demo.name} cannot be on in production.`)
  if (config.rateLimitScale === 0) problems.push(`${rows.rateLimitScale.name} cannot be 0 in production.`)
  return problems
}

/** The host of the API, or `localhost` for a bare address: mail comes from a domain. */
function mailDomain(baseUrl: string): string {
  const { hostname } = new URL(baseUrl)
  return isIP(hostname) !== 0 || hostname.startsWith('[') ? 'localhost' : hostname
}

/** Nobody listens on the way: encrypted, or to an agent of Vault on this machine. */
function isPrivate(address: string): boolean {
  const { protocol, hostname } = new URL(address)
  return protocol === 'https:' || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}
