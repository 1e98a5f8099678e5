import type { ConnectionOptions } from 'node:tls'

/**
 * The database-server port: where the PostgreSQL that holds everything comes from.
 *
 * Two adapters: `embedded` supervises a PostgreSQL 18 of its own under the data directory, `external` connects to a
 * server that somebody else runs (`DATABASE_URL`). Both hand out connection settings; how the service speaks to the
 * server afterwards (pool, transactions, roles) is the same for both and lives in `shared/database`.
 */
export interface ConnectionSettings {
  /** Host name, address, or the directory of a Unix socket. */
  readonly host: string
  readonly port: number
  /** A role that may create roles, schemas and (for tests) databases. */
  readonly user: string
  readonly password: string
  readonly database: string
  /**
   * TLS options as `pg` takes them; `false` means no TLS. Never absent: `pg` would then read `PGSSLMODE` from the
   * environment and try TLS on a Unix socket.
   */
  readonly ssl: boolean | ConnectionOptions
}

export interface DatabaseServer {
  /** Valid for the life of the adapter: a server that is restarted by its adapter comes back at the same address. */
  readonly connection: ConnectionSettings
  /** `server_version_num`, for instance 180004. At least 150000. */
  readonly versionNumber: number
  /** Ends what the adapter started; a server of somebody else's is left running. Safe to call twice. */
  stop(): Promise<void>
}

/** Progress for the terminal while a first start works: one short sentence for each step. */
export type ReportProgress = (sentence: string) => void

/** Where an adapter writes what happens later, while the service runs. A pino logger is one. */
export interface DatabaseServerLog {
  info(details: object, sentence: string): void
  warn(details: object, sentence: string): void
  error(details: object, sentence: string): void
}

/** The server cannot be used, for a reason that the person who starts the service can do something about. */
export class DatabaseServerError extends Error {
  override readonly name = 'DatabaseServerError'
}
