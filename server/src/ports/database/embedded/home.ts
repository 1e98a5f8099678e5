/**
 * Where the cluster lives: in the data directory, unless the account that PostgreSQL runs under cannot get there.
 *
 * That happens to root, whose PostgreSQL runs as `postgres` or `nobody`: a clone under /root (mode 700) is out of
 * their reach. Opening a folder of the user's is not for us to do, so the cluster then goes to a folder of its own
 * under /var/lib/portico, and a pointer file in the data directory says where. The pointer decides from then on,
 * whatever becomes of the permissions, since two clusters for one data directory would be the worst outcome.
 */
import { createHash } from 'node:crypto'
import { access, chmod, chown, constants, mkdir, readFile, realpath, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { codeOf, reasonOf } from '../failure.ts'
import { DatabaseServerError, type ReportProgress } from '../port.ts'
import { type Account, findUnprivilegedAccount, mayReach, ownerOf } from './account.ts'
import type { Surroundings } from './surroundings.ts'

export interface Home {
  /** The folder that holds `postgres/`. */
  readonly dir: string
  /** The account to switch to; absent when PostgreSQL runs as whoever runs the service. */
  readonly account?: Account
}

/** The data directory, made when it is missing, as an absolute path without symbolic links. */
export async function openDataDirectory(dataDir: string, surroundings: Surroundings): Promise<string> {
  try {
    const firstMade = await mkdir(resolve(dataDir), { recursive: true, mode: 0o700 })
    const real = await realpath(dataDir)
    if (firstMade) await letIn(await realpath(firstMade), real, surroundings)
    await access(real, constants.R_OK | constants.W_OK | constants.X_OK)
    return real
  } catch (cause) {
    if (cause instanceof DatabaseServerError) throw cause
    throw new DatabaseServerError(await describeDenial(dataDir, cause, surroundings), { cause })
  }
}

/** Folders that we made as root are opened to the one account that has to pass through them, and to nobody else. */
async function letIn(from: string, to: string, surroundings: Surroundings): Promise<void> {
  if (process.getuid?.() !== 0) return
  const account = await findUnprivilegedAccount(surroundings.passwdFile)
  if (!account) return // refused with an explanation as soon as PostgreSQL has to run
  try {
    for (let at = to; at.length >= from.length; at = dirname(at)) {
      await chown(at, 0, account.gid)
      await chmod(at, 0o710)
    }
  } catch (cause) {
    throw new DatabaseServerError(
      `PostgreSQL refuses to run as root, and this process may not give files to the user ${account.name} ` +
        `(${reasonOf(cause)}; a container without capabilities?). Start Portico as an ordinary user.`,
      { cause },
    )
  }
}

/** Finds the home of an existing cluster, or chooses one for a new cluster. */
export async function findHome(dataDir: string, surroundings: Surroundings, report: ReportProgress): Promise<Home> {
  const pointed = await followPointer(dataDir)
  const dir = pointed ?? dataDir
  const clusterDir = join(dir, 'postgres')
  const exists = await access(clusterDir).then(
    () => true,
    (error) => codeOf(error) !== 'ENOENT',
  )
  if (exists) return { dir, ...(await accountOfExisting(clusterDir, surroundings)) }
  if (pointed) {
    throw new DatabaseServerError(
      `${pointerIn(dataDir)} says that the database files are in ${clusterDir}, but they are not there. ` +
        'Bring them back (a backup, a file system that is not mounted); delete that file only to start empty.',
    )
  }
  if (process.getuid?.() !== 0) return { dir }
  const account = await findUnprivilegedAccount(surroundings.passwdFile)
  if (!account) {
    throw new DatabaseServerError(
      'PostgreSQL refuses to run as root, and this machine has neither a user postgres nor a user nobody. ' +
        'Start Portico as an ordinary user, or set DATABASE_URL to a PostgreSQL server of your own.',
    )
  }
  if (await mayReach(account, dataDir)) return { dir, account }
  return { dir: await moveOut(dataDir, account, surroundings, report), account }
}

/** An existing cluster keeps its owner: PostgreSQL refuses to run as anybody else. */
async function accountOfExisting(clusterDir: string, surroundings: Surroundings): Promise<{ account?: Account }> {
  const uid = process.getuid?.()
  if (uid === undefined) return {}
  const owner = await ownerOf(clusterDir, surroundings.passwdFile)
  if (owner.uid === uid && uid !== 0) return {}
  if (uid === 0 && owner.uid !== 0) return { account: owner }
  const problem =
    uid === 0
      ? `${clusterDir} belongs to root, and PostgreSQL refuses to run as root. Give it to the user it is meant for`
      : `${clusterDir} belongs to ${owner.name}, not to the user that runs Portico now. Start it as root or as ${owner.name}`
  throw new DatabaseServerError(`${problem}, or choose another folder with PORTICO_DATA_DIR.`)
}

/** The folder that holds `postgres/` of an existing data directory; nothing is chosen or made. */
export async function homeOf(dataDir: string): Promise<string> {
  const real = await realpath(dataDir).catch(() => resolve(dataDir))
  return (await followPointer(real)) ?? real
}

const pointerIn = (dataDir: string) => join(dataDir, 'postgres.location')

async function followPointer(dataDir: string): Promise<string | undefined> {
  let home: string
  try {
    home = (await readFile(pointerIn(dataDir), 'utf8')).trim()
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined
    throw new DatabaseServerError(`Cannot read ${pointerIn(dataDir)}: ${reasonOf(cause)}.`, { cause })
  }
  await refuseCopy(dataDir, home)
  return home
}

/**
 * A data directory that was copied points to the cluster of the one it was copied from. One that was moved does too,
 * and takes the cluster along.
 */
async function refuseCopy(dataDir: string, home: string): Promise<void> {
  const originFile = join(home, 'origin')
  const origin = (await readFile(originFile, 'utf8').catch(() => '')).trim()
  if (origin === '' || origin === dataDir) return
  const other = (await readFile(pointerIn(origin), 'utf8').catch(() => '')).trim()
  if (other !== home) return writeFile(originFile, `${dataDir}\n`)
  throw new DatabaseServerError(
    `${dataDir} is a copy of ${origin}, whose database files are in ${home}. Delete ${pointerIn(dataDir)} to start ` +
      'with an empty database here; to copy the data, use pg_dump.',
  )
}

async function moveOut(
  dataDir: string,
  account: Account,
  surroundings: Surroundings,
  report: ReportProgress,
): Promise<string> {
  const home = join(surroundings.sharedHome, createHash('sha256').update(dataDir).digest('hex').slice(0, 16))
  report(`The user ${account.name} cannot enter ${dataDir}: the database files go to ${home} instead`)
  try {
    await mkdir(surroundings.sharedHome, { recursive: true, mode: 0o755 })
    await mkdir(home, { recursive: true })
    await chown(home, 0, account.gid)
    await chmod(home, 0o710)
    if (!(await mayReach(account, home))) throw new Error(`the user ${account.name} cannot enter it either`)
    await writeFile(join(home, 'origin'), `${dataDir}\n`, { flush: true })
    await writeFile(pointerIn(dataDir), `${home}\n`, { flush: true })
    return home
  } catch (cause) {
    throw new DatabaseServerError(
      `PostgreSQL runs as the user ${account.name}, who cannot enter ${dataDir}; and ${home} cannot be used: ` +
        `${reasonOf(cause)}. Choose a folder that ${account.name} can reach with PORTICO_DATA_DIR.`,
      { cause },
    )
  }
}

async function describeDenial(dataDir: string, cause: unknown, surroundings: Surroundings): Promise<string> {
  const owner = await ownerOf(dataDir, surroundings.passwdFile).catch(() => undefined)
  if (!owner || owner.uid === process.getuid?.()) return `Cannot use the data directory ${dataDir}: ${reasonOf(cause)}.`
  return (
    `The data directory ${dataDir} belongs to ${owner.name} and cannot be written by the user that runs Portico now ` +
    `(${reasonOf(cause)}). Start it as ${owner.name}, or choose another folder with PORTICO_DATA_DIR.`
  )
}
