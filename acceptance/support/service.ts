import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Demo } from './demo.ts'

/** The service as a process of its own: started on a free port and a data directory, watched, stopped, killed. */
const main = resolve(import.meta.dirname, '../../server/src/main.ts')
const readyWithinMs = 60_000

export interface ServiceOptions {
  readonly dataDir: string
  readonly port: number
  readonly env?: Readonly<Record<string, string>>
}

export class ServiceProcess {
  readonly baseUrl: string
  readonly dataDir: string
  readonly pid: number
  /** Resolves when the process has ended. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>
  readonly #child: ChildProcess
  #output = ''

  constructor({ dataDir, port, env = {} }: ServiceOptions) {
    this.dataDir = dataDir
    this.baseUrl = `http://127.0.0.1:${port}`
    this.#child = spawn(process.execPath, [main], {
      env: { ...inherited(), PORTICO_DATA_DIR: dataDir, PORTICO_PORT: String(port), PORTICO_LOG_LEVEL: 'warn', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.pid = this.#child.pid ?? 0
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (chunk) => {
        this.#output = (this.#output + chunk).slice(-20_000)
      })
    }
    this.ended = once(this.#child, 'exit').then(([code, signal]) => ({ code, signal }))
  }

  /** The end of what it printed. */
  get output(): string {
    return this.#output
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Resolves to the milliseconds that it took until requests were welcome. */
  async untilReady(): Promise<number> {
    const started = performance.now()
    while (this.isRunning) {
      const elapsedMs = performance.now() - started
      const answer = await fetch(`${this.baseUrl}/readyz`).catch(() => undefined)
      await answer?.body?.cancel()
      if (answer?.ok) return performance.now() - started
      if (elapsedMs > readyWithinMs) break
      await pause(5)
    }
    throw new Error(`The service did not become ready. It said:\n${this.#output}`)
  }

  async demo(): Promise<Demo> {
    return JSON.parse(await readFile(join(this.dataDir, 'demo.json'), 'utf8'))
  }

  /** The process of its embedded PostgreSQL. */
  async databasePid(): Promise<number> {
    const home = await readFile(join(this.dataDir, 'postgres.location'), 'utf8').catch(() => this.dataDir)
    return Number((await readFile(join(home.trim(), 'postgres', 'postmaster.pid'), 'utf8')).split('\n')[0])
  }

  signal(name: 'SIGTERM' | 'SIGKILL'): void {
    this.#child.kill(name)
  }

  async stop(): Promise<void> {
    if (this.isRunning) this.signal('SIGTERM')
    await this.ended
  }
}

/** Nothing that is set for another service may reach this one. */
function inherited(): Record<string, string | undefined> {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(PORTICO_|DATABASE_URL$|NODE_ENV$|VITEST)/.test(name),
  )
  return Object.fromEntries(entries)
}

/** A folder for data directories; PostgreSQL's account has to pass through when root makes it. */
export async function makeRoot(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'pacc-'))
  await chmod(root, 0o711)
  return root
}

export async function removeRoot(root: string): Promise<void> {
  await rm(root, { recursive: true, force: true, maxRetries: 5 })
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no TCP port')
  return address.port
}
