import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../kernel/clock.ts'
import type { Database } from '../database/database.ts'
import type { Log } from '../log.ts'
import { dispatchBatch } from './dispatch.ts'
import type { Standings } from './standings.ts'

/**
 * Takes committed events out of the outbox: gives each its position, keeps it for the feed, and queues a delivery for every
 * subscription that it is for. One process at a time does so (an advisory lock), so that positions are in the order of commits
 * and a reader of the feed who is at one of them has missed nothing before it. An outbox that is polled by its sequence would
 * miss events: sequences are not drawn in the order of commits.
 */
export interface Dispatcher {
  /** Looks at once and then regularly: for events of other processes, and of those that died before they could wake anybody. */
  start(): void
  /** There is something in the outbox. Returns at once, and does nothing before `start`. */
  wake(): void
  /** Dispatches until the outbox is empty; for tests. */
  dispatchAll(): Promise<void>
  close(): Promise<void>
}

interface Parts {
  readonly database: Database
  readonly standings: Standings
  readonly clock: Clock
  readonly log: Log
  /** Told after each commit that queued deliveries, and whose. */
  onDeliveries(subscriptionIds: readonly string[]): void
}

/** The net under `wake`. Longer than an idle database should be asked, shorter than anybody would notice. */
const lookEveryMs = 1000
/** A turn holds one connection for some 20 ms; more at once would make the first delivery of a rush wait. */
const batchSize = 500
/** Under load a turn takes what came in so long, not one event each; alone, an event leaves at once. */
const turnMs = 10

export function createDispatcher({ onDeliveries, ...parts }: Parts): Dispatcher {
  const { log } = parts
  let working: Promise<void> | undefined
  let again = false
  let closed = false
  let timer: NodeJS.Timeout | undefined

  async function work(): Promise<void> {
    while (again && !closed) {
      again = false
      try {
        const { moved, subscriptionIds, unfinished } = await dispatchBatch(parts, batchSize)
        if (subscriptionIds.length > 0) onDeliveries(subscriptionIds)
        // Whoever is at it may not have seen what this process was woken for.
        if (unfinished) again = true
        if (again && moved < batchSize) await pause(turnMs)
      } catch (error) {
        log.warn({ err: error }, 'Events could not be taken out of the outbox; looking again soon.')
      }
    }
  }

  function wake(): void {
    if (timer === undefined || closed) return
    again = true
    working ??= work().finally(() => {
      working = undefined
      // Woken in the moment between the last look and now.
      if (again && !closed) wake()
    })
  }

  return {
    start() {
      timer ??= setInterval(wake, lookEveryMs).unref()
      wake()
    },
    wake,
    async dispatchAll() {
      for (;;) {
        const { moved, subscriptionIds, unfinished } = await dispatchBatch(parts, batchSize)
        if (subscriptionIds.length > 0) onDeliveries(subscriptionIds)
        if (moved === 0 && !unfinished) return
      }
    },
    async close() {
      closed = true
      clearInterval(timer)
      await working
    },
  }
}
