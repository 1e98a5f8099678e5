/** `postmaster.pid`, in which a running PostgreSQL says who it is and how far it has come. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { codeOf } from '../failure.ts'
import type { Endpoint } from './socket.ts'

export interface PostmasterFile {
  readonly pid: number
  /** `starting`, `ready`, `stopping`; empty in the first moments. */
  readonly status: string
  /** Where it listens, once it does: the folder of its socket, or an address. */
  readonly endpoint?: Endpoint
}

/** `undefined` when there is none; `unreadable` when a power cut, or a moment too early, left it empty. */
export async function readPostmasterFile(clusterDir: string): Promise<PostmasterFile | 'unreadable' | undefined> {
  try {
    const lines = (await readFile(join(clusterDir, 'postmaster.pid'), 'utf8')).split('\n')
    const pid = Number(lines[0])
    if (!Number.isInteger(pid) || pid === 0) return 'unreadable'
    // Which line says what: miscadmin.h, LOCK_FILE_LINE_*. A negative id is that of a single-user session.
    const [port, socketDir, address, status] = [3, 4, 5, 7].map((line) => lines[line]?.trim() ?? '')
    const host = socketDir || address
    return { pid: Math.abs(pid), status: status ?? '', ...(host && { endpoint: { host, port: Number(port) } }) }
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
