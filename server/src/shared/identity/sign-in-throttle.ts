import { createHash } from 'node:crypto'
import { BlockList, isIP } from 'node:net'
import sql from 'sql-template-tag'
import type { Clock } from '../../kernel/clock.ts'
import { fail } from '../../kernel/errors.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { Database } from '../database/database.ts'
import { networkOf } from './visitors.ts'

/**
 * Slows down guessing passwords and codes: failures are counted for each account and for each address, in the database,
 * so that every process counts the same.
 *
 * An attempt is counted as a failure before it is looked at, and taken back when it was none: of sixteen guesses at once
 * no more are looked at than of sixteen in a row. What is refused is not counted, so the wait that was announced is the
 * wait there is, and nobody is locked out for longer than 15 minutes.
 */
export interface SignInThrottle {
  /**
   * Runs `verify` unless this account or this address has failed too often of late; then 429 `sign_in_throttled` with
   * Retry-After. Undefined from `verify` is a failure and counts; anything else clears what the account had failed. Where
   * `verify` throws, nothing is counted and nothing is cleared.
   *
   * @param attempt.realm `builders`, or the id of the organisation whose user signs in
   * @param attempt.account what was claimed, for instance the email address; need not exist
   */
  guard<T>(attempt: Attempt, verify: () => Promise<T | undefined>): Promise<T | undefined>
}

export interface Attempt {
  readonly realm: string
  readonly account: string
  readonly address: string
}

/**
 * Failures that cost nothing, by what they are counted for. The account as a whole, because guesses may come from many
 * addresses; the address as a whole, because it may try one password on many accounts.
 */
const freeFailures = { pair: 5, account: 20, network: 100 } as const
type Kind = keyof typeof freeFailures

/** Failures within the free ones are forgotten after this time without another one. */
const quietMs = 15 * 60_000
/** The others after a day: a guesser who waits does not start anew. */
const forgottenAfterMs = 24 * 60 * 60_000
/** The first wait; each further failure doubles it, up to the longest. */
const firstWaitMs = 30_000
const longestWaitMs = 15 * 60_000
/**
 * From where somebody has signed in with the account, guesses of others from elsewhere do not keep them out: only what
 * they fail there themselves counts.
 */
const trustedForMs = 30 * 24 * 60 * 60_000

interface Counter {
  readonly failures: number
  /** ISO 8601. */
  readonly failedAt: string | null
  readonly succeededAt: string | null
}

/** A counter as it was before this attempt was added to it. */
interface Charge extends Counter {
  readonly key: Buffer
  readonly kind: Kind
}

export function createSignInThrottle({
  database,
  clock,
  knowsProxies,
}: {
  readonly database: Database
  readonly clock: Clock
  /** Has the operator named the proxies in front of the service? Then an address is that of a client. */
  readonly knowsProxies: boolean
}): SignInThrottle {
  const inSystem = <T>(work: (tx: Tx) => Promise<T>) => database.as('portico_system', work)
  return {
    async guard(attempt, verify) {
      const now = clock.now()
      const countsNetwork = knowsProxies || !isPrivate(attempt.address)
      const keys = keysOf(attempt).filter(({ kind }) => kind !== 'network' || countsNetwork)
      const charges = await inSystem((tx) => charge(tx, keys, now))
      let proven: Awaited<ReturnType<typeof verify>>
      try {
        proven = await verify()
      } catch (error) {
        await inSystem((tx) => takeBack(tx, charges, now))
        throw error
      }
      if (proven !== undefined) await inSystem((tx) => settle(tx, charges, now))
      return proven
    },
  }
}

/** Counters that nobody asks for any more. Runs hourly. */
export async function removeOldSignInCounters(database: Database, now: number): Promise<void> {
  await database.as('portico_system', (tx) =>
    tx.rows(sql`DELETE FROM portico.sign_in_counter
      WHERE coalesce(failed_at < ${iso(now - forgottenAfterMs)}, true)
        AND coalesce(succeeded_at < ${iso(now - trustedForMs)}, true)`),
  )
}

/** Addresses that lead nowhere outside (RFC 6890): this machine, or a network of the operator's. */
const privateNetworks = new BlockList()
for (const network of [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '100.64.0.0/10',
]) {
  const [address, prefix] = network.split('/')
  privateNetworks.addSubnet(address!, Number(prefix), 'ipv4')
}
privateNetworks.addAddress('::1', 'ipv6')
privateNetworks.addSubnet('fc00::', 7, 'ipv6')
privateNetworks.addSubnet('fe80::', 10, 'ipv6')

/**
 * May this be the address of a proxy that nobody has named? Then it stands for all of its clients, and a hundred guesses of
 * one would keep everybody out. Guesses at one account count from there as from anywhere.
 */
function isPrivate(address: string): boolean {
  const family = isIP(address)
  return family !== 0 && privateNetworks.check(address, family === 6 ? 'ipv6' : 'ipv4')
}

/** Sorted, so that attempts that share counters lock them in one order. */
function keysOf({ realm, account, address }: Attempt): readonly { readonly kind: Kind; readonly key: Buffer }[] {
  const network = networkOf(address)
  const name = account.toLowerCase()
  const keys = [
    { kind: 'pair', key: keyOf('pair', realm, name, network) },
    { kind: 'account', key: keyOf('account', realm, name) },
    { kind: 'network', key: keyOf('network', network) },
  ] as const
  return keys.toSorted((a, b) => Buffer.compare(a.key, b.key))
}

function keyOf(...parts: readonly string[]): Buffer {
  return createHash('sha256').update(JSON.stringify(parts)).digest()
}

/** Counts an attempt as failed, or refuses it. */
async function charge(tx: Tx, keys: ReturnType<typeof keysOf>, now: number): Promise<Charge[]> {
  const charges: Charge[] = []
  for (const { kind, key } of keys) {
    const [counter] = await tx.rows<Counter>(sql`
      INSERT INTO portico.sign_in_counter AS c (counter_key) VALUES (${key})
      ON CONFLICT (counter_key) DO UPDATE SET failures = c.failures
      RETURNING failures, failed_at AS "failedAt", succeeded_at AS "succeededAt"`)
    charges.push({ kind, key, ...counter!, failures: rememberedFailures(kind, counter!, now) })
  }
  const waitMs = longestWait(charges, now)
  if (waitMs > 0) throw fail('sign_in_throttled', { retryAfterSeconds: waitMs / 1000 })
  await Promise.all(
    charges.map(({ key, failures }) =>
      tx.rows(sql`UPDATE portico.sign_in_counter SET failures = ${failures + 1}, failed_at = ${iso(now)}
        WHERE counter_key = ${key}`),
    ),
  )
  return charges
}

function rememberedFailures(kind: Kind, { failures, failedAt }: Counter, now: number): number {
  if (failedAt === null) return 0
  const keptForMs = failures < freeFailures[kind] ? quietMs : forgottenAfterMs
  return now - Date.parse(failedAt) < keptForMs ? failures : 0
}

/** Milliseconds until another attempt is looked at; 0: it may be now. */
function longestWait(charges: readonly Charge[], now: number): number {
  const isTrusted = charges.some(
    ({ kind, succeededAt }) => kind === 'pair' && succeededAt !== null && now - Date.parse(succeededAt) < trustedForMs,
  )
  const waits = charges.map(({ kind, failures, failedAt }) => {
    const excess = failures - freeFailures[kind]
    if (excess < 0 || failedAt === null || (kind === 'account' && isTrusted)) return 0
    const waitMs = Math.min(firstWaitMs * 2 ** excess, longestWaitMs)
    return Date.parse(failedAt) + waitMs - now
  })
  return Math.max(0, ...waits)
}

/** Undoes `charge`: the count, and the time, unless somebody else has failed since. */
async function takeBack(tx: Tx, charges: readonly Charge[], now: number): Promise<void> {
  for (const { key, failedAt } of charges) {
    await tx.rows(sql`UPDATE portico.sign_in_counter SET failures = greatest(failures - 1, 0),
        failed_at = CASE WHEN failed_at = ${iso(now)} THEN ${failedAt}::timestamptz ELSE failed_at END
      WHERE counter_key = ${key}`)
  }
}

/** After a success the account starts anew. The address does not: one good account there must not pay for guesses at others. */
async function settle(tx: Tx, charges: readonly Charge[], now: number): Promise<void> {
  await takeBack(tx, charges, now)
  for (const { key, kind } of charges) {
    if (kind === 'network') continue
    await tx.rows(sql`UPDATE portico.sign_in_counter SET failures = 0, failed_at = NULL, succeeded_at = ${iso(now)}
      WHERE counter_key = ${key}`)
  }
}

function iso(time: number): string {
  return new Date(time).toISOString()
}
