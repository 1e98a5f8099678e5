import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import type { BaselineOptions } from './baseline.ts'
import type { LoadPlan, LoadResult } from './load.ts'

/** The processes of a run: the service as anybody starts it, the baseline, the load client. They end with their scope. */
export interface Contestant extends AsyncDisposable {
  readonly port: number
}

const file = (path: string) => new URL(path, import.meta.url)

/** The real service: its `main.ts`, with limits high enough not to bite, so that counting is still paid for. */
export async function startService(
  connection: ConnectionSettings,
  dataDir: string,
  nodeOptions: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Contestant> {
  const { host, port: databasePort, user, password, database } = connection
  const port = await freePort()
  const child = fork(file('../src/main.ts'), {
    execArgv: [...nodeOptions],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      ...process.env,
      DATABASE_URL: `postgres://${user}:${password}@localhost:${databasePort}/${database}?host=${encodeURIComponent(host)}`,
      PORTICO_PORT: String(port),
      PORTICO_DATA_DIR: dataDir,
      PORTICO_DEMO: 'off',
      PORTICO_RATE_LIMIT_SCALE: '900000',
      ...env,
    },
  })
  await ready(child, port)
  return { port, [Symbol.asyncDispose]: () => stop(child) }
}

export async function startBaseline(options: BaselineOptions): Promise<Contestant> {
  const child = fork(file('./baseline.ts'))
  child.send(options)
  const { port } = (await replyOf(child)) as { port: number }
  return { port, [Symbol.asyncDispose]: () => stop(child) }
}

export interface LoadClient extends AsyncDisposable {
  run(plan: LoadPlan): Promise<LoadResult>
}

export function startLoadClient(): LoadClient {
  const child = fork(file('./load.ts'))
  return {
    async run(plan) {
      child.send(plan)
      return (await replyOf(child)) as LoadResult
    },
    [Symbol.asyncDispose]: () => stop(child),
  }
}

async function replyOf(child: ChildProcess): Promise<unknown> {
  const settled = new AbortController()
  const ended = once(child, 'exit', settled).then(() => {
    throw new Error('A process of the benchmark ended; see above.')
  })
  try {
    const [reply] = await Promise.race([once(child, 'message', settled), ended])
    return reply
  } finally {
    ended.catch(() => {})
    settled.abort()
  }
}

async function ready(child: ChildProcess, port: number): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    if (child.exitCode !== null) throw new Error('The service did not start; see above.')
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined)
    if (answer?.ok) return
    if (attempt === 200) throw new Error('The service is not ready after 10 s.')
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  return port
}
