import type { ConnectionSettings, DatabaseServerLog, ReportProgress } from '../port.ts'
import type { Binaries } from './binaries.ts'
import type { Home } from './home.ts'
import type { Endpoint } from './socket.ts'

/** Everything that is settled before the server starts, and stays so while the service runs. */
export interface Installation {
  readonly home: Home
  readonly clusterDir: string
  readonly logFile: string
  readonly binaries: Binaries
  readonly endpoint: Endpoint
  /** The command line after the program's name. */
  readonly options: readonly string[]
  readonly connection: ConnectionSettings
  readonly report: ReportProgress
  readonly log: DatabaseServerLog
}
