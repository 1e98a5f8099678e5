/**
 * Where PostgreSQL listens: on a Unix socket in the cluster's own folder, which only its account (and root) can
 * enter; where that path is too long, in a private folder for temporary files. On Windows on a free TCP port of the
 * loopback address.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { chown, lstat, mkdir, mkdtemp } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { codeOf, reasonOf } from '../failure.ts'
import { DatabaseServerError } from '../port.ts'
import { type Account, mayReach } from './account.ts'
import type { Home } from './home.ts'
import type { Surroundings } from './surroundings.ts'

export interface Endpoint {
  /** The folder of the socket, or the loopback address. */
  readonly host: string
  /** Part of the socket's name, or the TCP port. */
  readonly port: number
}

/** `sun_path` holds 108 bytes on Linux and 104 on macOS and the BSDs, the closing zero included. */
const socketPathBytesMax = process.platform === 'linux' ? 107 : 103
const socketPort = 5432
const socketName = `.s.PGSQL.${socketPort}`

const fits = (dir: string) => Buffer.byteLength(join(dir, socketName)) <= socketPathBytesMax

/** Chooses the endpoint and makes its folder. */
export async function openEndpoint(home: Home, surroundings: Surroundings): Promise<Endpoint> {
  if (!surroundings.unixSockets) return { host: '127.0.0.1', port: await findFreePort() }
  const clusterDir = join(home.dir, 'postgres')
  if (fits(clusterDir)) return { host: clusterDir, port: socketPort }
  const name = `portico-${createHash('sha256').update(clusterDir).digest('hex').slice(0, 12)}`
  const failures: string[] = []
  for (const parent of surroundings.temporaryDirs) {
    try {
      if (!fits(join(parent, `${name}-123456`))) throw new Error('the path is too long')
      if (home.account && !(await mayReach(home.account, parent))) throw new Error(`${home.account.name} cannot enter`)
      return { host: await makePrivate(join(parent, name), home.account), port: socketPort }
    } catch (error) {
      failures.push(`${parent}: ${reasonOf(error)}`)
    }
  }
  throw new DatabaseServerError(
    `The path ${clusterDir} is too long for a Unix socket, and no other folder will do (${failures.join('; ')}). ` +
      'Choose a shorter one with PORTICO_DATA_DIR.',
  )
}

/**
 * Makes a folder that its owner alone can enter. The name is the same every time, so that a running PostgreSQL is
 * found again; when somebody else took that name (everybody may write to /tmp), one that cannot be guessed will do.
 */
async function makePrivate(dir: string, account: Account | undefined): Promise<string> {
  const made = await mkdir(dir, { mode: 0o700 }).then(
    () => dir,
    async (error) => {
      if (codeOf(error) !== 'EEXIST') throw error
      const found = await lstat(dir)
      const ours =
        found.isDirectory() && found.uid === (account?.uid ?? process.getuid?.()) && (found.mode & 0o077) === 0
      return ours ? dir : mkdtemp(`${dir}-`)
    },
  )
  if (account) await chown(made, account.uid, account.gid)
  return made
}

/** Before the server is started again at the same endpoint: a temporary folder may have been cleaned away. */
export async function restoreEndpoint(endpoint: Endpoint, home: Home): Promise<void> {
  if (!endpoint.host.startsWith('/') || endpoint.host === join(home.dir, 'postgres')) return
  const made = await mkdir(endpoint.host, { recursive: true, mode: 0o700 })
  if (made && home.account) await chown(endpoint.host, home.account.uid, home.account.gid)
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no TCP port')
  return address.port
}
