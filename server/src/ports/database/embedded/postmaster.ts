/** The server process: started, waited for, ended. */
import { execFile, spawn } from 'node:child_process'
import { open } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { reasonOf } from '../failure.ts'
import { DatabaseServerError } from '../port.ts'
import { type Binaries, childOptions } from './binaries.ts'
import type { Installation } from './installation.ts'
import { readPostmasterFile } from './postmaster-file.ts'
import { findPostgresOn, isRunning, signal } from './processes.ts'
import { trimLog } from './server-log.ts'

export interface Postmaster {
  readonly pid: number
  hasEnded(): boolean
  /** Resolves with a phrase for the log when the process is gone. Does not keep this process alive. */
  readonly ended: Promise<string>
}

/** How often the process table is asked about a server that is not our child. */
const watchEveryMs = 200

export interface ShutdownStep {
  readonly signal: 'SIGINT' | 'SIGQUIT' | 'SIGKILL'
  readonly patienceMs: number
}

/** The ways of ending a server, in this order, and how long each may take. */
export const fastShutdown: readonly ShutdownStep[] = [
  { signal: 'SIGINT', patienceMs: 10_000 }, // fast: transactions are rolled back, a checkpoint is written
  { signal: 'SIGQUIT', patienceMs: 3_000 }, // immediate: the next start recovers from the write-ahead log
  { signal: 'SIGKILL', patienceMs: 5_000 },
]
export const immediateShutdown = fastShutdown.slice(1)

export async function spawnPostmaster(installation: Installation): Promise<Postmaster> {
  const { binaries, options, home, clusterDir, logFile } = installation
  await trimLog(logFile)
  // The server writes to the file itself: it goes on when this process is gone, and needs no access to the folder.
  const log = await open(logFile, 'a', 0o600)
  try {
    const child = spawn(binaries.postgres, options, {
      ...childOptions(home.account),
      cwd: clusterDir,
      detached: true, // a session of its own: Ctrl-C in the terminal reaches the service alone, which then ends it in order
      stdio: ['ignore', log.fd, log.fd],
    })
    child.unref()
    const ended = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(`could not be started (${reasonOf(error)})`))
      child.once('exit', (code, by) => resolve(by ? `was ended by ${by}` : `ended with code ${code}`))
    })
    if (child.pid === undefined) throw new DatabaseServerError(`${binaries.postgres} ${await ended}.`)
    return track(child.pid, ended)
  } finally {
    await log.close()
  }
}

/** A server that another process started. */
export function adoptPostmaster(pid: number): Postmaster {
  const ended = new Promise<string>((resolve) => {
    const look = () => {
      if (isRunning(pid)) setTimeout(look, watchEveryMs).unref()
      else resolve('ended')
    }
    look()
  })
  return track(pid, ended)
}

function track(pid: number, ended: Promise<string>): Postmaster {
  let over = false
  ended.then(() => {
    over = true
  })
  return { pid, ended, hasEnded: () => over }
}

/** Waits until the server accepts connections: `false` when it has ended instead, or the time is over. */
export async function untilReady(
  postmaster: Postmaster,
  clusterDir: string,
  options: { readonly withinMs: number; readonly onSlow?: () => void; readonly abort?: AbortSignal },
): Promise<boolean> {
  const start = Date.now()
  let slow = false
  for (;;) {
    if (postmaster.hasEnded() || options.abort?.aborted) return false
    const file = await readPostmasterFile(clusterDir)
    if (typeof file === 'object' && file.pid === postmaster.pid && file.status === 'ready') return true
    const elapsedMs = Date.now() - start
    if (elapsedMs > options.withinMs) return false
    if (elapsedMs > 2_000 && !slow) {
      slow = true
      options.onSlow?.()
    }
    await pause(elapsedMs < 1_000 ? 5 : 50)
  }
}

/** Ends the server, with growing insistence; `false` when even the last step did not help. */
export async function shutDown(
  postmaster: Postmaster,
  clusterDir: string,
  binaries: Binaries,
  steps: readonly ShutdownStep[],
): Promise<boolean> {
  for (const step of steps) {
    if (postmaster.hasEnded()) return true
    await tell(postmaster.pid, step.signal, binaries)
    if (await within(postmaster.ended, step.patienceMs)) {
      // Killed, it could not end its backends.
      if (step.signal === 'SIGKILL') await killOrphans(clusterDir)
      return true
    }
  }
  return false
}

/**
 * Backends without a postmaster hold the shared memory, and with it back the start of the next one. Most notice by
 * themselves within a second; one in the middle of a computation only at its end. Nothing is lost with them: what
 * they had not committed, nobody can commit any more.
 */
export async function killOrphans(clusterDir: string): Promise<number[]> {
  const orphans = await findPostgresOn(clusterDir)
  for (const pid of orphans) signal(pid, 'SIGKILL')
  for (const start = Date.now(); orphans.some(isRunning) && Date.now() - start < 2_000; ) await pause(5)
  return orphans
}

async function tell(pid: number, name: NodeJS.Signals, binaries: Binaries): Promise<void> {
  if (process.platform !== 'win32' || name === 'SIGKILL') return signal(pid, name)
  // Windows has no signals; PostgreSQL imitates them through a pipe that pg_ctl knows.
  await promisify(execFile)(binaries.pgCtl, ['kill', name.replace('SIG', ''), String(pid)]).catch(() => {})
}

/** Whether the promise settles in time; leaves no timer behind. */
async function within(promise: Promise<unknown>, timeMs: number): Promise<boolean> {
  const timer = new AbortController()
  const late = pause(timeMs, false, { signal: timer.signal }).catch(() => false)
  const done = await Promise.race([promise.then(() => true), late])
  timer.abort()
  return done
}
