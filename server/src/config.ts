import { resolve } from 'node:path'
import { closest } from './kernel/closest.ts'
import { logLevels } from './shared/log.ts'

/**
 * The settings of the service: one row for each environment variable, and the only code that reads the environment.
 * `docs/configuration.md` is generated from the rows. A setting exists only when something reads it.
 */
interface Setting<T> {
  readonly name: string
  /** The values it takes, in words. */
  readonly values: string
  /** What holds when it is not set, in words. */
  readonly fallback: string
  readonly description: string
  /** What `PORTICO_MODE=production` demands of it, in words. */
  readonly production?: string
  /** Throws an Error with words for people; they must not repeat the value, which may be a secret. */
  read(text: string): T
}

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

const modes = ['development', 'production'] as const

const rows = {
  mode: setting({
    name: 'PORTICO_MODE',
    values: modes.join(' or '),
    fallback: 'development',
    description: 'In production nothing is made up: the demo is off, and what a real service needs is required.',
    read: (text) => oneOf(modes, text),
  }),
  host: setting({
    name: 'PORTICO_HOST',
    values: 'a host name or an address',
    fallback: '127.0.0.1',
    description: 'Where the service listens. 0.0.0.0 or :: listens everywhere.',
    read: (text) => text,
  }),
  port: setting({
    name: 'PORTICO_PORT',
    values: 'an integer from 1 to 65535',
    fallback: '8080',
    description: 'The port that the service listens on.',
    read: (text) => integer(text, 1, 65_535),
  }),
  baseUrl: setting({
    name: 'PORTICO_BASE_URL',
    values: 'an http or https origin',
    fallback: 'http://127.0.0.1:`PORTICO_PORT`',
    description: 'Where clients reach the API. Its host is the API host; tenants live on `<slug>.<host>`.',
    production: 'required, https',
    read: origin,
  }),
  dataDir: setting({
    name: 'PORTICO_DATA_DIR',
    values: 'a folder',
    fallback: './data',
    description: 'Where the service keeps what it keeps on disk: the embedded database, keys, `demo.json`.',
    read: (text) => resolve(text),
  }),
  databaseUrl: setting({
    name: 'DATABASE_URL',
    values: 'postgres://user:password@host:port/database',
    fallback: 'the embedded PostgreSQL, under `PORTICO_DATA_DIR`',
    description: 'A PostgreSQL 15 or later of your own. The user must be allowed to create roles and schemas.',
    production: 'required',
    read: databaseUrl,
  }),
  databasePoolSize: setting({
    name: 'PORTICO_DATABASE_POOL_SIZE',
    values: 'an integer from 2 to 200',
    fallback: '16',
    description: 'How many connections to the database one process opens at most.',
    read: (text) => integer(text, 2, 200),
  }),
  masterKey: setting({
    name: 'PORTICO_MASTER_KEY',
    values: '32 bytes in base64 or hex, for instance from `openssl rand -base64 32`',
    fallback: 'a key made at the first start, in `PORTICO_DATA_DIR`',
    description:
      'The key that all other keys are derived from or sealed with. Whoever loses it loses every credential.',
    production: 'required',
    read: key,
  }),
  demo: setting({
    name: 'PORTICO_DEMO',
    values: 'on or off',
    fallback: 'on in development',
    description: 'Fill an empty database with a demo, and write what a first client needs to `demo.json`.',
    production: 'must not be on',
    read: (text) => oneOf(['on', 'off'], text) === 'on',
  }),
  rateLimitScale: setting({
    name: 'PORTICO_RATE_LIMIT_SCALE',
    values: 'a number from 0',
    fallback: '1',
    description: 'Multiplies every rate limit. 0 turns them off.',
    production: 'must be above 0',
    read: scale,
  }),
  logLevel: setting({
    name: 'PORTICO_LOG_LEVEL',
    values: logLevels.join(', ').replace(/, (\w+)$/, ' or $1'),
    fallback: 'info',
    description: 'The least severe log lines that are written.',
    read: (text) => oneOf(logLevels, text),
  }),
  metricsToken: setting({
    name: 'PORTICO_METRICS_TOKEN',
    values: '16 or more of the characters A–Z a–z 0–9 - . _ ~ + /',
    fallback: 'none: `/metrics` is open in development and does not exist in production',
    description: 'What `/metrics` has to be asked with, as `Authorization: Bearer <token>`.',
    read: bearer,
  }),
  shutdownSeconds: setting({
    name: 'PORTICO_SHUTDOWN_SECONDS',
    values: 'an integer from 1 to 600',
    fallback: '15',
    description: 'How long requests in flight may take to finish after SIGTERM.',
    read: (text) => integer(text, 1, 600),
  }),
}

/** The rows in the order of the documentation. */
export const settings: readonly Setting<unknown>[] = Object.values(rows)

type Values = { readonly [K in keyof typeof rows]: ReturnType<(typeof rows)[K]['read']> }

export interface Config extends Omit<Values, 'databaseUrl' | 'masterKey' | 'metricsToken'> {
  /** Null: the embedded PostgreSQL. */
  readonly databaseUrl: string | null
  /** 32 bytes, or null: a key of the service's own making. */
  readonly masterKey: Uint8Array | null
  /** Null: `/metrics` does not exist. Undefined: everybody may read it. */
  readonly metricsToken: string | null | undefined
}

/** Reads all settings, or throws a `ConfigError` with everything that is wrong with them. */
export function readConfig(env: Environment = process.env): Config {
  const problems: string[] = []
  const isSet = (row: Setting<unknown>) => (env[row.name] ?? '') !== ''
  function get<T, F>(row: Setting<T>, fallback: F): T | F {
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
  const config: Config = {
    mode,
    host: get(rows.host, '127.0.0.1'),
    port,
    baseUrl: get(rows.baseUrl, `http://127.0.0.1:${port}`),
    dataDir: get(rows.dataDir, resolve('data')),
    databaseUrl: get(rows.databaseUrl, null),
    databasePoolSize: get(rows.databasePoolSize, 16),
    masterKey: get(rows.masterKey, null),
    demo: get(rows.demo, mode === 'development'),
    rateLimitScale: get(rows.rateLimitScale, 1),
    logLevel: get(rows.logLevel, 'info'),
    metricsToken: get(rows.metricsToken, mode === 'production' ? null : undefined),
    shutdownSeconds: get(rows.shutdownSeconds, 15),
  }
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

/** Contract 1: what production does not let anyone leave out or turn off. */
function missingInProduction(config: Config, isSet: (row: Setting<unknown>) => boolean): string[] {
  const required = [rows.baseUrl, rows.databaseUrl, rows.masterKey].filter((row) => !isSet(row))
  const problems = required.map((row) => `${row.name} is required in production: ${row.values}.`)
  if (isSet(rows.baseUrl) && !config.baseUrl.startsWith('https:')) {
    problems.push(`${rows.baseUrl.name} must be an https URL in production.`)
  }
  if (config.demo) problems.push(`${rows.demo.name} cannot be on in production.`)
  if (config.rateLimitScale === 0) problems.push(`${rows.rateLimitScale.name} cannot be 0 in production.`)
  return problems
}

/** Infers the type of a row. */
function setting<T>(row: Setting<T>): Setting<T> {
  return row
}

function oneOf<const T extends string>(values: readonly T[], text: string): T {
  const value = values.find((one) => one === text)
  if (value === undefined) throw new Error(`must be one of ${values.join(', ')}`)
  return value
}

function integer(text: string, minimum: number, maximum: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= minimum && value <= maximum)) throw new Error(`must be an integer from ${minimum} to ${maximum}`)
  return value
}

function scale(text: string): number {
  if (!/^\d{1,6}(\.\d{1,6})?$/.test(text)) throw new Error('must be a number from 0')
  return Number(text)
}

/** An origin and nothing after it: paths are the service's own, and a slash at the end would be doubled in links. */
function origin(text: string): string {
  const url = URL.parse(text)
  const isOrigin = url && /^https?:$/.test(url.protocol) && [url.origin, `${url.origin}/`].includes(url.href)
  if (!isOrigin) throw new Error('must be an http or https URL without a path, a query or credentials')
  return url.origin
}

function databaseUrl(text: string): string {
  const url = URL.parse(text)
  if (!url || !/^postgres(ql)?:$/.test(url.protocol)) throw new Error('must be a postgres:// URL')
  return text
}

function bearer(text: string): string {
  if (!/^[\w.~+/-]{16,}=*$/.test(text)) throw new Error('must be 16 or more of the characters of a bearer token')
  return text
}

function key(text: string): Uint8Array {
  const isHex = /^[0-9a-f]{64}$/i.test(text)
  const isBase64 = /^[A-Za-z0-9+/_-]{43}=?$/.test(text)
  if (!isHex && !isBase64) throw new Error('must be 32 bytes in base64 or hex')
  return new Uint8Array(Buffer.from(text, isHex ? 'hex' : 'base64'))
}
