import type { AnyCaller, Caller } from './caller.ts'
import type { Clock } from './clock.ts'
import { type ErrorBody, type ErrorCode, errorBody, Failure, fail } from './errors.ts'
import {
  type BaseContext,
  type Input,
  type Operation,
  type RateClass,
  RawBody,
  type Reply,
  StreamBody,
  takesIdempotencyKey,
  type Upload,
} from './operation.ts'
import { builderRoles, type Scope, scopesOfRole } from './scopes.ts'
import type { TransactionMode, Tx } from './transaction.ts'
import { assertValid, fromQueryString, validatorOf } from './validation.ts'

/**
 * The one way into an operation. HTTP and MCP both call `invoke`, so neither can skip a step. The steps run in the order
 * of the table `steps`; each is small, named by a verb, and either passes or throws a `Failure`.
 */
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

interface Exchange<Context extends BaseContext<AnyCaller>> {
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

type Step = <Context extends BaseContext<AnyCaller>>(exchange: Exchange<Context>) => void | Promise<void>

const steps: readonly (readonly [name: string, step: Step])[] = [
  ['authenticate', authenticate],
  ['allow the credential kind', allowKind],
  ['match the application', matchApplication],
  ['require activity', requireActivity],
  ['require the scope', requireScope],
  ['limit the rate', limitRate],
  ['validate', validate],
  ['execute', execute],
]

export type Invoke<Context extends BaseContext<AnyCaller>> = (
  operation: Operation<Context>,
  request: Request,
) => Promise<Response>

export function createPipeline<Context extends BaseContext<AnyCaller>>(parts: PipelineParts<Context>): Invoke<Context> {
  return async function invoke(operation, request) {
    const started = performance.now()
    const exchange = { operation, request, parts, now: parts.clock.now() } as Exchange<Context>
    const stages: Stage[] = []
    let failure: Failure | undefined
    let response: Response
    try {
      await runSteps(exchange, stages)
      response = exchange.response
    } catch (error) {
      failure = error instanceof Failure ? error : fail('internal_error', { cause: error })
      response = failed(failure, request.correlationId, exchange.rate)
    }
    parts.record({
      correlationId: request.correlationId,
      operation: operation as unknown as Operation<never>,
      caller: exchange.caller,
      status: response.status,
      code: failure?.code,
      startedAtMs: exchange.now,
      durationMs: performance.now() - started,
      stages,
      failure,
    })
    return response
  }
}

async function runSteps<Context extends BaseContext<AnyCaller>>(
  exchange: Exchange<Context>,
  stages: Stage[],
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    stages.length = 0
    try {
      for (const [name, step] of steps) {
        const started = performance.now()
        try {
          // Most steps decide at once; awaiting only promises keeps a request from waiting a turn for each step.
          const pending = step(exchange)
          if (pending) await pending
        } finally {
          stages.push({ name, durationMs: performance.now() - started })
        }
      }
      return
    } catch (error) {
      const stale = error instanceof StaleIdentity || (attempt === 1 && (await isOutdated(exchange, error, stages)))
      // Rights can change again while they are read again, but not forever.
      if (!stale || attempt === 5) throw error
      exchange.parts.forget(exchange.caller)
    }
  }
}

/**
 * Does a refusal before the first transaction rest on a caller that has changed since? Without asking, who was just given
 * a scope, or just lost its credential, would be answered from memory. Asking costs an empty transaction; a used-up budget
 * is not asked about, since that refusal is there to make a flood cheap.
 */
async function isOutdated<Context extends BaseContext<AnyCaller>>(
  exchange: Exchange<Context>,
  refusal: unknown,
  stages: readonly Stage[],
): Promise<boolean> {
  const { caller, parts } = exchange
  if (!(refusal instanceof Failure) || refusal.code === 'rate_limited') return false
  if (caller === undefined || stages.at(-1)?.name === 'execute') return false
  // Who is refused before its budget was asked draws from it here: otherwise refusals would be free.
  if (exchange.rate === undefined) await limitRate(exchange)
  try {
    await parts.transact('read', caller, async () => undefined, {})
    return false
  } catch (error) {
    // A database that cannot say leaves the refusal as it is: it was right a moment ago.
    return error instanceof StaleIdentity
  }
}

/** The answer to a failure, also for surfaces that fail before an operation is known. */
export function failed(failure: Failure, correlationId: string, rate?: RateState): Response {
  const body: ErrorBody = errorBody(failure, correlationId)
  return {
    status: failure.status,
    headers: {
      ...rate?.headers,
      ...(failure.retryAfterSeconds !== undefined && { 'retry-after': String(failure.retryAfterSeconds) }),
      ...failure.headers,
    },
    body,
    payload: JSON.stringify(body),
  }
}

function authenticate<C extends BaseContext<AnyCaller>>(exchange: Exchange<C>): void | Promise<void> {
  const { request, parts } = exchange
  const adopt = (identity: Identity<C['caller']>) => {
    exchange.identity = identity
    exchange.caller = identity.caller
  }
  const identity = parts.authenticate(request)
  return identity instanceof Promise ? identity.then(adopt) : adopt(identity)
}

/** The bearer token of a request, for pipelines whose callers need one. */
export function requireToken({ token }: Pick<Request, 'token'>): string {
  if (token === null) throw fail('credential_missing')
  if (token === '') {
    throw fail('credential_invalid', { message: 'Send the credential as `Authorization: Bearer <token>`, once.' })
  }
  return token
}

function allowKind<C extends BaseContext<AnyCaller>>({ caller, operation }: Exchange<C>): void {
  if (operation.credentials.includes(caller.credentialKind)) return
  throw fail(caller.credentialKind === 'draft' ? 'draft_credential_not_allowed' : 'credential_kind_not_allowed')
}

function matchApplication<C extends BaseContext<AnyCaller>>({ caller, request }: Exchange<C>): void {
  const named = request.params['saasAppId']
  // Who is bound to no application may know of several: the transaction is bound to what it names, or refuses.
  if (caller.appId === null || named === undefined) return
  if (named.toLowerCase() !== caller.appId) throw fail('application_not_found')
}

function requireActivity<C extends BaseContext<AnyCaller>>({ identity }: Exchange<C>): void {
  if (identity.refusal !== null) throw fail(identity.refusal)
}

function requireScope<C extends BaseContext<AnyCaller>>({ caller, operation }: Exchange<C>): void {
  if (operation.scope === null || caller.scopes.has(operation.scope)) return
  throw fail('scope_missing', {
    message: `The credential lacks the scope ${operation.scope}.${rolesWith(operation.scope)}`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${operation.scope}"` },
  })
}

/** Scopes of the platform come with a role; who lacks one can ask for it by name. */
function rolesWith(scope: Scope): string {
  const roles = builderRoles.filter((role) => (scopesOfRole[role] as readonly Scope[]).includes(scope))
  return roles.length === 0 ? '' : ` These roles have it: ${roles.join(', ')}.`
}

function limitRate<C extends BaseContext<AnyCaller>>(exchange: Exchange<C>): void | Promise<void> {
  const adopt = (rate: RateState) => {
    exchange.rate = rate
  }
  const rate = exchange.parts.consume(exchange.caller, exchange.operation.rateClass)
  return rate instanceof Promise ? rate.then(adopt) : adopt(rate)
}

const emptyQuery = {}

function validate<C extends BaseContext<AnyCaller>>(exchange: Exchange<C>): void | Promise<void> {
  const { operation, request } = exchange
  assertValid(operation.params, request.params)
  const query = operation.query ? fromQueryString(operation.query, request.query) : request.query
  if (operation.query) assertValid(operation.query, query)
  else for (const name of Object.keys(query)) throw fail('unknown_field', { field: name })

  const adopt = (body: unknown) => {
    exchange.input = {
      params: request.params,
      query: operation.query ? query : emptyQuery,
      body: operation.body && checkedBody(operation, body),
      ifMatch: operation.ifMatch ? revisionOf(request.ifMatch) : undefined,
    } as Input<never, never, never>
  }
  const body = operation.body && request.readBody()
  return body instanceof Promise ? body.then(adopt) : adopt(body)
}

function checkedBody<C extends BaseContext<AnyCaller>>(operation: Operation<C>, sent: unknown): unknown {
  // Only an absent body may be left out: `null` is a body, and one of the wrong type.
  const body = sent === undefined && operation.bodyOptional ? {} : sent
  if (body === undefined) throw fail('invalid_json', { field: 'body', message: 'A JSON body is required.' })
  assertValid(operation.body!, body)
  return body
}

/** `If-Match: "7"` is revision 7; `*` and absence guard nothing; anything else can never match. */
function revisionOf(ifMatch: string | undefined): number | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined
  const revision = /^"(\d{1,15})"$/.exec(ifMatch.trim())?.[1]
  if (revision === undefined) {
    throw fail('validation_failed', { field: 'If-Match', message: 'Send one strong tag, for instance "3".' })
  }
  return Number(revision)
}

async function execute<C extends BaseContext<AnyCaller>>(exchange: Exchange<C>): Promise<void> {
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

function serialise<C extends BaseContext<AnyCaller>>({ operation, parts, rate }: Exchange<C>, reply: Reply): Response {
  if (reply.body instanceof RawBody) {
    const headers = { ...rate.headers, ...reply.headers, 'content-type': reply.body.contentType }
    return { status: reply.status, headers, body: undefined, payload: reply.body.text }
  }
  if (reply.body instanceof StreamBody) {
    const headers = { ...rate.headers, ...reply.headers, 'content-type': reply.body.contentType }
    return { status: reply.status, headers, body: undefined, payload: '', stream: reply.body }
  }
  if (parts.checkResponses) checkResponse(operation as unknown as Operation<never>, reply)
  return {
    status: reply.status,
    headers: { ...rate.headers, ...reply.headers },
    body: reply.body,
    payload: JSON.stringify(reply.body),
  }
}

function checkResponse(operation: Operation<never>, reply: Reply): void {
  const schema = operation.responses[reply.status]
  if (!schema) throw new Error(`${operation.id} answered ${reply.status}, which it does not declare.`)
  const validator = validatorOf(schema)
  const wire: unknown = JSON.parse(JSON.stringify(reply.body))
  if (!validator.Check(wire)) {
    throw new Error(`${operation.id} broke its schema: ${JSON.stringify(validator.Errors(wire).slice(0, 3))}`)
  }
}
