import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { freePort, makeRoot, removeRoot, ServiceProcess } from '../support/service.ts'
import { type Attempt, type DealsAt, findAll, settleUnknown, startWriters } from './client.ts'
import { Ledger } from './ledger.ts'

/**
 * Rounds of misfortune on one data directory. In each, eight writers create records while something is killed; then every
 * record is held against what the writers were told. `problems` is empty where the service kept its promises.
 */
const writerCount = 8

export interface Round {
  readonly acknowledged: number
  /** Creations without a conclusive answer, and how many of them turned out to have been done. */
  readonly unknown: number
  readonly unknownDone: number
  readonly problems: readonly string[]
}

export interface KillRound extends Round {
  /** From the start of the next process until it answered that it is ready. */
  readonly readyMs: number
}

export interface DatabaseRound extends Round {
  /** From the kill until the first refusal, and until the next creation succeeded. */
  readonly refusedAfterMs: number
  readonly recoveredAfterMs: number
  /** The longest that a client waited for a refusal. */
  readonly slowestRefusalMs: number
  readonly refusals: number
}

export interface TermRound extends Round {
  readonly endedAfterMs: number
  readonly brokenAnswers: number
  readonly code: number | null
}

export class Proving {
  readonly #root: string
  readonly #port: number
  readonly #runId = crypto.randomUUID().slice(0, 8)
  readonly #ledgers: Ledger[] = []
  #service: ServiceProcess
  #at: DealsAt

  private constructor(root: string, port: number, service: ServiceProcess, at: DealsAt) {
    this.#root = root
    this.#port = port
    this.#service = service
    this.#at = at
  }

  /** Starts a service on an empty data directory. */
  static async begin(): Promise<Proving> {
    const root = await makeRoot()
    const port = await freePort()
    const service = start(root, port)
    await service.untilReady()
    const { baseUrl, apps } = await service.demo()
    const token = apps[0]!.organizations[0]!.credentials.live
    return new Proving(root, port, service, { baseUrl, saasAppId: apps[0]!.saasAppId, token })
  }

  async end(): Promise<void> {
    await this.#service.stop()
    await removeRoot(this.#root)
  }

  /** kill -9 of the service; PostgreSQL stays, and the next service takes it over. */
  async killService(): Promise<KillRound> {
    const ledger = this.#newLedger()
    const databasePid = await this.#service.databasePid()
    const writers = startWriters(this.#at, ledger, writerCount)
    await untilBusy(ledger)
    await pause(Math.random() * 500)
    this.#service.signal('SIGKILL')
    await Promise.all([this.#service.ended, writers.stop()])
    const readyMs = await this.#startAgain()
    const problems: string[] = []
    if ((await this.#service.databasePid()) !== databasePid) problems.push('PostgreSQL was not taken over')
    return { ...(await this.#settle(ledger, problems)), readyMs }
  }

  /** kill -9 of PostgreSQL's postmaster; the service stays, refuses politely, and brings it back. */
  async killDatabase(): Promise<DatabaseRound> {
    const ledger = this.#newLedger()
    const writers = startWriters(this.#at, ledger, writerCount)
    await untilBusy(ledger)
    const killedAt = performance.now()
    const databasePid = await this.#service.databasePid()
    process.kill(databasePid, 'SIGKILL')
    const recovered = await this.#untilRecovered(writers.attempts, databasePid)
    await writers.stop()
    const problems: string[] = []
    const refusals = writers.attempts.filter((attempt) => attempt.endedAt > killedAt && attempt.result !== 201)
    for (const { result, code, retryAfter } of refusals) {
      if (result !== 503 || !(Number(retryAfter) >= 1)) {
        problems.push(`answered ${result} ${code ?? ''} with Retry-After ${retryAfter}`)
      }
    }
    if (recovered === undefined) problems.push('did not recover within 30 s')
    if (!this.#service.isRunning) problems.push('the service ended')
    return {
      ...(await this.#settle(ledger, problems)),
      refusedAfterMs: Math.min(...refusals.map((attempt) => attempt.endedAt)) - killedAt,
      recoveredAfterMs: (recovered ?? Number.NaN) - killedAt,
      slowestRefusalMs: Math.max(...refusals.map((attempt) => attempt.endedAt - Math.max(attempt.startedAt, killedAt))),
      refusals: refusals.length,
    }
  }

  /** SIGTERM: everything that was accepted is answered, then the process ends. */
  async terminate(): Promise<TermRound> {
    const ledger = this.#newLedger()
    const writers = startWriters(this.#at, ledger, writerCount)
    await untilBusy(ledger)
    const signalledAt = performance.now()
    this.#service.signal('SIGTERM')
    const { code } = await this.#service.ended
    const endedAfterMs = performance.now() - signalledAt
    await writers.stop()
    const broken = writers.attempts.filter(({ result }) => typeof result === 'string' && result !== 'ECONNREFUSED')
    const problems = broken.map(({ result }) => `an answer was broken: ${result}`)
    if (code !== 0) problems.push(`the process ended with code ${code}: ${this.#service.output}`)
    await this.#startAgain()
    return { ...(await this.#settle(ledger, problems)), endedAfterMs, brokenAnswers: broken.length, code }
  }

  /** Everything that any round wrote is still there. */
  async recheck(): Promise<string[]> {
    const problems: string[] = []
    for (const ledger of this.#ledgers) problems.push(...ledger.compare(await findAll(this.#at, ledger.prefix)))
    return problems
  }

  #newLedger(): Ledger {
    const ledger = new Ledger(`${this.#runId}-${this.#ledgers.length + 1}`)
    this.#ledgers.push(ledger)
    return ledger
  }

  async #startAgain(): Promise<number> {
    this.#service = start(this.#root, this.#port)
    return this.#service.untilReady()
  }

  /**
   * When the first creation that was begun under another PostgreSQL succeeded. Backends outlive their postmaster by a
   * moment, so a success alone means nothing.
   */
  async #untilRecovered(attempts: readonly Attempt[], killedPid: number): Promise<number | undefined> {
    const givenUpAt = performance.now() + 30_000
    let restartedAt = Number.POSITIVE_INFINITY
    while (performance.now() < givenUpAt) {
      const pid = await this.#service.databasePid().catch(() => killedPid)
      if (pid > 0 && pid !== killedPid) restartedAt = Math.min(restartedAt, performance.now())
      const recovered = attempts.find((attempt) => attempt.startedAt > restartedAt && attempt.result === 201)
      if (recovered) return recovered.endedAt
      await pause(10)
    }
    return undefined
  }

  async #settle(ledger: Ledger, problems: readonly string[]): Promise<Round> {
    const unknown = ledger.with('unknown').length
    // Before anything is repeated: what was acknowledged is there, what was refused is not, nothing is there twice.
    const before = ledger.compare(await findAll(this.#at, ledger.prefix))
    const unknownDone = await settleUnknown(this.#at, ledger)
    const after = ledger.compare(await findAll(this.#at, ledger.prefix))
    return {
      acknowledged: ledger.with('acknowledged').length - unknown,
      unknown,
      unknownDone,
      problems: [...new Set([...problems, ...before, ...after])],
    }
  }
}

function start(root: string, port: number): ServiceProcess {
  return new ServiceProcess({ dataDir: join(root, 'data'), port, env: { PORTICO_RATE_LIMIT_SCALE: '0' } })
}

/** A kill proves something only when there is something to lose. */
async function untilBusy(ledger: Ledger): Promise<void> {
  const since = performance.now()
  while (ledger.with('acknowledged').length < 100) {
    if (performance.now() - since > 20_000) throw new Error('The writers do not get on.')
    await pause(10)
  }
}
