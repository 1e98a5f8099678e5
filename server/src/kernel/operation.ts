import type { Static, TSchema } from 'typebox'
import type { AnyCaller, Caller, CallerKind } from './caller.ts'
import type { ErrorCode } from './errors.ts'
import type { Scope } from './scopes.ts'
import type { OperationTransaction, TransactionMode, Tx } from './transaction.ts'

/**
 * An operation is declared once. Its route, validation, OpenAPI entry, scope check, rate-limit class, transaction, error
 * statuses and negative tests derive from this declaration; nothing of it is written a second time.
 */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Operations of one class draw from one budget for each credential; see `shared/rate-limits`. */
export type RateClass = 'read' | 'search' | 'write' | 'batch' | 'visit'

/** What a role may do with an object beyond reading it. */
export type ObjectAction = 'create' | 'update' | 'archive'

export interface BaseContext<C extends AnyCaller = Caller> {
  readonly caller: C
  /** Bound to what the caller works in. Refuses every statement where the operation's transactions are its own. */
  readonly tx: Tx
  /**
   * For operations whose transactions are their own: a password takes 50 ms to verify, and meanwhile no connection should
   * be held. Write once, and last: when rights turn out to have changed, the handler starts over.
   */
  inTransaction<T>(mode: TransactionMode, work: (tx: Tx) => Promise<T>): Promise<T>
  /** Runs `work` when the transaction has committed, and not at all when it does not. It must not throw. */
  afterCommit(work: () => void): void
  readonly correlationId: string
  /** Milliseconds since the epoch, read once for each request. */
  readonly now: number
  /** Where the request came from, and what the client says of itself: for lists of sessions, and to slow down guessing. */
  readonly address: string
  readonly userAgent: string
  /** The file that came with the request, where the operation takes one and the request was sent as multipart/form-data. */
  readonly upload: Upload | undefined
  /**
   * For operations with `once`: ends the request in one write transaction, under its Idempotency-Key. `content` is what the
   * request is beside its path, query and body, such as the digest of a file. Return what it returns.
   */
  answerOnce(content: string, work: (tx: Tx) => Promise<Reply>): Promise<Reply>
}

/** A file on its way in. */
export interface Upload {
  /**
   * Receives the file while `take` reads it, and returns what `take` made of it. When a handler starts over, the file is
   * not sent again: it gets what was made of it the first time. Rejects with `payload_too_large` or `malformed_request`.
   */
  receive<T>(take: (bytes: AsyncIterable<Uint8Array>) => Promise<T>): Promise<T>
}

export interface Input<P, Q, B> {
  readonly params: P
  readonly query: Q
  readonly body: B
  /** The revision of an `If-Match` header, where the operation declares `ifMatch`. */
  readonly ifMatch: number | undefined
}

export interface Reply {
  readonly status: number
  /** A JSON value, or text or a stream that leaves as it is with its `contentType`. */
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Bytes that are already serialised, for instance a canonical document. */
export class RawBody {
  readonly text: string
  readonly contentType: string

  constructor(text: string, contentType: string) {
    this.text = text
    this.contentType = contentType
  }
}

/** Bytes that are made while they are sent, and never all in memory. Say `content-length` where it is known. */
export class StreamBody {
  readonly bytes: () => AsyncIterable<Uint8Array>
  readonly contentType: string

  constructor(bytes: () => AsyncIterable<Uint8Array>, contentType: string) {
    this.bytes = bytes
    this.contentType = contentType
  }
}

export interface HeaderDeclaration {
  readonly description: string
  readonly example: string
  /** Not in every answer. */
  readonly sometimes?: true
}

export interface Operation<Context extends BaseContext<AnyCaller> = BaseContext> {
  readonly id: string
  readonly method: Method
  /** OpenAPI style, for instance `/v1/apps/{saasAppId}/objects`. */
  readonly path: string
  /** The resource family, in the specification's words. */
  readonly area: string
  /** What the family is about, where the contract has no sentence of its own for it: native modules bring theirs. */
  readonly areaDescription?: string
  readonly summary: string
  readonly description: string
  readonly credentials: readonly CallerKind[]
  /** The scope that the credential must carry; null where any valid credential will do (discovery). */
  readonly scope: Scope | null
  /** The object that it works on, where the path does not name it: contracts leave the operation out where it is not readable. */
  readonly objectKey?: string
  /** The object that it works on must allow one of these; contracts leave the operation out where no object does. */
  readonly objectActions?: readonly ObjectAction[]
  readonly rateClass: RateClass
  readonly transaction: OperationTransaction
  /** False where the operation must never be a tool of a model, with the reason beside it. */
  readonly mcp: boolean
  readonly params: TSchema
  readonly query?: TSchema
  readonly body?: TSchema
  /** Is a request without a body as good as one with `{}`? */
  readonly bodyOptional?: boolean
  /** Largest accepted body in bytes; 1 MiB unless said otherwise. */
  readonly bodyBytesMax?: number
  /**
   * Takes multipart/form-data as well: the part `options` is the body, the part `file` behind it is `context.upload`. The
   * largest file in bytes.
   */
  readonly uploadBytesMax?: number
  /** Of an operation whose transactions are its own: it honours Idempotency-Key, since it ends with `answerOnce`. */
  readonly once?: true
  /** Does the answer hold a secret that is shown once? What is kept of it for a replay is sealed then. */
  readonly confidential?: true
  /** Does `If-Match: "<revision>"` guard the operation? */
  readonly ifMatch?: boolean
  readonly responses: Readonly<Record<number, TSchema>>
  /** The media types of its answers, where they are files and no JSON. */
  readonly contentTypes?: readonly string[]
  readonly responseHeaders?: Readonly<Record<string, HeaderDeclaration>>
  /** Codes beyond those that every operation has. */
  readonly errors: readonly ErrorCode[]
  readonly handler: (context: Context, input: Input<never, never, never>) => Promise<Reply>
}

type StaticOf<S> = S extends TSchema ? Static<S> : undefined

type Declaration<
  Context extends BaseContext<AnyCaller>,
  P extends TSchema,
  Q extends TSchema | undefined,
  B extends TSchema | undefined,
> = Omit<Operation<Context>, 'params' | 'query' | 'body' | 'handler'> & {
  readonly params: P
  readonly query?: Q
  readonly body?: B
  handler(context: Context, input: Input<Static<P>, StaticOf<Q>, StaticOf<B>>): Promise<Reply>
}

/** Makes `operation()` for handlers that receive `Context`. */
export function operationFor<Context extends BaseContext<AnyCaller>>() {
  return function operation<
    P extends TSchema,
    Q extends TSchema | undefined = undefined,
    B extends TSchema | undefined = undefined,
  >(declaration: Declaration<Context, P, Q, B>): Operation<Context> {
    return declaration as unknown as Operation<Context>
  }
}

export const bodyBytesDefault = 1024 * 1024

/** Does `Idempotency-Key` make the operation safe to repeat? */
export function takesIdempotencyKey({ transaction, once }: Pick<Operation, 'transaction' | 'once'>): boolean {
  return transaction === 'write' || once === true
}
