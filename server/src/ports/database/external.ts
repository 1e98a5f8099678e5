/** The external adapter: a PostgreSQL that somebody else runs, named by `DATABASE_URL`. */
import { userInfo } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { parse } from 'pg-connection-string'
import { codeOf, reasonOf } from './failure.ts'
import { type ConnectionSettings, type DatabaseServer, DatabaseServerError } from './port.ts'

export interface ExternalOptions {
  /** `postgres://user:password@host:port/database?sslmode=verify-full`, as libpq reads it. */
  readonly url: string
  /** How long a server that does not answer yet is waited for: the two are often started together. */
  readonly withinMs?: number
}

const oldestVersionNumber = 150_000
const attemptTimeoutMs = 5_000

/** Connects once, to know that the server is there and will do. It is left running, whatever happens. */
export async function connectExternal({ url, withinMs = 10_000 }: ExternalOptions): Promise<DatabaseServer> {
  const giveUpAt = Date.now() + withinMs
  let candidates = readUrl(url)
  for (let delayMs = 100; ; delayMs = Math.min(delayMs * 2, 1_000)) {
    const [connection, ...weaker] = candidates
    if (!connection) throw new DatabaseServerError('DATABASE_URL names no server.')
    const remainingMs = Math.max(giveUpAt - Date.now(), 100)
    try {
      const versionNumber = await examine(connection, Math.min(attemptTimeoutMs, remainingMs))
      return { connection, versionNumber, stop: async () => {} }
    } catch (error) {
      if (error instanceof DatabaseServerError) throw error
      if (weaker.length > 0 && refusesTls(error)) {
        candidates = weaker
        continue
      }
      if (isFinal(error) || Date.now() + delayMs > giveUpAt) throw explain(connection, error)
    }
    await pause(delayMs)
  }
}

/** The settings to try, in this order: `sslmode=prefer` and `allow` mean TLS if the server has it. */
function readUrl(url: string): ConnectionSettings[] {
  const shape = 'it must look like postgres://user:password@host:5432/database'
  // The message of a parser's error can hold the URL, and with it the password; so it is not passed on.
  if (!/^(postgres(ql)?|socket):/.test(url)) throw new DatabaseServerError(`DATABASE_URL cannot be read: ${shape}.`)
  const mode = /[?&]sslmode=([^&]*)/.exec(url)?.[1]
  try {
    // In libpq's sense, as everybody who hands out such a URL means it: `require` encrypts, `verify-full` also checks
    // the certificate. `no-verify` exists in node-postgres alone.
    const compatible = mode === 'no-verify' || /[?&]uselibpqcompat=/.test(url)
    const parsed = parse(url, { useLibpqCompat: !compatible })
    const user = parsed.user || userInfo().username
    const settings = {
      host: parsed.host || 'localhost',
      port: Number(parsed.port || 5432),
      user,
      password: parsed.password ?? '',
      database: parsed.database || user,
      ssl: parsed.ssl === undefined || parsed.ssl === 'false' ? false : readTls(parsed.ssl),
    }
    if (!Number.isInteger(settings.port)) throw new URIError('port')
    if (mode !== 'prefer' && mode !== 'allow') return [settings]
    return [
      { ...settings, ssl: { rejectUnauthorized: false } },
      { ...settings, ssl: false },
    ]
  } catch (error) {
    // A certificate file that is missing, or sslmode=verify-ca without one.
    const reason = codeOf(error) === 'ERR_INVALID_URL' || error instanceof URIError ? shape : reasonOf(error)
    throw new DatabaseServerError(`DATABASE_URL cannot be read: ${reason}.`)
  }
}

function readTls(ssl: NonNullable<ReturnType<typeof parse>['ssl']>): ConnectionSettings['ssl'] {
  if (typeof ssl === 'boolean') return ssl
  if (typeof ssl === 'string') return ssl === 'no-verify' ? { rejectUnauthorized: false } : true
  const { cert, ...rest } = ssl
  return cert ? { ...rest, cert } : rest
}

/** Opens one session and returns the version, or says why this server will not do. */
async function examine(connection: ConnectionSettings, timeoutMs: number): Promise<number> {
  const client = new pg.Client({ ...connection, connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs })
  client.on('error', () => {}) // reported by the call that it breaks
  try {
    await client.connect()
    const { rows } = await client.query<Record<'version' | 'name' | 'encoding' | 'replica', string>>(
      `SELECT current_setting('server_version_num') AS version, current_setting('server_version') AS name,
         current_setting('server_encoding') AS encoding, pg_is_in_recovery()::text AS replica`,
    )
    const found = rows[0]
    const refuse = (problem: string) => new DatabaseServerError(`${describe(connection)} ${problem}`)
    if (!found || Number(found.version) < oldestVersionNumber) {
      throw refuse(`is PostgreSQL ${found?.name}; Portico needs PostgreSQL 15 or newer.`)
    }
    if (found.encoding !== 'UTF8') {
      throw refuse(`has the encoding ${found.encoding}; make the database with ENCODING 'UTF8' TEMPLATE template0.`)
    }
    if (found.replica === 'true') throw refuse('is a read-only replica; DATABASE_URL must name the primary server.')
    return Number(found.version)
  } finally {
    await client.end().catch(() => {})
  }
}

const refusesTls = (error: unknown) => reasonOf(error).includes('does not support SSL')

/** What waiting does not mend: wrong credentials, no such database, no TLS, a certificate that is not trusted. */
function isFinal(error: unknown): boolean {
  if (refusesTls(error)) return true
  return /^(28...|3D000|42501|ERR_TLS.*|.*CERT.*|UNABLE_TO_VERIFY.*)$/.test(codeOf(error) ?? '')
}

/** Without the password. */
function describe({ host, port, database, user }: ConnectionSettings): string {
  return `The server of DATABASE_URL (${user} at ${host}:${port}/${database})`
}

function explain(connection: ConnectionSettings, cause: unknown): DatabaseServerError {
  const outcome = isFinal(cause) ? 'refuses the connection' : 'does not answer'
  return new DatabaseServerError(`${describe(connection)} ${outcome}: ${reasonOf(cause)}.`, { cause })
}
