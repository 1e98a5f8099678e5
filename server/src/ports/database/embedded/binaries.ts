/** The programs of PostgreSQL: which version they are, and a copy of them where the account cannot reach them. */
import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, mkdtemp, readdir, realpath, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { codeOf, reasonOf } from '../failure.ts'
import { DatabaseServerError, type ReportProgress } from '../port.ts'
import type { Account } from './account.ts'
import type { Home } from './home.ts'
import type { Surroundings } from './surroundings.ts'

const run = promisify(execFile)

export interface Binaries {
  readonly postgres: string
  readonly initdb: string
  readonly pgCtl: string
  /** As in `server_version_num`: 180004 for 18.4. */
  readonly versionNumber: number
  /** For people: `18.4`. */
  readonly version: string
}

/**
 * How a child of ours runs: as the account, and without the service's environment, which holds its secrets and may
 * hold settings of PostgreSQL (`PGDATA`, `PGOPTIONS`) that were meant for something else.
 */
export function childOptions(account: Account | undefined) {
  const env = { LC_ALL: 'C', TZ: 'UTC' } // what Windows needs besides, Node adds
  return { env, windowsHide: true, ...(account && { uid: account.uid, gid: account.gid }) }
}

/** Proves by running one that the binaries work for the account, and copies them to the home if they cannot be reached. */
export async function findBinaries(home: Home, surroundings: Surroundings, report: ReportProgress): Promise<Binaries> {
  const installed = surroundings.findBinaries()
  try {
    return await examine(installed, home.account)
  } catch (error) {
    if (!home.account || codeOf(error) === 'EPERM') throw explain(installed, home.account, error)
  }
  const copy = await copyBinaries(installed, home, home.account, report)
  return examine(copy, home.account).catch((error) => {
    throw explain(copy, home.account, error)
  })
}

/** About 10 ms; the version is asked of the program because a package can be replaced under its name. */
async function examine(dir: string, account: Account | undefined): Promise<Binaries> {
  const suffix = process.platform === 'win32' ? '.exe' : ''
  const program = (name: string) => join(dir, 'bin', `${name}${suffix}`)
  const { stdout } = await run(program('postgres'), ['-V'], { ...childOptions(account), cwd: '/', timeout: 30_000 })
  const [, version = '', major = '', minor = ''] = /((\d+)\.(\d+))/.exec(stdout) ?? []
  if (version === '') throw new Error(`it answers "${stdout.trim()}"`)
  return {
    postgres: program('postgres'),
    initdb: program('initdb'),
    pgCtl: program('pg_ctl'),
    versionNumber: Number(major) * 10_000 + Number(minor),
    version,
  }
}

function explain(dir: string, account: Account | undefined, cause: unknown): DatabaseServerError {
  if (account && codeOf(cause) === 'EPERM') {
    return new DatabaseServerError(
      `PostgreSQL refuses to run as root, and this process may not switch to the user ${account.name} (a container ` +
        'without the capabilities SETUID and SETGID?). Start Portico as an ordinary user.',
      { cause },
    )
  }
  return new DatabaseServerError(
    `PostgreSQL in ${dir} does not run${account ? ` as the user ${account.name}` : ''}: ${reasonOf(cause)}. ` +
      'Run "node scripts/setup.mjs" to repair the installation, or set DATABASE_URL to a server of your own.',
    { cause },
  )
}

/** The copy is named after the day's installation by version, so that a newer installation makes a newer copy. */
async function copyBinaries(from: string, home: Home, account: Account, report: ReportProgress): Promise<string> {
  const { version } = await examine(from, undefined).catch((error) => {
    throw explain(from, undefined, error)
  })
  const parent = join(home.dir, 'postgres.binaries')
  const target = join(parent, version)
  if ((await readdir(parent).catch((): string[] => [])).includes(version)) return target
  report(`The user ${account.name} cannot run PostgreSQL from ${from}: copying it to ${target}`)
  await rm(parent, { recursive: true, force: true }) // older versions, and what an interrupted copy left
  await mkdir(parent)
  await chmod(parent, 0o755)
  const staging = await mkdtemp(join(parent, 'copying-'))
  // Static libraries are for compilers. Links stay relative: they point to files beside them.
  await cp(await realpath(from), staging, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('.a'),
  })
  await openToReaders(staging)
  await rename(staging, target)
  return target
}

/** The account reads and runs the copy but cannot change it: it stays root's. */
async function openToReaders(dir: string): Promise<void> {
  await chmod(dir, 0o755)
  for (const entry of await readdir(dir, { withFileTypes: true })) {
    const path = join(dir, entry.name)
    if (entry.isDirectory()) await openToReaders(path)
    else if (entry.isFile()) await chmod(path, 0o755)
  }
}
