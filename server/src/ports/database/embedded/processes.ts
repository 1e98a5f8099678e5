/** Looking at, and ending, processes that are not our children: what a killed service left behind. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { promisify } from 'node:util'
import { codeOf } from '../failure.ts'

const run = promisify(execFile)

/** Whether the process exists and has not ended. A zombie, which nobody has collected yet, has ended. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (codeOf(error) !== 'EPERM') return false
  }
  if (process.platform !== 'linux') return true
  try {
    const status = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return !/^[ZX]$/.test(status.charAt(status.lastIndexOf(')') + 2))
  } catch {
    return false
  }
}

/**
 * Whether the process is a PostgreSQL on this cluster. Process ids are reused, above all after a restart of the
 * machine, so the id in `postmaster.pid` alone proves nothing and is never signalled before this was asked.
 */
export async function isPostgresOn(pid: number, clusterDir: string): Promise<boolean> {
  if (!isRunning(pid)) return false
  // The working directory is what the kernel knows, and follows a folder that was renamed. Root inside a container
  // may not look at another user's (no CAP_SYS_PTRACE); the command line is readable to everybody.
  const working = process.platform === 'linux' ? await worksIn(pid, clusterDir) : undefined
  if (working !== undefined) return working
  const command = await commandLine(pid)
  return /(^|[/\\])postgres(\.exe)?["'\s]/.test(command) && command.includes(` ${clusterDir} `)
}

/** Every process of PostgreSQL that works in this cluster: the postmaster and its backends. Linux only. */
export async function findPostgresOn(clusterDir: string): Promise<number[]> {
  if (process.platform !== 'linux') return []
  const found: number[] = []
  for (const entry of await readdir('/proc')) {
    const pid = Number(entry)
    if (Number.isInteger(pid) && (await worksIn(pid, clusterDir)) && isRunning(pid)) found.push(pid)
  }
  return found
}

/** `undefined` when the kernel does not let us look. */
async function worksIn(pid: number, clusterDir: string): Promise<boolean | undefined> {
  try {
    const [working, cluster, name] = await Promise.all([
      stat(`/proc/${pid}/cwd`),
      stat(clusterDir),
      readFile(`/proc/${pid}/comm`, 'utf8'),
    ])
    return working.ino === cluster.ino && working.dev === cluster.dev && name.startsWith('postgres')
  } catch (error) {
    return codeOf(error) === 'EACCES' ? undefined : false
  }
}

/** The command line with a blank after every argument; empty when the process is gone. */
async function commandLine(pid: number): Promise<string> {
  try {
    if (process.platform === 'linux') return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ')
    if (process.platform !== 'win32') {
      const { stdout } = await run('ps', ['-ww', '-p', String(pid), '-o', 'command='], { timeout: 5_000 })
      return `${stdout.trimEnd()} `
    }
    const query = `(Get-CimInstance Win32_Process -Filter 'ProcessId=${pid}').CommandLine`
    const { stdout } = await run('powershell', ['-NoProfile', '-Command', query], { timeout: 10_000 })
    return `${stdout.trimEnd()} `.replaceAll('"', ' ')
  } catch {
    return ''
  }
}

/** Signals a process; one that is gone already is no error. */
export function signal(pid: number, name: NodeJS.Signals): void {
  if (pid <= 1) throw new RangeError(`${pid} is not a process to signal`) // 0 would be our own process group
  try {
    process.kill(pid, name)
  } catch (error) {
    if (codeOf(error) !== 'ESRCH') throw error
  }
}
