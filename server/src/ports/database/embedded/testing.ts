/** What the tests of the supervisor share: data directories that are cleaned up, and services in their own process. */
import { execFile, spawn } from 'node:child_process'
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startEmbedded } from '../embedded.ts'
import type { DatabaseServer, DatabaseServerLog, ReportProgress } from '../port.ts'
import { readPostmasterFile } from './postmaster-file.ts'
import { findPostgresOn, isRunning, signal } from './processes.ts'
import type { ServiceEvent } from './service.fixture.ts'
import { ask } from './session.ts'
import { type Surroundings, thisMachine } from './surroundings.ts'

export const run = promisify(execFile)
export const isRoot = process.getuid?.() === 0

/** Records what the supervisor logs. */
export function recordingLog(): DatabaseServerLog & { readonly lines: string[] } {
  const lines: string[] = []
  const write = (details: object, sentence: string) => lines.push(`${sentence} ${JSON.stringify(details)}`)
  return { lines, info: write, warn: write, error: write }
}

/** Folders and processes of one test file. */
export class Workshop {
  readonly #root: Promise<string>
  readonly #services: Service[] = []
  readonly #servers: DatabaseServer[] = []
  #template: Promise<string> | undefined
  #count = 0

  constructor() {
    this.#root = findRoom().then(async (parent) => {
      const root = await mkdtemp(join(parent, 'pdb-'))
      await chmod(root, 0o711) // PostgreSQL's account has to pass through
      return root
    })
  }

  /** A path where nothing is yet, short enough for a socket. */
  async newPath(): Promise<string> {
    return join(await this.#root, String(++this.#count))
  }

  /** A data directory with a database in it, as a clean stop leaves it. Made once and copied: 0.1 s instead of 1 s. */
  async newData(): Promise<string> {
    this.#template ??= this.newPath().then(async (dataDir) => {
      await (await this.start(dataDir)).stop()
      return dataDir
    })
    const copy = await this.newPath()
    await run('cp', ['-a', await this.#template, copy])
    return copy
  }

  /** The adapter in this process. */
  async start(dataDir: string, options: StartOptions = {}): Promise<DatabaseServer> {
    const { report = () => {}, log = recordingLog(), surroundings } = options
    const server = await startEmbedded({ dataDir, report, log }, { ...thisMachine(), ...surroundings })
    this.#servers.push(server)
    return server
  }

  /** The adapter in a process of its own. */
  service(dataDir: string, options: ServiceOptions = {}): Service {
    const service = new Service(dataDir, options)
    this.#services.push(service)
    return service
  }

  /** Ends what a failed test left running, and removes the folders. */
  async close(): Promise<void> {
    const root = await this.#root
    await Promise.all(this.#servers.map((server) => server.stop()))
    for (const service of this.#services) service.kill()
    for (let n = 1; n <= this.#count; n++) await killServerOn(join(root, String(n), 'postgres'))
    await rm(root, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Memory where there is plenty: on a busy disk these tests take three times as long (70 s instead of 23 s here). */
async function findRoom(): Promise<string> {
  const memory = '/dev/shm'
  const free = await statfs(memory).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  )
  return free > 4 * 2 ** 30 ? memory : tmpdir()
}

export interface StartOptions {
  readonly report?: ReportProgress
  readonly log?: DatabaseServerLog
  readonly surroundings?: Partial<Surroundings>
}

export interface ServiceOptions {
  readonly surroundings?: Partial<Omit<Surroundings, 'findBinaries'>>
  readonly uid?: number
  readonly gid?: number
  readonly env?: Record<string, string>
}

export class Service {
  readonly events: ServiceEvent[] = []
  readonly pid: number
  readonly exited: Promise<void>
  readonly #closed: Promise<void>

  constructor(dataDir: string, { surroundings, uid, gid, env }: ServiceOptions) {
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, 'service.fixture.ts'), JSON.stringify({ dataDir, surroundings })],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
        detached: true, // a process group of its own, as a terminal gives it, so that a test can press Ctrl-C
        cwd: '/',
        env: { ...process.env, ...env },
        ...(uid !== undefined && { uid, gid: gid ?? uid }),
      },
    )
    this.pid = child.pid ?? -1
    const lines = createInterface({ input: child.stdout })
    lines.on('line', (line) => this.events.push(JSON.parse(line)))
    this.#closed = new Promise((resolve) => lines.once('close', resolve))
    this.exited = new Promise((resolve) => child.once('exit', () => resolve()))
  }

  /** The first event of that kind; fails when the process ends without it. */
  async event<Kind extends ServiceEvent['event']>(kind: Kind): Promise<Extract<ServiceEvent, { event: Kind }>> {
    let over = false
    this.#closed.then(() => {
      over = true
    })
    for (;;) {
      const ended = over
      for (const event of this.events) if (isOfKind(event, kind)) return event
      if (ended) throw new Error(`no "${kind}" but ${JSON.stringify(this.events)}`)
      await pause(5)
    }
  }

  sentences(): string[] {
    return this.events.flatMap((event) => (event.event === 'report' ? [event.sentence] : []))
  }

  kill(): void {
    if (isRunning(this.pid)) signal(this.pid, 'SIGKILL')
  }

  async stop(): Promise<void> {
    signal(this.pid, 'SIGTERM')
    await this.exited
  }
}

function isOfKind<Kind extends ServiceEvent['event']>(
  event: ServiceEvent,
  kind: Kind,
): event is Extract<ServiceEvent, { event: Kind }> {
  return event.event === kind
}

/** The process id of the server on a data directory (0 when there is none). */
export async function serverOn(dataDir: string): Promise<number> {
  const file = await readPostmasterFile(join(dataDir, 'postgres'))
  return typeof file === 'object' ? file.pid : 0
}

export async function killServerOn(clusterDir: string): Promise<void> {
  for (const pid of await findPostgresOn(clusterDir)) signal(pid, 'SIGKILL')
}

/** `name: message` of the error that the promise ends with. */
export function messageOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'no error',
    (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error)),
  )
}

export const one = ({ connection }: Pick<DatabaseServer, 'connection'>) => ask(connection, 'SELECT 1 AS one')

export async function until(condition: () => boolean | Promise<boolean>, withinMs = 20_000): Promise<void> {
  for (const start = Date.now(); !(await condition()); await pause(10)) {
    if (Date.now() - start > withinMs) throw new Error(`did not happen within ${withinMs} ms: ${condition}`)
  }
}
