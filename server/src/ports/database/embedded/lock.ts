/**
 * One service for one data directory.
 *
 * The lock is a write lock that SQLite (inside Node, `node:sqlite`) holds on an empty file. Behind it are
 * `fcntl(F_SETLK)` on Linux and macOS and `LockFileEx` on Windows: taken in one step, so that of many simultaneous
 * starts exactly one wins, and given back by the kernel when the holder dies, however it dies. It is bound to the
 * file, so it also holds between containers that share a volume. The other ways were weighed and left:
 *
 * - a file with a process id: needs a second look at whether that process is really ours (ids are reused after a
 *   restart of the machine, and mean nothing across containers), and taking over a stale one is a race;
 * - a listening Unix socket in the directory: the file stays after kill -9, and two starts that both find it stale
 *   unlink each other's; its path may be 107 bytes long and no longer;
 * - an abstract socket: Linux only, and blind across network namespaces;
 * - flock(2): the right thing, but Node does not have it.
 *
 * Measured: 0.6 ms. The one rule that POSIX locks impose: nothing else in this process may open and close the file,
 * since closing any descriptor of it gives the lock back. Hence a file of its own that holds nothing, and the process
 * id in another.
 */
import { access, constants, open, readFile, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as pause } from 'node:timers/promises'
import { codeOf, reasonOf } from '../failure.ts'
import { DatabaseServerError } from '../port.ts'
import { isRunning } from './processes.ts'

export interface DataDirectoryLock {
  release(): Promise<void>
}

interface Holder {
  readonly pid: number
  readonly host: string
  readonly since: string
}

const sqliteBusy = 5

/** A lock that nobody refers to would be collected as garbage, and thereby given back. */
const held = new Set<DatabaseSync>()

/** Takes the data directory for this process, or says who has it. */
export async function lockDataDirectory(dataDir: string): Promise<DataDirectoryLock> {
  const lockFile = join(dataDir, 'service.lock')
  const holderFile = join(dataDir, 'service.pid')
  await createOnce(lockFile)
  const lock = takeLock(lockFile)
  if (!lock) throw new DatabaseServerError(await describeHolder(dataDir, holderFile))
  const holder: Holder = { pid: process.pid, host: hostname(), since: new Date().toISOString() }
  try {
    await writeFile(holderFile, JSON.stringify(holder), { mode: 0o600 })
  } catch (cause) {
    lock.close()
    throw new DatabaseServerError(`The data directory ${dataDir} cannot be written: ${reasonOf(cause)}.`, { cause })
  }
  held.add(lock)
  let released: Promise<void> | undefined
  return {
    release() {
      released ??= rm(holderFile, { force: true }).finally(() => {
        held.delete(lock)
        lock.close()
      })
      return released
    },
  }
}

/**
 * Makes the file for its owner alone, since who may open it may lock it. An existing file is not opened: this process
 * may hold the lock already (see above).
 */
async function createOnce(lockFile: string): Promise<void> {
  try {
    await (await open(lockFile, 'wx', 0o600)).close()
  } catch (cause) {
    const usable = codeOf(cause) === 'EEXIST' && (await isWritable(lockFile))
    if (!usable) throw new DatabaseServerError(`Cannot lock ${lockFile}: ${reasonOf(cause)}.`, { cause })
  }
}

async function isWritable(path: string): Promise<boolean> {
  return access(path, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  )
}

function takeLock(lockFile: string): DatabaseSync | undefined {
  const database = new DatabaseSync(lockFile, { timeout: 0 })
  try {
    // IMMEDIATE takes the one lock that only one connection can have, and never has to wait for readers to leave
    // (EXCLUSIVE does, and two simultaneous starts can then turn each other away). The journal stays in memory, so
    // that nothing is ever written to disk.
    database.exec('PRAGMA journal_mode = MEMORY')
    database.exec('BEGIN IMMEDIATE')
    return database
  } catch (cause) {
    database.close()
    if (cause instanceof Error && 'errcode' in cause && cause.errcode === sqliteBusy) return undefined
    throw new DatabaseServerError(
      `Cannot lock ${lockFile}: ${reasonOf(cause)}. The data directory must be on a file system that supports locks.`,
      { cause },
    )
  }
}

async function describeHolder(dataDir: string, holderFile: string): Promise<string> {
  const remedy = 'Stop it first, or give this one another folder with PORTICO_DATA_DIR.'
  // The winner of a race writes its process id a moment after it has the lock, over the id of one that is dead.
  for (let attempt = 0; attempt < 20; attempt++) {
    const holder = await readHolder(holderFile)
    if (holder && (holder.host !== hostname() || isRunning(holder.pid))) {
      const where = holder.host === hostname() ? '' : ` on ${holder.host}`
      return `Process ${holder.pid}${where} is using the data directory ${dataDir} since ${holder.since}. ${remedy}`
    }
    await pause(25)
  }
  return `Another process is using the data directory ${dataDir}. ${remedy}`
}

async function readHolder(holderFile: string): Promise<Holder | undefined> {
  try {
    const holder: Partial<Holder> = JSON.parse(await readFile(holderFile, 'utf8'))
    return typeof holder.pid === 'number' && typeof holder.host === 'string' && typeof holder.since === 'string'
      ? { pid: holder.pid, host: holder.host, since: holder.since }
      : undefined
  } catch {
    return undefined // absent, or in the middle of being written
  }
}
