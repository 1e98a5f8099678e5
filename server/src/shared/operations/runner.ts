import { type AttemptParts, attempt, leaseMs } from './attempt.ts'
import { anyKeptWaiting, type Claimed, claimOperations, extendLease, removeExpired } from './claims.ts'
import type { WorkKind } from './kind.ts'

export interface OperationRunner {
  /** Looks for operations now. Resolves when none is due and those that this process has are over; nobody has to wait. */
  wake(): Promise<void>
  /** Takes no more, lets those at work come to the end of their step, and puts them back. Waits five seconds at most. */
  close(): Promise<void>
}

/** At work at once: in this process, and of one organisation in all processes. */
export const atOnceMax = 4
export const perOrganizationMax = 2
/** So long one is left at work while an organisation waits that has none. */
export const turnMs = 30_000
/** For what another process left; whoever begins an operation wakes the runner. */
const lookEveryMs = 1_000
const heartbeatEveryMs = 10_000
const expiredEveryMs = 10 * 60_000
const closeWithinMs = 5_000

interface AtWork {
  readonly claimed: Claimed
  readonly stop: AbortController
  readonly startedAt: number
  isToYield: boolean
}

/**
 * Carries operations on. Any number of processes may share one database. A worker that dies is replaced when its lease ends,
 * half a minute after it last said that it was there.
 */
export function createOperationRunner(parts: AttemptParts, kinds: readonly WorkKind[]): OperationRunner {
  const { database, clock, log } = parts
  const byType = new Map(kinds.map((kind) => [kind.type, kind]))
  const types = [...byType.keys()]
  const working = new Map<Promise<void>, AtWork>()
  let looking: Promise<void> | undefined
  let again = false
  let closed = false
  const timers = [
    setInterval(() => void wake(), lookEveryMs),
    setInterval(() => void beat(), heartbeatEveryMs),
    setInterval(() => void sweep(), expiredEveryMs),
  ]
  for (const timer of timers) timer.unref()

  async function wake(): Promise<void> {
    again = true
    looking ??= look().finally(() => {
      looking = undefined
      // Woken in the moment between the last look and now.
      if (again && !closed) void wake()
    })
    await looking
    while (working.size > 0) await Promise.race(working.keys())
  }

  async function look(): Promise<void> {
    while (again && !closed) {
      again = false
      try {
        await takeAll()
        await makeRoom()
      } catch (error) {
        log.debug({ err: error }, 'Operations could not be read from the database; looking again soon.')
      }
    }
  }

  async function takeAll(): Promise<void> {
    while (!closed && working.size < atOnceMax) {
      const count = atOnceMax - working.size
      const claim = { types, now: clock.now(), leaseMs, count, perOrganization: perOrganizationMax }
      const claimed = await claimOperations(database, claim)
      for (const one of claimed) start(one)
      if (claimed.length < count) return
    }
  }

  /**
   * Organisations with long work would keep all others waiting: at the end of its step one gives up its place, and goes on after
   * their turn. First one of an organisation that has two, else the longest at work.
   */
  async function makeRoom(): Promise<void> {
    const all = [...working.values()]
    if (all.length < atOnceMax || all.some(({ isToYield }) => isToYield)) return
    const now = clock.now()
    const placesOf = ({ claimed: { organizationId } }: AtWork) =>
      all.filter((other) => other.claimed.organizationId === organizationId).length
    const [chosen] = all
      .filter(({ startedAt }) => now - startedAt >= turnMs)
      .toSorted((a, b) => placesOf(b) - placesOf(a) || a.startedAt - b.startedAt)
    if (chosen && (await anyKeptWaiting(database, types, now))) chosen.isToYield = true
  }

  function start(claimed: Claimed): void {
    const stop = new AbortController()
    if (closed) stop.abort()
    const atWork: AtWork = { claimed, stop, startedAt: clock.now(), isToYield: false }
    const hold = { signal: stop.signal, isToYield: () => atWork.isToYield }
    const done: Promise<void> = attempt(parts, byType.get(claimed.type)!, claimed, hold).finally(() => {
      working.delete(done)
      // There is room for another one.
      if (!closed) void wake()
    })
    working.set(done, atWork)
  }

  /** Between steps, and in long ones, somebody has to say that the worker is there; and may learn that it is to stop. */
  async function beat(): Promise<void> {
    const all = [...working.values()].map(async ({ claimed, stop }) => {
      try {
        const status = await extendLease(database, claimed, clock.now() + leaseMs)
        if (status === undefined) stop.abort()
      } catch (error) {
        log.debug({ err: error }, 'A worker could not say that it is there.')
      }
    })
    await Promise.all(all)
  }

  async function sweep(): Promise<void> {
    try {
      await removeExpired(database, clock.now())
    } catch (error) {
      log.warn({ err: error }, 'Operations that have expired could not be removed; trying again in ten minutes.')
    }
  }

  return {
    wake,
    async close() {
      closed = true
      for (const timer of timers) clearInterval(timer)
      for (const { stop } of working.values()) stop.abort()
      let late: NodeJS.Timeout | undefined
      const deadline = new Promise<void>((resolve) => {
        late = setTimeout(resolve, closeWithinMs).unref()
      })
      await Promise.race([Promise.all([looking, ...working.keys()]), deadline])
      clearTimeout(late)
    },
  }
}
