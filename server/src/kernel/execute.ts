import type { AnyCaller } from './caller.ts'
import { fail } from './errors.ts'
import type { Exchange, RateState, Response, StoredResponse } from './exchange.ts'
import { type BaseContext, type Reply, takesIdempotencyKey } from './operation.ts'
import { serialise } from './serialise.ts'
import type { TransactionMode, Tx } from './transaction.ts'

/** Carries the request out, in a transaction unless the operation opens its own. */
export async function execute<C extends BaseContext<AnyCaller>>(exchange: Exchange<C>): Promise<void> {
  const { operation, request } = exchange
  exchange.answered = undefined
  const key = takesIdempotencyKey(operation) ? checkedKey(request.idempotencyKey) : undefined
  if (operation.transaction === 'own') {
    const reply = await handle(exchange, noTransaction, key)
    exchange.response = exchange.answered ?? serialise(exchange, reply)
    return
  }
  const { transaction } = operation
  exchange.response = await answer(exchange, transaction, key, undefined, (tx) => handle(exchange, tx, key))
}

/** Does the work in one transaction, which also keeps what it is answered with where there is a key. */
async function answer<C extends BaseContext<AnyCaller>>(
  exchange: Exchange<C>,
  mode: TransactionMode,
  key: string | undefined,
  content: string | undefined,
  work: (tx: Tx) => Promise<Reply>,
): Promise<Response> {
  const { operation, parts, caller } = exchange
  let kept: Promise<void> | undefined
  const response = await transact(exchange, mode, async (tx) => {
    if (key === undefined) return serialise(exchange, await work(tx))
    // The key lives and dies with the change that it guards: one transaction writes both, so a crash leaves neither.
    const fingerprint = fingerprintOf(exchange, content)
    const replay = await parts.idempotency.claim(tx, caller, key, fingerprint)
    if (replay) return replayed(replay, exchange.rate)
    const made = serialise(exchange, await work(tx))
    const { status, headers, payload } = made
    const confidential = operation.confidential === true
    // Not waited for yet: it leaves in one write with COMMIT, which fails when it does.
    kept = parts.idempotency.keep(tx, caller, key, fingerprint, { status, headers, payload, confidential })
    kept.catch(() => {})
    // Sealing takes a turn, in which COMMIT would overtake it.
    if (confidential) await kept
    return made
  })
  await kept
  return response
}

/** Runs `work` bound to the caller and to what the path names; then what waits for its commit. */
async function transact<C extends BaseContext<AnyCaller>, T>(
  exchange: Exchange<C>,
  mode: TransactionMode,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const { parts, caller, request } = exchange
  const run = (tx: Tx) => {
    // A transaction that lost against another one runs again, and says again what is to follow it.
    exchange.afterCommit = undefined
    return work(tx)
  }
  const value = await parts.transact(mode, caller, run, request.params)
  for (const next of exchange.afterCommit ?? []) next()
  return value
}

const noTransaction: Tx = {
  rows: () => Promise.reject(new Error('The transactions of this operation are its own: use inTransaction.')),
  savepoint: () => Promise.reject(new Error('The transactions of this operation are its own: use inTransaction.')),
}

function handle<C extends BaseContext<AnyCaller>>(
  exchange: Exchange<C>,
  tx: Tx,
  key: string | undefined,
): Promise<Reply> {
  const { operation, parts, caller, request, now, input } = exchange
  const context = {
    ...parts.services,
    caller,
    tx,
    correlationId: request.correlationId,
    now,
    inTransaction: (mode, work) => transact(exchange, mode, work),
    afterCommit(work) {
      exchange.afterCommit ??= []
      exchange.afterCommit.push(work)
    },
    address: request.address,
    userAgent: request.userAgent,
    upload: request.upload,
    async answerOnce(content, work) {
      exchange.answered = await answer(exchange, 'write', key, content, work)
      const { status, body, headers } = exchange.answered
      return { status, body, headers }
    },
  } as BaseContext<AnyCaller> as C
  return operation.handler(context, input)
}

function checkedKey(key: string | undefined): string | undefined {
  if (key !== undefined && !/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw fail('idempotency_key_invalid', { field: 'Idempotency-Key' })
  }
  return key
}

/** Two requests with one key are the same when operation, path, query, body and guard are. Hashed by the store. */
function fingerprintOf<C extends BaseContext<AnyCaller>>(
  { operation, input }: Exchange<C>,
  content: string | undefined,
): string {
  const parts = [operation.id, input.params, input.query, input.body, input.ifMatch]
  return JSON.stringify(content === undefined ? parts : [...parts, content])
}

function replayed(stored: StoredResponse, rate: RateState): Response {
  return {
    status: stored.status,
    headers: { ...stored.headers, ...rate.headers, 'idempotency-replayed': 'true' },
    body: undefined,
    payload: stored.payload,
  }
}
