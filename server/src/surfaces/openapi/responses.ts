import { createHash } from 'node:crypto'
import { type ErrorCode, errorTable } from '../../kernel/errors.ts'
import { type HeaderDeclaration, type Operation, takesIdempotencyKey } from '../../kernel/operation.ts'
import { errorCodesOf } from '../../kernel/registry.ts'
import { ApiErrorResponse } from '../../kernel/schemas.ts'
import { exampleOf } from './examples.ts'
import type { Json } from './json-schema.ts'
import type { ContractObject } from './objects.ts'
import type { Projection } from './projection.ts'

const exampleCorrelationId = '0199a1b2-0000-7000-8000-0000000000c1'

function headerOf({ description, example, sometimes }: HeaderDeclaration, required = false): Json {
  return { description, ...(required && !sometimes && { required }), schema: { type: 'string' }, example }
}

/** Headers that come with more than one operation. */
const commonHeaders = {
  'X-Correlation-Id': headerOf(
    { description: 'Names this request in logs and diagnostics.', example: exampleCorrelationId },
    true,
  ),
  RateLimit: headerOf({
    description: 'What is left of the budget, and seconds until it is full.',
    example: '"read";r=99;t=1',
  }),
  'RateLimit-Policy': headerOf({ description: 'The budget and its window in seconds.', example: '"read";q=100;w=1' }),
  'Retry-After': headerOf(
    { description: 'Whole seconds to wait before trying again; at least 1.', example: '1' },
    true,
  ),
  'WWW-Authenticate': headerOf({ description: 'How to authenticate (RFC 6750, RFC 9728).', example: 'Bearer' }, true),
  'Idempotency-Replayed': headerOf({
    description: '`true` where the stored answer to an earlier request with this key is sent again.',
    example: 'true',
  }),
}

function refer(projection: Projection, ...names: readonly (keyof typeof commonHeaders)[]): Record<string, Json> {
  return Object.fromEntries(names.map((name) => [name, projection.header(name, commonHeaders[name])]))
}

/** Every answer of an operation, by status. */
export function responsesOf(
  operation: Operation<never>,
  projection: Projection,
  object: ContractObject | undefined,
): Json {
  const declared = declaredHeaders(operation, projection)
  return {
    ...successes(operation, declared, projection, object),
    ...(hasETag(operation) && {
      304: {
        description: 'What `If-None-Match` names is still current.',
        headers: { ...refer(projection, 'X-Correlation-Id'), ...declared },
      },
    }),
    ...errors(operation, projection),
  }
}

/** Headers of the operation's own; always sent, unless they belong to one of several outcomes (`Location` to a 201). */
function declaredHeaders(
  { responseHeaders = {}, responses }: Operation<never>,
  projection: Projection,
): Record<string, Json> {
  const always = Object.keys(responses).length === 1
  const written = (name: string, header: Json) =>
    // Most records have one, and few kinds of it are told apart.
    name === 'ETag' ? projection.header(`ETag_${fingerprintOf(JSON.stringify(header))}`, header) : header
  return Object.fromEntries(
    Object.entries(responseHeaders).map(([name, header]) => [name, written(name, headerOf(header, always))]),
  )
}

/** A GET that answers with an ETag also answers 304: the HTTP surface compares `If-None-Match` for all of them. */
export function hasETag({ method, responseHeaders = {} }: Pick<Operation, 'method' | 'responseHeaders'>): boolean {
  return method === 'GET' && Object.keys(responseHeaders).some((name) => name.toLowerCase() === 'etag')
}

const successWords: Readonly<Record<string, string>> = {
  200: 'Done.',
  201: 'Created.',
  202: 'Accepted: the work goes on, and its status can be asked for.',
  204: 'Done; there is nothing to return.',
}

function successes(
  operation: Operation<never>,
  declared: Record<string, Json>,
  projection: Projection,
  object: ContractObject | undefined,
): Json {
  const { schemas } = projection
  const headers = {
    ...refer(projection, 'X-Correlation-Id', 'RateLimit', 'RateLimit-Policy'),
    ...(takesIdempotencyKey(operation) && refer(projection, 'Idempotency-Replayed')),
    ...declared,
  }
  const entries = Object.entries(operation.responses).map(([status, source]) => {
    const schema = schemas.use(source)
    const media = { schema, ...exampled(schema, exampleOf(source, { use: 'response', object }), projection) }
    const { contentTypes = ['application/json'] } = operation
    const content = Object.fromEntries(contentTypes.map((type) => [type, media]))
    const response = { description: successWords[status] ?? 'Done.', headers, content }
    return [status, status === '202' ? shared('Accepted', response, projection) : response]
  })
  return Object.fromEntries(entries)
}

/** Six operations of a module answer with the same row: its example is written once, under the name of its schema. */
function exampled(schema: Json, example: unknown, projection: Projection): Json {
  const reference = schema['$ref']
  if (typeof reference !== 'string') return { example }
  const name = reference.slice(reference.lastIndexOf('/') + 1)
  return { examples: { [name]: projection.example(name, example) } }
}

/** What many operations answer alike is written once: the 38 that move records of modules alone would add 40 KB. */
function shared(name: string, response: Json, projection: Projection): Json {
  return projection.response(`${name}_${fingerprintOf(JSON.stringify(response))}`, () => response)
}

function fingerprintOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 8)
}

function errors(operation: Operation<never>, projection: Projection): Json {
  const byStatus = Map.groupBy(errorCodesOf(operation), (code) => errorTable[code].status)
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => {
      // Most operations share most of their refusals; the name depends on the codes alone, so that it stays what it is
      // when operations come and go.
      return [
        status,
        projection.response(`Error${status}_${fingerprintOf(codes.join())}`, () =>
          errorResponse(status, codes, projection),
        ),
      ]
    }),
  )
}

function errorResponse(status: number, codes: readonly ErrorCode[], projection: Projection): Json {
  const lines = codes.map((code) => `- \`${code}\`: ${errorTable[code].message}`)
  const retryable = codes.some((code) => (errorTable[code] as { retryable?: true }).retryable)
  return {
    description: lines.join('\n'),
    headers: {
      ...refer(projection, 'X-Correlation-Id'),
      ...(status === 401 && refer(projection, 'WWW-Authenticate')),
      ...(status === 429 && refer(projection, 'Retry-After', 'RateLimit', 'RateLimit-Policy')),
      ...(status === 503 && retryable && refer(projection, 'Retry-After')),
    },
    content: {
      'application/json': {
        schema: projection.schemas.use(ApiErrorResponse),
        examples: Object.fromEntries(codes.map((code) => [code, { value: exampleError(code) }])),
      },
    },
  }
}

function exampleError(code: ErrorCode): Json {
  return { error: errorTable[code].message, code, correlationId: exampleCorrelationId }
}
