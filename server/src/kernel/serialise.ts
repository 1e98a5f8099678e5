import type { AnyCaller } from './caller.ts'
import { type ErrorBody, errorBody, type Failure } from './errors.ts'
import type { Exchange, RateState, Response } from './exchange.ts'
import { type BaseContext, type Operation, RawBody, type Reply, StreamBody } from './operation.ts'
import { validatorOf } from './validation.ts'

/** The answer as it leaves; held against its declared schema first, where that was asked for. */
export function serialise<C extends BaseContext<AnyCaller>>(
  { operation, parts, rate }: Exchange<C>,
  reply: Reply,
): Response {
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
