/** The cluster on disk: made in one piece or not at all, checked for its version, opened with its password. */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, mkdir, mkdtemp, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { codeOf, reasonOf } from '../failure.ts'
import { DatabaseServerError, type ReportProgress } from '../port.ts'
import { type Binaries, childOptions } from './binaries.ts'
import type { Home } from './home.ts'

const run = promisify(execFile)

export const superuser = 'portico'
const stagingPrefix = 'postgres.init-'

/** Makes the cluster on the first start, and returns the superuser's password. No server may run on it yet. */
export async function openCluster(
  dataDir: string,
  home: Home,
  binaries: Binaries,
  report: ReportProgress,
): Promise<string> {
  const passwordFile = join(dataDir, 'postgres.password')
  const clusterDir = join(home.dir, 'postgres')
  const stored = await readPassword(passwordFile)
  if ((await readMajor(clusterDir)) === undefined) {
    const password = stored ?? (await storePassword(passwordFile))
    report(`Preparing PostgreSQL ${binaries.version} in ${clusterDir}`)
    await makeCluster(home, binaries, password)
    return password
  }
  if (stored !== undefined) return stored
  report(`${passwordFile} is missing: setting a new password`)
  const password = randomBytes(32).toString('base64url')
  await setPassword(clusterDir, home, binaries, password)
  return storePassword(passwordFile, password)
}

/** Whether the password of an existing cluster is at hand; without it a running server cannot be taken over. */
export async function readPassword(passwordFile: string): Promise<string | undefined> {
  try {
    return (await readFile(passwordFile, 'utf8')).trim() || undefined
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined
    throw new DatabaseServerError(`Cannot read ${passwordFile}: ${reasonOf(cause)}.`, { cause })
  }
}

async function storePassword(passwordFile: string, password = randomBytes(32).toString('base64url')): Promise<string> {
  // Flushed before the cluster exists, so that no power cut leaves a cluster whose password nobody has.
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600, flush: true })
  return password
}

/** The major version of a cluster; `undefined` when there is none. */
export async function readMajor(clusterDir: string): Promise<number | undefined> {
  try {
    return Number((await readFile(join(clusterDir, 'PG_VERSION'), 'utf8')).trim())
  } catch (cause) {
    // The folder appears by a rename when it is complete, so there is either all of it or nothing.
    const entries = await readdir(clusterDir).catch(() => undefined)
    if (codeOf(cause) === 'ENOENT' && entries === undefined) return undefined
    throw new DatabaseServerError(
      `${clusterDir} is not a PostgreSQL cluster (${reasonOf(cause)}). Restore it from a backup, or move it away to ` +
        'start with an empty database.',
      { cause },
    )
  }
}

/** Before anything is done to an existing cluster: the files of one major version are unreadable to another. */
export async function refuseOtherMajor(clusterDir: string, binaries: Binaries): Promise<void> {
  const ours = Math.floor(binaries.versionNumber / 10_000)
  const major = await readMajor(clusterDir)
  if (major === undefined || major === ours) return
  const remedy =
    major > ours
      ? `Start the newer Portico that wrote it, or restore a backup made with PostgreSQL ${ours}.`
      : `Start the older Portico once more, save the data with pg_dump, move ${clusterDir} away, start this one and ` +
        'load the dump; or point DATABASE_URL to a server that holds it.'
  throw new DatabaseServerError(
    `The database in ${clusterDir} is of PostgreSQL ${major}; this Portico brings PostgreSQL ${ours}. ${remedy}`,
  )
}

/**
 * Runs initdb in a folder beside the cluster's and renames the result, so that a first start that is killed leaves
 * nothing half-made. initdb flushes what it wrote (0.60 s instead of 0.49 s here): later transactions flush only
 * their own pages, and a power cut would otherwise take the catalogs from under them.
 */
async function makeCluster(home: Home, binaries: Binaries, password: string): Promise<void> {
  await removeLeftovers(home)
  const staging = await mkdtemp(join(home.dir, stagingPrefix))
  try {
    const passwordFile = join(staging, 'password')
    await writeFile(passwordFile, password, { mode: 0o600 })
    if (home.account) {
      await chown(staging, home.account.uid, home.account.gid)
      await chown(passwordFile, home.account.uid, home.account.gid)
    }
    await initialise(join(staging, 'cluster'), passwordFile, home, binaries)
    await rename(join(staging, 'cluster'), join(home.dir, 'postgres'))
    await flushFolder(home.dir)
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

async function removeLeftovers(home: Home): Promise<void> {
  for (const name of await readdir(home.dir)) {
    if (name.startsWith(stagingPrefix)) await rm(join(home.dir, name), { recursive: true, force: true, maxRetries: 3 })
  }
}

async function initialise(clusterDir: string, passwordFile: string, home: Home, binaries: Binaries): Promise<void> {
  await mkdir(clusterDir, { mode: 0o700 })
  if (home.account) await chown(clusterDir, home.account.uid, home.account.gid)
  const options = [
    ...['-D', clusterDir, '-U', superuser, `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '-E', 'UTF8'],
    // Sorting and case as PostgreSQL itself defines them: the same on every machine, unchanged by its updates.
    ...['--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C', '--no-instructions'],
  ]
  const failures: string[] = []
  for (const characters of characterLocales) {
    try {
      // Refuses an unknown locale before it writes anything, in about 10 ms.
      await run(binaries.initdb, [...options, `--lc-ctype=${characters}`], {
        ...childOptions(home.account),
        cwd: clusterDir,
        timeout: 120_000,
      })
      return
    } catch (error) {
      failures.push(reasonOf(error))
      if (!reasonOf(error).includes('invalid locale name')) break
    }
  }
  throw new DatabaseServerError(`PostgreSQL cannot make its database in ${home.dir}: ${explain(failures)}`)
}

/**
 * Which characters are letters is asked of the operating system by full-text search alone; with plain C, "Zürich—Basel"
 * would be one word and a quotation mark part of the word it stands at. Nearly every Linux has the first, macOS the second.
 */
const characterLocales = process.platform === 'win32' ? ['C'] : ['C.UTF-8', 'en_US.UTF-8', 'C']

function explain(failures: string[]): string {
  const said = (failures.at(-1) ?? '').replace(/^Command failed: .*\n/, '').trim()
  if (!said.includes('could not look up effective user ID')) return said
  return `${said}. Add user ${userInfoOrId()} to /etc/passwd, start as another user, or set DATABASE_URL.`
}

function userInfoOrId(): string {
  try {
    return userInfo().username
  } catch {
    return String(process.getuid?.()) // a container that was started with any user id
  }
}

async function flushFolder(dir: string): Promise<void> {
  if (process.platform === 'win32') return // a folder cannot be opened there
  const handle = await open(dir, 'r')
  await handle.sync().finally(() => handle.close())
}

/** In single-user mode, where PostgreSQL asks for no password: being its account is proof enough. */
async function setPassword(clusterDir: string, home: Home, binaries: Binaries, password: string): Promise<void> {
  const options = { ...childOptions(home.account), cwd: clusterDir, timeout: 120_000 }
  const child = run(
    binaries.postgres,
    ['--single', '-D', clusterDir, '-c', 'log_min_messages=error', 'postgres'],
    options,
  )
  child.child.stdin?.end(`ALTER ROLE ${superuser} PASSWORD '${password}'\n`)
  await child.catch((cause) => {
    throw new DatabaseServerError(`Cannot set a new password in ${clusterDir}: ${explain([reasonOf(cause)])}`, {
      cause,
    })
  })
}
