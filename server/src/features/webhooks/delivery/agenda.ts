import type { Claimed } from './claim.ts'
import { type ClaimedDelivery, leasedAheadMax, suspectAfterFailures } from './delivery.ts'

/**
 * What a worker has under way, and whose deliveries it will look for next. Subscriptions take turns: who was served goes to the
 * end.
 */
export interface Agenda {
  /** There may be something due for them. */
  note(subscriptionIds: Iterable<string>): void
  /** The next that are to be asked for; they are noted no more. */
  take(countMax: number): string[]
  /** Puts the result of a claim for `asked` on the agenda. */
  begin(claimed: Claimed, now: number): void
  /** The delivery is under way no more. */
  end(delivery: ClaimedDelivery): void
  /** Those whose receivers let something wait. */
  slowIds(now: number): string[]
  /** How many subscriptions are noted. */
  readonly waiting: number
  /** How many deliveries are under way. */
  readonly count: number
  /** Of receivers that fail or are slow. */
  suspectCount(now: number): number
  readonly eventBytes: number
}

/** A receiver that takes longer is slow: most answer in a tenth of it. */
const slowAfterMs = 1000

interface UnderWay {
  readonly claimed: ClaimedDelivery
  readonly since: number
}

export function createAgenda(): Agenda {
  const noted = new Set<string>()
  /** Have more, and may have it when one of theirs has ended. */
  const full = new Set<string>()
  /** Have more, and were left out for want of places; served when any delivery has ended. */
  const leftOut = new Set<string>()
  const underWay = new Map<string, UnderWay>()
  const countOf = new Map<string, number>()
  let eventBytes = 0

  const isSlow = ({ since }: UnderWay, now: number) => now - since > slowAfterMs
  const idOf = ({ claimed }: UnderWay) => claimed.destination.subscriptionId

  return {
    note(subscriptionIds) {
      for (const id of subscriptionIds) noted.add(id)
    },
    take(countMax) {
      const taken = [...noted.values().take(countMax)]
      for (const id of taken) noted.delete(id)
      return taken
    },
    begin({ deliveries, unfinished }, now) {
      for (const claimed of deliveries) {
        const { subscriptionId } = claimed.destination
        underWay.set(claimed.deliveryId, { claimed, since: now })
        countOf.set(subscriptionId, (countOf.get(subscriptionId) ?? 0) + 1)
        eventBytes += claimed.eventBytes
      }
      for (const [id, { isFull }] of unfinished) {
        if (!isFull) leftOut.add(id)
        // What is under way elsewhere is not heard of; the next look finds what it leaves.
        else if (countOf.has(id)) full.add(id)
      }
    },
    end({ deliveryId, destination: { subscriptionId }, eventBytes: bytes }) {
      if (!underWay.delete(deliveryId)) return
      eventBytes -= bytes
      const count = countOf.get(subscriptionId)! - 1
      if (count === 0) countOf.delete(subscriptionId)
      else countOf.set(subscriptionId, count)
      // A claim for one or two costs as much as a claim for sixteen.
      if (count < leasedAheadMax / 2 && full.delete(subscriptionId)) noted.add(subscriptionId)
      for (const id of leftOut) noted.add(id)
      leftOut.clear()
    },
    slowIds: (now) => [...new Set([...underWay.values()].filter((one) => isSlow(one, now)).map(idOf))],
    suspectCount(now) {
      const slow = new Set(this.slowIds(now))
      const isSuspect = (one: UnderWay) =>
        one.claimed.destination.consecutiveFailures >= suspectAfterFailures || slow.has(idOf(one))
      return [...underWay.values()].filter(isSuspect).length
    },
    get waiting() {
      return noted.size
    },
    get count() {
      return underWay.size
    },
    get eventBytes() {
      return eventBytes
    },
  }
}
