import { createHash } from 'node:crypto'
import sql from 'sql-template-tag'
import type { AnyCaller } from '../kernel/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { fail } from '../kernel/errors.ts'
import type { Idempotency, StoredResponse } from '../kernel/exchange.ts'
import type { Secrets } from './secrets.ts'

/** How long an answer is replayed (contract 0). The table keeps it a little longer and drops it by partition. */
export const idempotencyKeptMs = 24 * 60 * 60 * 1000

interface KeptRow extends StoredResponse {
  readonly request_hash: Buffer
  /** In place of the payload, where the answer holds a secret. */
  readonly sealed: Buffer | null
}

/**
 * Answers by idempotency key, kept in the transaction of the change that they answer for, so that a crash leaves both or
 * neither. Keys belong to the organisation and to whoever sent them: the user, or the credential that acts without one.
 *
 * Only answers of transactions that committed are kept. A request that failed wrote nothing, so its repetition may run.
 */
export function createIdempotency(parts: { readonly clock: Clock; readonly secrets: Secrets }): Idempotency {
  const { clock, secrets } = parts
  return {
    async claim(tx, caller, key, fingerprint) {
      const since = new Date(clock.now() - idempotencyKeptMs).toISOString()
      // Two statements, because each has a snapshot of its own: the look-up must see what the last holder of the lock
      // committed. Issued in one turn they leave in one write and run in order.
      const [[lock], [kept]] = await Promise.all([
        tx.rows<{ held: boolean }>(sql`SELECT pg_try_advisory_xact_lock(${lockOf(caller, key)}) AS held`),
        tx.rows<KeptRow>(sql`SELECT request_hash, status, headers, payload, sealed FROM portico.idempotency_key
          WHERE tenant_id = ${caller.tenantId} AND principal = ${caller.actor.id} AND key = ${key}
            AND created_at > ${since}
          ORDER BY created_at DESC LIMIT 1`),
      ])
      if (!lock?.held) throw fail('idempotency_in_progress')
      if (!kept) return undefined
      if (!kept.request_hash.equals(hashOf(fingerprint))) throw fail('idempotency_key_reused')
      const payload = kept.sealed ? (await secrets.open(kept.sealed, sealedFor(caller, key))).toString() : kept.payload
      return { status: kept.status, headers: kept.headers, payload }
    },

    async keep(tx, caller, key, fingerprint, response) {
      // What is left of a budget belongs to a moment, not to an answer.
      const { ratelimit: _, 'ratelimit-policy': __, ...headers } = response.headers
      const sealed = response.confidential ? await secrets.seal(response.payload, sealedFor(caller, key)) : null
      const payload = sealed === null ? response.payload : ''
      await tx.rows(sql`INSERT INTO portico.idempotency_key
          (tenant_id, principal, key, created_at, request_hash, status, headers, payload, sealed)
        VALUES (${caller.tenantId}, ${caller.actor.id}, ${key}, ${new Date(clock.now()).toISOString()},
          ${hashOf(fingerprint)}, ${response.status}, ${JSON.stringify(headers)}, ${payload}, ${sealed})`)
    },
  }
}

function sealedFor(caller: AnyCaller, key: string): string[] {
  return ['idempotency', caller.tenantId, caller.actor.id, key]
}

function hashOf(fingerprint: string): Buffer {
  return createHash('sha256').update(fingerprint).digest()
}

/**
 * 64 bits of SHA-256: two keys that meet by chance only make one of them wait, and nobody can make a key that meets
 * another tenant's. No part holds a blank, so the parts cannot run into each other.
 */
function lockOf(caller: AnyCaller, key: string): string {
  const digest = createHash('sha256').update(`idempotency ${caller.tenantId} ${caller.actor.id} ${key}`).digest()
  return digest.readBigInt64BE().toString()
}
