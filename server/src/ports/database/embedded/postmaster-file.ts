/** `postmaster.pid`, in which a running PostgreSQL says who it is and how far it has come. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../failure.ts'

export interface PostmasterFile {
  readonly pid: number
  /** `starting`, `ready`, `stopping`; empty in the first moments. */
  readonly status: string
}

/** `undefined` when there is none; `unreadable` when a power cut, or a moment too early, left it empty. */
export async function readPostmasterFile(clusterDir: string): Promise<PostmasterFile | 'unreadable' | undefined> {
  try {
    const lines = (await readFile(join(clusterDir, 'postmaster.pid'), 'utf8')).split('\n')
    const pid = Number(lines[0])
    if (!Number.isInteger(pid) || pid === 0) return 'unreadable'
    // A negative id is that of a single-user session. Line 8 is the status (miscadmin.h: LOCK_FILE_LINE_PM_STATUS).
    return { pid: Math.abs(pid), status: lines[7]?.trim() ?? '' }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** The command line that the server was last started with, as PostgreSQL records it. */
export async function readLastCommand(clusterDir: string): Promise<string> {
  return (await readFile(join(clusterDir, 'postmaster.opts'), 'utf8').catch(() => '')).trim()
}

export function commandAsRecorded(program: string, options: readonly string[]): string {
  return [program, ...options.map((option) => `"${option}"`)].join(' ')
}
