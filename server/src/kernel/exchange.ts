import type { AnyCaller, Caller } from './caller.ts'
import type { Clock } from './clock.ts'
import type { ErrorCode, Failure } from './errors.ts'
import type { BaseContext, Input, Operation, RateClass, StreamBody, Upload } from './operation.ts'
import type { TransactionMode, Tx } from './transaction.ts'

/** What goes into the pipeline, what comes out of it, and what it is made of. */
export interface Request {
  readonly correlationId: string
  /** The bearer token, or null where none was sent. */
  readonly token: string | null
  /** Where the request came from; budgets of those who have not signed in are kept by it. */
  readonly address: string
  /** The host that was asked, in lower case, without a port. */
  readonly host: string
  /** What the client says of itself, for lists of sessions. */
  readonly userAgent: string
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, unknown>>
  /**
   * Receives and parses the body when its turn comes: a caller without a valid credential learns nothing about its body
   * and cannot make the service hold it. Asked again when the steps start over.
   */
  readBody(): unknown | Promise<unknown>
  /** The file behind the body, once the body was read. */
  readonly upload?: Upload | undefined
  readonly idempotencyKey: string | undefined
  readonly ifMatch: string | undefined
}

export interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The JSON value of the answer; undefined where `payload` is not JSON or is a replay. */
  readonly body: unknown
  /** What leaves on the wire, unless there is a stream. */
  readonly payload: string
  readonly stream?: StreamBody
}

export interface Stage {
  readonly name: string
  readonly durationMs: number
}

/** What is known of a finished request; diagnostics, metrics and the log are made from it. */
export interface Outcome {
  readonly correlationId: string
  readonly operation: Operation<never>
  readonly caller: AnyCaller | undefined
  readonly status: number
  readonly code: string | undefined
  readonly startedAtMs: number
  readonly durationMs: number
  readonly stages: readonly Stage[]
  readonly failure: Failure | undefined
}

export interface Identity<C extends AnyCaller = Caller> {
  readonly caller: C
  /** Why somebody who is known may not act now, for instance `organization_inactive`. */
  readonly refusal: ErrorCode | null
}

export interface RateState {
  readonly headers: Readonly<Record<string, string>>
}

/** A response kept for an idempotency key. */
export interface StoredResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly payload: string
}

export interface Idempotency {
  /** Takes the key for this transaction, or returns what was answered before. Throws the two 409s of contract 0. */
  claim(tx: Tx, caller: AnyCaller, key: string, fingerprint: string): Promise<StoredResponse | undefined>
  /** A confidential answer is sealed before it is stored. */
  keep(
    tx: Tx,
    caller: AnyCaller,
    key: string,
    fingerprint: string,
    response: StoredResponse & { readonly confidential: boolean },
  ): Promise<void>
}

export interface PipelineParts<Context extends BaseContext<AnyCaller>> {
  readonly clock: Clock
  /** Says who calls. Throws the 401s of contract 2. */
  authenticate(request: Request): Identity<Context['caller']> | Promise<Identity<Context['caller']>>
  /** Drops what is remembered of a credential after `StaleIdentity`. */
  forget(caller: Context['caller']): void
  consume(caller: Context['caller'], rateClass: RateClass): RateState | Promise<RateState>
  /**
   * Runs `work` in a transaction bound to what the caller works in. Throws `StaleIdentity`, and the 404 of what the path
   * names and the caller may not know of.
   */
  transact<T>(
    mode: TransactionMode,
    caller: Context['caller'],
    work: (tx: Tx) => Promise<T>,
    params: Request['params'],
  ): Promise<T>
  readonly idempotency: Idempotency
  /** What handlers receive beside the base context. */
  readonly services: Omit<Context, keyof BaseContext>
  record(outcome: Outcome): void
  /** Holds every answer against its declared schema. For tests and development; it costs time. */
  readonly checkResponses: boolean
}

/** The caller was read before a change of rights committed. The pipeline reads it again and starts over. */
export class StaleIdentity extends Error {
  override readonly name = 'StaleIdentity'
}

/** One request on its way through the steps: each leaves what the next ones need. */
export interface Exchange<Context extends BaseContext<AnyCaller>> {
  readonly operation: Operation<Context>
  readonly request: Request
  readonly parts: PipelineParts<Context>
  readonly now: number
  caller: Context['caller']
  identity: Identity<Context['caller']>
  input: Input<never, never, never>
  rate: RateState
  response: Response
  /** What `answerOnce` came to. */
  answered: Response | undefined
  afterCommit: (() => void)[] | undefined
}
