import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../../kernel/clock.ts'
import type { Database } from '../../../shared/database/database.ts'
import type { Presence } from '../../../shared/database/presence.ts'
import type { Log } from '../../../shared/log.ts'
import type { Standings } from '../../../shared/outbox/standings.ts'
import type { SafeFetch } from '../../../shared/safe-fetch/safe-fetch.ts'
import type { Secrets } from '../../../shared/secrets.ts'
import type { DeliveryCategory } from '../delivery-schema.ts'
import { createAgenda } from './agenda.ts'
import { claimDeliveries } from './claim.ts'
import type { ClaimedDelivery, Settlement } from './delivery.ts'
import { createGate } from './gate.ts'
import { createLookout } from './lookout.ts'
import { released } from './outcome.ts'
import { sendDeliveries } from './send.ts'
import type { Settled } from './settle.ts'
import { createSettler } from './settler.ts'
import { createSigningSecrets } from './signing-secrets.ts'

export interface DeliveryWorker {
  /** Looks at once and then regularly: for what is due by now, what other processes queued, and what lost workers left. */
  start(): void
  /**
   * There are deliveries, of the subscriptions that are named or of any. Returns at once, and does nothing before `start`.
   */
  wake(subscriptionIds?: readonly string[]): void
  /** Sends until nothing is due; for tests. */
  deliverAll(): Promise<void>
  /** Takes no more, waits some seconds for what is under way, and puts back the rest, none of which counts as an attempt. */
  close(): Promise<void>
}

export interface DeliveryWorkerParts {
  readonly database: Database
  /** Under whose id deliveries are leased; it ends with its worker. */
  readonly presence: Presence
  readonly standings: Standings
  readonly secrets: Pick<Secrets, 'open'>
  readonly safeFetch: Pick<SafeFetch, 'fetch'>
  /** Counts attempts by what became of them. */
  readonly metrics: { webhookAttempted(category: DeliveryCategory, durationMs: number): void }
  readonly clock: Clock
  readonly log: Log
  /** How many deliveries may be leased at once; 512. */
  readonly slots?: number
  readonly closeWithinMs?: number
  readonly random?: () => number
}

/** The net under `wake`. */
const lookEveryMs = 1000
/** Taken at once: the first of them leaves when the last is claimed, some milliseconds later. */
const claimMax = 128
const askedMax = 128
/** Of events, as JSON, under way at once and claimed at once. */
const eventBytesMax = 64 * 1024 * 1024
const claimBytesMax = 8 * 1024 * 1024
/** Of what was leased ahead: its receiver has become slow, and the rights that it was made ready with are as old. */
const waitMsMax = 1000

/**
 * Sends what is in `portico.webhook_queue`, at least once (specification 6.5). Any number of workers may share one database; what
 * one has leased no other sends. No transaction is open while it waits for a receiver.
 */
export function createDeliveryWorker(parts: DeliveryWorkerParts): DeliveryWorker {
  const {
    database,
    presence,
    standings,
    secrets,
    safeFetch,
    metrics,
    clock,
    log,
    slots = 512,
    closeWithinMs = 5000,
  } = parts
  const { random = Math.random } = parts
  const gate = createGate()
  const signingSecrets = createSigningSecrets({ secrets, clock })
  const sending = { database, standings, signingSecrets, safeFetch, gate, clock, log, random }
  const agenda = createAgenda()
  const settler = createSettler({ database, clock, log, onSettled })
  /** Nothing is known yet of what became of them. */
  const unsettled = new Map<string, ClaimedDelivery>()
  const whenIdle: (() => void)[] = []
  const lookout = createLookout({ database, clock, log })
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> | undefined
  let mustLook = false
  let again = false
  let closed = false

  function wake(subscriptionIds?: readonly string[]): void {
    if (timer === undefined) return
    if (subscriptionIds) agenda.note(subscriptionIds)
    else mustLook = true
    work()
  }

  /** One turn at a time; a call during a turn makes one more. */
  function work(): void {
    again = true
    working ??= turns().finally(() => {
      working = undefined
      if (again && !closed) work()
      else tellIdle()
    })
  }

  async function turns(): Promise<void> {
    while (again && !closed) {
      again = false
      try {
        await presence.shown()
        if (mustLook) await look()
        while (!closed && (await claimSome()));
      } catch (error) {
        log.warn({ err: error }, 'Deliveries could not be claimed; looking again soon.')
        mustLook = timer !== undefined
      }
    }
  }

  async function look(): Promise<void> {
    mustLook = false
    gate.clear(clock.now(), waitMsMax)
    const { due, isUnfinished } = await lookout.look()
    agenda.note(due)
    mustLook ||= isUnfinished
  }

  /** Returns whether there may be more to claim at once. */
  async function claimSome(): Promise<boolean> {
    const now = clock.now()
    const count = Math.min(claimMax, slots - agenda.count)
    const bytes = Math.min(claimBytesMax, eventBytesMax - agenda.eventBytes)
    if (agenda.waiting === 0 || count === 0 || bytes <= 0) return false
    const asked = agenda.take(askedMax)
    try {
      const claimed = await claimDeliveries(database, {
        workerId: presence.id,
        subscriptionIds: asked,
        slowIds: agenda.slowIds(now),
        now,
        count,
        suspectCount: Math.max(0, Math.floor(slots / 2) - agenda.suspectCount(now)),
        eventBytesMax: bytes,
      })
      agenda.begin(claimed, now)
      for (const delivery of claimed.deliveries) unsettled.set(delivery.deliveryId, delivery)
      void sendDeliveries(sending, claimed.deliveries, settle)
    } catch (error) {
      agenda.note(asked)
      throw error
    }
    return true
  }

  /** What was put back when the worker was closed is not heard any more. */
  function settle(settlement: Settlement): Promise<void> {
    return unsettled.delete(settlement.claimed.deliveryId) ? settler.add(settlement) : Promise.resolve()
  }

  function onSettled(settlements: readonly Settlement[], { disabled }: Settled): void {
    for (const { claimed, attempt } of settlements) {
      agenda.end(claimed)
      if (attempt) metrics.webhookAttempted(attempt.category, attempt.durationMs)
    }
    for (const { subscriptionId, reason } of disabled) {
      log.warn({ subscriptionId, reason }, 'A webhook subscription was disabled.')
    }
    if (disabled.length > 0) mustLook = true
    if (!closed) work()
    else tellIdle()
  }

  function isIdle(): boolean {
    return working === undefined && agenda.count === 0
  }

  function tellIdle(): void {
    if (isIdle()) for (const told of whenIdle.splice(0)) told()
  }

  function idle(): Promise<void> {
    return new Promise((resolve) => {
      whenIdle.push(resolve)
      tellIdle()
    })
  }

  return {
    start() {
      timer ??= setInterval(() => wake(), lookEveryMs).unref()
      wake()
    },
    wake,
    deliverAll() {
      mustLook = true
      work()
      return idle()
    },
    async close() {
      closed = true
      clearInterval(timer)
      gate.clear(clock.now(), 0)
      const late = new AbortController()
      await Promise.race([idle(), pause(closeWithinMs, undefined, { signal: late.signal }).catch(() => {})])
      late.abort()
      const at = clock.now()
      for (const claimed of unsettled.values()) void settle(released(claimed, { at, dueAt: at }))
      settler.hurry()
      await settler.idle()
      await presence.close()
    },
  }
}
