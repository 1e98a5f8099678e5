import type { StoredEvent } from '../../../shared/outbox/stored-event.ts'
import type { DeliveryCategory, DeliveryView } from '../delivery-schema.ts'

/** One attempt, as the contract shows it and `attempts` of a delivery keeps it. */
export type Attempt = DeliveryView['attempts'][number]

/** How many attempts a delivery keeps: the last ones. */
export const attemptsKept = 20

/** How many deliveries of one subscription are sent at once, by all workers together. */
export const inFlightMax = 8

/** How many a worker may lease of one whose receiver is well, when no other worker has any of it. */
export const leasedAheadMax = 32

/** After so many failures without a success a receiver is suspected of making others wait. */
export const suspectAfterFailures = 3

/**
 * Three times what a request may take: a worker that lives has settled by then, and one that is lost is noticed in less than a
 * minute.
 */
export const leaseMs = 45_000

/** A delivery that was leased so often and never came to an end takes its workers down, and is given up. */
export const leasesMax = 30

/** A subscription, as far as sending takes it. */
export interface Destination {
  readonly organizationId: string
  readonly subscriptionId: string
  readonly appId: string
  readonly keyId: string
  readonly destinationUrl: string
  readonly secretSealed: Buffer
  readonly previousSecretSealed: Buffer | null
  /** ISO 8601. */
  readonly previousSecretExpiresAt: string | null
  readonly consecutiveFailures: number
  readonly lastSuccessAt: string | null
}

/** A delivery that a worker has, until its lease is over. */
export interface ClaimedDelivery {
  readonly deliveryId: string
  readonly destination: Destination
  /** Null: the event was removed after its 30 days, before somebody asked for one more attempt. */
  readonly event: StoredEvent | null
  /** How large the data of the event is, as JSON. */
  readonly eventBytes: number
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly trigger: Attempt['trigger']
  /** Together they tell this lease from every other one of the delivery. ISO 8601. */
  readonly leaseNumber: number
  readonly leasedUntil: string
  readonly leasedBy: string
}

/** What is to be written of a delivery that was claimed. */
export interface Settlement {
  readonly claimed: ClaimedDelivery
  /**
   * `delivered` and `failed` are over. `again`: it is due once more at `dueAt`. `released`: the same, as if it had never been
   * leased. An attempt that was made counts and is kept.
   */
  readonly outcome: 'delivered' | 'failed' | 'again' | 'released'
  /** Of one that is over. */
  readonly category: DeliveryCategory | null
  readonly attempt: Attempt | null
  /** Milliseconds since the epoch, as `at`. */
  readonly dueAt: number | null
  readonly at: number
}
