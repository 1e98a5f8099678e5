/** Starting the server, against everything that a server killed before may have left in its way. */
import { setTimeout as pause } from 'node:timers/promises'
import { DatabaseServerError } from '../port.ts'
import type { Installation } from './installation.ts'
import { clearLeftover } from './leftover.ts'
import { fastShutdown, type Postmaster, shutDown, spawnPostmaster, untilReady } from './postmaster.ts'
import { lastWords, sizeOf } from './server-log.ts'
import { restoreEndpoint } from './socket.ts'

/** Recovery after a crash reads at most the write-ahead log of one checkpoint interval: seconds, on a slow disk minutes. */
const readyWithinMs = 10 * 60_000
const retryForMs = 30_000

/** What the server says when it meets remains that go away: backends without a postmaster, a server that starts as well. */
const passing = /pre-existing shared memory block|lock file ".*" already exists|could not bind Unix address/

export async function launch(installation: Installation, abort?: AbortSignal): Promise<Postmaster> {
  const { clusterDir, logFile, home, endpoint, log } = installation
  for (const start = Date.now(); ; await pause(100)) {
    await clearLeftover(installation)
    await restoreEndpoint(endpoint, home)
    const sizeBytes = await sizeOf(logFile)
    const postmaster = await spawnPostmaster(installation)
    if (await isUp(installation, postmaster, abort)) return postmaster
    const said = await lastWords(logFile, sizeBytes)
    const elapsedMs = Date.now() - start
    if (!passing.test(said) || elapsedMs > retryForMs || abort?.aborted) {
      const how = postmaster.hasEnded() ? await postmaster.ended : 'was not ready in time'
      await shutDown(postmaster, clusterDir, installation.binaries, fastShutdown)
      throw new DatabaseServerError(`PostgreSQL on ${clusterDir} ${how}:\n${said}\n(all of it in ${logFile})`)
    }
    log.warn({ said }, 'PostgreSQL could not start yet')
  }
}

function isUp({ clusterDir, report }: Installation, postmaster: Postmaster, abort?: AbortSignal): Promise<boolean> {
  const onSlow = () => report('PostgreSQL is recovering from an interrupted run, which can take minutes')
  return untilReady(postmaster, clusterDir, { withinMs: readyWithinMs, onSlow, ...(abort && { abort }) })
}
