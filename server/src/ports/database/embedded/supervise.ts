/** Keeps the server running for as long as the service does. */
import { setTimeout as pause } from 'node:timers/promises'
import { reasonOf } from '../failure.ts'
import type { Installation } from './installation.ts'
import { launch } from './launch.ts'
import { fastShutdown, type Postmaster, shutDown } from './postmaster.ts'

/** Before the first, second, … restart in a row. The last one repeats: clients wait for nothing else than this server. */
const delaysMs = [0, 200, 500, 1_000, 2_000, 5_000]
/** A server that ran for this long has started well; what ends it later is a new misfortune. */
const settledAfterMs = 60_000

/** Watches the server and starts it again whenever it ends. The returned function ends it, and the watching. */
export function supervise(first: Postmaster, installation: Installation): () => Promise<void> {
  const stopping = new AbortController()
  const stopped = new Promise<void>((resolve) => stopping.signal.addEventListener('abort', () => resolve()))
  const watching = watch(first, installation, stopping.signal, stopped)
  return async () => {
    stopping.abort()
    await watching
  }
}

async function watch(
  first: Postmaster,
  installation: Installation,
  abort: AbortSignal,
  stopped: Promise<void>,
): Promise<void> {
  const { log, clusterDir, binaries } = installation
  let postmaster: Postmaster | undefined = first
  for (let restarts = 0; postmaster; ) {
    const startedAt = Date.now()
    await Promise.race([postmaster.ended, stopped])
    if (abort.aborted) break
    log.error({ pid: postmaster.pid, how: await postmaster.ended }, 'PostgreSQL ended; starting it again')
    if (Date.now() - startedAt > settledAfterMs) restarts = 0
    postmaster = await restart(installation, restarts++, abort)
  }
  if (postmaster && !(await shutDown(postmaster, clusterDir, binaries, fastShutdown))) {
    log.error({ pid: postmaster.pid }, 'PostgreSQL does not end, not even by SIGKILL')
  }
}

/** Tries until it succeeds; `undefined` when the service stops before that. */
async function restart(
  installation: Installation,
  restartsBefore: number,
  abort: AbortSignal,
): Promise<Postmaster | undefined> {
  for (let attempt = restartsBefore; ; attempt++) {
    // Does not keep the process alive: a service that is at its end need not start a database again.
    await pause(delaysMs[attempt] ?? delaysMs.at(-1), undefined, { signal: abort, ref: false }).catch(() => {})
    if (abort.aborted) return undefined
    try {
      const postmaster = await launch(installation, abort)
      installation.log.info({ pid: postmaster.pid }, 'PostgreSQL is running again')
      return postmaster
    } catch (error) {
      if (!abort.aborted) installation.log.error({ reason: reasonOf(error) }, 'PostgreSQL could not be started again')
    }
  }
}
