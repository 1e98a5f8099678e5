import type { AnyCaller } from './caller.ts'
import { fail } from './errors.ts'
import type { Exchange, Identity, RateState, Request } from './exchange.ts'
import type { BaseContext, Input, Operation } from './operation.ts'
import { builderRoles, type Scope, scopesOfRole } from './scopes.ts'
import { assertValid, checkedQuery } from './validation.ts'

/** What is asked of a request before it is carried out: each passes, or throws a `Failure`. */

export function authenticate<C extends BaseContext<AnyCaller>>(exchange: Exchange<C>): void | Promise<void> {
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

export function allowKind<C extends BaseContext<AnyCaller>>({ caller, operation }: Exchange<C>): void {
  if (operation.credentials.includes(caller.credentialKind)) return
  throw fail(caller.credentialKind === 'draft' ? 'draft_credential_not_allowed' : 'credential_kind_not_allowed')
}

export function matchApplication<C extends BaseContext<AnyCaller>>({ caller, request }: Exchange<C>): void {
  const named = request.params['saasAppId']
  // Who is bound to no application may know of several: the transaction is bound to what it names, or refuses.
  if (caller.appId === null || named === undefined) return
  if (named.toLowerCase() !== caller.appId) throw fail('application_not_found')
}

export function requireActivity<C extends BaseContext<AnyCaller>>({ identity }: Exchange<C>): void {
  if (identity.refusal !== null) throw fail(identity.refusal)
}

export function requireScope<C extends BaseContext<AnyCaller>>({ caller, operation }: Exchange<C>): void {
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

export function limitRate<C extends BaseContext<AnyCaller>>(exchange: Exchange<C>): void | Promise<void> {
  const adopt = (rate: RateState) => {
    exchange.rate = rate
  }
  const rate = exchange.parts.consume(exchange.caller, exchange.operation.rateClass)
  return rate instanceof Promise ? rate.then(adopt) : adopt(rate)
}

const emptyQuery = {}

export function validate<C extends BaseContext<AnyCaller>>(exchange: Exchange<C>): void | Promise<void> {
  const { operation, request } = exchange
  assertValid(operation.params, request.params)
  const query = operation.query ? checkedQuery(operation.query, request.query) : request.query
  if (!operation.query) for (const name of Object.keys(query)) throw fail('unknown_field', { field: name })

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
