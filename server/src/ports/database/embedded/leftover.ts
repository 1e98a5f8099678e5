/**
 * A PostgreSQL that a killed service left running. The data directory is locked when these functions run, so it
 * belongs to nobody: it is taken over when it is well and runs with what this version wants, and ended otherwise.
 */
import { realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { reasonOf } from '../failure.ts'
import { DatabaseServerError } from '../port.ts'
import type { Installation } from './installation.ts'
import {
  adoptPostmaster,
  fastShutdown,
  immediateShutdown,
  killOrphans,
  type Postmaster,
  type ShutdownStep,
  shutDown,
  untilReady,
} from './postmaster.ts'
import { commandAsRecorded, readLastCommand, readPostmasterFile } from './postmaster-file.ts'
import { isPostgresOn, isRunning } from './processes.ts'
import { openDatabase } from './session.ts'

/** The running server, when it can stay; `undefined` when there is none or it has to go. */
export async function takeOver(installation: Installation): Promise<Postmaster | undefined> {
  const { clusterDir, connection, binaries, report } = installation
  const pid = await findServer(clusterDir)
  if (pid === undefined) return undefined
  const postmaster = adoptPostmaster(pid)
  const refusal = await findFault(installation, postmaster)
  if (refusal === undefined) {
    report(`Taking over PostgreSQL ${binaries.version} (process ${pid}), which was left running`)
    installation.log.info({ pid, host: connection.host }, 'took over a PostgreSQL that was left running')
    return postmaster
  }
  report(`Ending PostgreSQL (process ${pid}), which was left running: ${refusal.reason}`)
  installation.log.warn({ pid, reason: refusal.reason }, 'ending a PostgreSQL that was left running')
  await endServer(installation, postmaster, refusal.answers ? fastShutdown : immediateShutdown)
  return undefined
}

interface Fault {
  readonly reason: string
  /** It can be asked to end in order. */
  readonly answers: boolean
}

async function findFault(installation: Installation, postmaster: Postmaster): Promise<Fault | undefined> {
  const { clusterDir, binaries, options, connection } = installation
  const file = await readPostmasterFile(clusterDir)
  if (typeof file === 'object' && file.status === 'stopping') return { reason: 'it is stopping', answers: true }
  const wanted = commandAsRecorded(await realpath(binaries.postgres), options)
  if ((await readLastCommand(clusterDir)) !== wanted) return { reason: 'it has other settings', answers: true }
  // It may have been left in the middle of its start, even of a long recovery; that is better awaited than repeated.
  if (!(await untilReady(postmaster, clusterDir, { withinMs: 60_000 }))) return { reason: 'not ready', answers: false }
  try {
    const running = await openDatabase(connection)
    if (running !== binaries.versionNumber) return { reason: `it is of version ${running}`, answers: true }
    return undefined
  } catch (error) {
    return { reason: `it does not serve us (${reasonOf(error)})`, answers: false }
  }
}

/** Before a launch: ends whatever still runs on the cluster, and removes what would be mistaken for it. */
export async function clearLeftover(installation: Installation): Promise<void> {
  const { clusterDir, endpoint } = installation
  const pid = await findServer(clusterDir)
  if (pid !== undefined) await endServer(installation, adoptPostmaster(pid), fastShutdown)
  const file = await readPostmasterFile(clusterDir)
  if (file !== undefined) {
    // The last stop was not a clean one.
    const killed = await killOrphans(clusterDir)
    if (killed.length > 0) installation.log.warn({ killed }, 'ended backends whose PostgreSQL was killed')
    // PostgreSQL itself sees that a process is gone. What it cannot see is that the id now belongs to another program
    // of the same user; and an empty file, as a power cut leaves it, it refuses.
    if (file === 'unreadable' || isRunning(file.pid)) await rm(join(clusterDir, 'postmaster.pid'), { force: true })
  }
  if (!endpoint.host.startsWith('/')) return
  for (const suffix of ['', '.lock'])
    await rm(join(endpoint.host, `.s.PGSQL.${endpoint.port}${suffix}`), { force: true })
}

/** The id of the server on this cluster, if one is running. */
export async function findServer(clusterDir: string): Promise<number | undefined> {
  let file = await readPostmasterFile(clusterDir)
  if (file === 'unreadable') {
    await pause(300) // it may be in the middle of being written, by a server whose service was killed just now
    file = await readPostmasterFile(clusterDir)
  }
  if (typeof file !== 'object') return undefined
  return (await isPostgresOn(file.pid, clusterDir)) ? file.pid : undefined
}

async function endServer(
  { clusterDir, binaries }: Installation,
  postmaster: Postmaster,
  steps: readonly ShutdownStep[],
): Promise<void> {
  if (await shutDown(postmaster, clusterDir, binaries, steps)) return
  throw new DatabaseServerError(
    `PostgreSQL (process ${postmaster.pid}), left running on ${clusterDir}, cannot be ended, not even by SIGKILL. ` +
      'It probably waits for a disk; look at the system log.',
  )
}
