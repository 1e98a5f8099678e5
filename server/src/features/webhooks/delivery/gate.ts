import { inFlightMax } from './delivery.ts'

/**
 * Lets so many deliveries of one subscription be sent at once; the others wait here, in their order. As many again may be
 * answered and not written yet: waiting for that as well would let a fast receiver stand still while the database syncs, and
 * with no bound a killed worker would send any number twice.
 */
export interface Gate {
  /** Resolves when it is the turn of a delivery of this subscription; false: it waited too long, and is not to be sent. */
  enter(subscriptionId: string, now: number): Promise<boolean>
  /** What was let in has its answer. */
  answered(subscriptionId: string): void
  /** What was let in is over, and that is written. */
  leave(subscriptionId: string): void
  /** Turns away those that have waited for `waitMsMax`. */
  clear(now: number, waitMsMax: number): void
}

interface Waiting {
  readonly since: number
  let(isIn: boolean): void
}

interface Inside {
  sending: number
  answered: number
}

export function createGate(): Gate {
  const inside = new Map<string, Inside>()
  const queues = new Map<string, Waiting[]>()
  const hasRoom = ({ sending, answered }: Inside) => sending < inFlightMax && sending + answered < 2 * inFlightMax

  function letIn(subscriptionId: string, places: Inside): void {
    const queue = queues.get(subscriptionId)
    while (queue && queue.length > 0 && hasRoom(places)) {
      places.sending++
      queue.shift()!.let(true)
    }
    if (queue?.length === 0) queues.delete(subscriptionId)
    if (places.sending + places.answered === 0) inside.delete(subscriptionId)
  }

  return {
    enter(subscriptionId, now) {
      const places = inside.get(subscriptionId) ?? { sending: 0, answered: 0 }
      inside.set(subscriptionId, places)
      if (hasRoom(places)) {
        places.sending++
        return Promise.resolve(true)
      }
      return new Promise((resolve) => {
        const queue = queues.get(subscriptionId) ?? []
        queues.set(subscriptionId, queue)
        queue.push({ since: now, let: resolve })
      })
    },
    answered(subscriptionId) {
      const places = inside.get(subscriptionId)!
      places.sending--
      places.answered++
      letIn(subscriptionId, places)
    },
    leave(subscriptionId) {
      const places = inside.get(subscriptionId)!
      places.answered--
      letIn(subscriptionId, places)
    },
    clear(now, waitMsMax) {
      for (const [subscriptionId, queue] of queues) {
        while (queue.length > 0 && now - queue[0]!.since >= waitMsMax) queue.shift()!.let(false)
        if (queue.length === 0) queues.delete(subscriptionId)
      }
    },
  }
}
