import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../../kernel/clock.ts'
import { Failure } from '../../../kernel/errors.ts'
import type { Database } from '../../../shared/database/database.ts'
import type { Log } from '../../../shared/log.ts'
import type { Settlement } from './delivery.ts'
import { type Settled, settleDeliveries } from './settle.ts'

/** Writes what became of deliveries, those together that end within a few milliseconds. */
export interface Settler {
  /** Resolves when it has been written or given up. Never rejects. */
  add(settlement: Settlement): Promise<void>
  /** Resolves when everything that was added has been written or given up. */
  idle(): Promise<void>
  /** Gives up what cannot be written at the first attempt: the database is away, and the process is about to be. */
  hurry(): void
}

interface Parts {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  /** Told of deliveries that are no longer under way, written or not. */
  onSettled(settlements: readonly Settlement[], settled: Settled): void
}

/** Whoever ends within it shares one commit; the receiver has its delivery and waits for nothing. */
const gatherMs = 2
const batchMax = 256
const tryAgainMs = 250

export function createSettler({ database, clock, log, onSettled }: Parts): Settler {
  let pending: Settlement[] = []
  let writing: Promise<void> | undefined
  let hurried = false
  const waiting = new Map<Settlement, () => void>()

  function add(settlement: Settlement): Promise<void> {
    pending.push(settlement)
    writing ??= writeAll().finally(() => {
      writing = undefined
    })
    return new Promise((resolve) => void waiting.set(settlement, resolve))
  }

  function tell(settlements: readonly Settlement[], settled: Settled): void {
    onSettled(settlements, settled)
    for (const settlement of settlements) {
      waiting.get(settlement)?.()
      waiting.delete(settlement)
    }
  }

  async function writeAll(): Promise<void> {
    while (pending.length > 0) {
      await pause(gatherMs)
      const batch = pending.splice(0, batchMax)
      try {
        tell(batch, await settleDeliveries(database, batch))
      } catch (error) {
        if (error instanceof Failure && !hurried) await putBack(batch)
        else await writeEach(batch, error)
      }
    }
  }

  /** The database is away. What was sent is remembered as long as the lease holds, lest it be sent again. */
  async function putBack(batch: readonly Settlement[]): Promise<void> {
    await pause(tryAgainMs)
    const now = clock.now()
    const isOver = ({ claimed }: Settlement) => Date.parse(claimed.leasedUntil) < now
    pending = [...batch.filter((one) => !isOver(one)), ...pending]
    giveUp(batch.filter(isOver), 'its lease ran out while the database was away')
  }

  /** Something in one of them is more than the database takes: the others must not wait for it. */
  async function writeEach(batch: readonly Settlement[], error: unknown): Promise<void> {
    if (hurried || batch.length === 1) return giveUp(batch, error)
    for (const settlement of batch) {
      try {
        tell([settlement], await settleDeliveries(database, [settlement]))
      } catch (cause) {
        giveUp([settlement], cause)
      }
    }
  }

  /** The lease brings them back. */
  function giveUp(settlements: readonly Settlement[], err: unknown): void {
    for (const { claimed } of settlements) {
      log.error({ err, deliveryId: claimed.deliveryId }, 'What became of a delivery could not be written.')
    }
    tell(settlements, { disabled: [] })
  }

  return {
    add,
    async idle() {
      await writing
    },
    hurry() {
      hurried = true
    },
  }
}
