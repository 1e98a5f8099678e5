import { inFlightMax } from './delivery.ts'

/** Lets so many deliveries of one subscription be sent at once; the others wait here, in their order. */
export interface Gate {
  /** Resolves when it is the turn of a delivery of this subscription; false: it waited too long, and is not to be sent. */
  enter(subscriptionId: string, now: number): Promise<boolean>
  /** What was let in is over. */
  leave(subscriptionId: string): void
  /** Turns away those that have waited for `waitMsMax`. */
  clear(now: number, waitMsMax: number): void
}

interface Waiting {
  readonly since: number
  let(isIn: boolean): void
}

export function createGate(): Gate {
  const inside = new Map<string, number>()
  const queues = new Map<string, Waiting[]>()

  return {
    enter(subscriptionId, now) {
      const count = inside.get(subscriptionId) ?? 0
      if (count < inFlightMax) {
        inside.set(subscriptionId, count + 1)
        return Promise.resolve(true)
      }
      return new Promise((resolve) => {
        const queue = queues.get(subscriptionId) ?? []
        queues.set(subscriptionId, queue)
        queue.push({ since: now, let: resolve })
      })
    },
    leave(subscriptionId) {
      const queue = queues.get(subscriptionId)
      const next = queue?.shift()
      if (queue?.length === 0) queues.delete(subscriptionId)
      if (next) return next.let(true)
      const count = inside.get(subscriptionId)! - 1
      if (count === 0) inside.delete(subscriptionId)
      else inside.set(subscriptionId, count)
    },
    clear(now, waitMsMax) {
      for (const [subscriptionId, queue] of queues) {
        while (queue.length > 0 && now - queue[0]!.since >= waitMsMax) queue.shift()!.let(false)
        if (queue.length === 0) queues.delete(subscriptionId)
      }
    },
  }
}
