import type { Operation } from '../../kernel/operation.ts'
import { scopeDescriptions } from '../../kernel/scopes.ts'
import { exampleOf } from './examples.ts'
import type { Json } from './json-schema.ts'
import type { Projection } from './projection.ts'
import { hasETag, responsesOf } from './responses.ts'
import { schemeNameOf } from './security.ts'

/** Writes one operation as OpenAPI says it. Everything comes from its declaration. */
export function projectOperation(operation: Operation<never>, projection: Projection): Json {
  return {
    operationId: operation.id,
    summary: operation.summary,
    description: descriptionOf(operation),
    tags: [operation.area],
    parameters: parametersOf(operation, projection),
    ...(operation.body && { requestBody: requestBodyOf(operation, projection) }),
    responses: responsesOf(operation, projection),
    security: operation.credentials.map((kind) => ({ [schemeNameOf(kind)]: [] })),
    'x-rate-class': operation.rateClass,
    ...(operation.scope && { 'x-required-scope': operation.scope }),
  }
}

function descriptionOf({ description, scope }: Operation<never>): string {
  const needs = scope
    ? `Needs the scope \`${scope}\`: ${lowerFirst(scopeDescriptions[scope])}`
    : 'Needs a valid credential, and no scope.'
  return `${description}\n\n${needs}`
}

function lowerFirst(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1)
}

function parametersOf(operation: Operation<never>, projection: Projection): readonly Json[] {
  return [
    ...named(operation.params as unknown as Json, 'path', projection),
    ...named((operation.query ?? {}) as unknown as Json, 'query', projection),
    ...(operation.transaction === 'write' ? [projection.parameter('Idempotency-Key', idempotencyKey)] : []),
    ...(operation.ifMatch ? [projection.parameter('If-Match', ifMatch)] : []),
    ...(hasETag(operation) ? [projection.parameter('If-None-Match', ifNoneMatch)] : []),
  ]
}

function named(source: Json, place: 'path' | 'query', projection: Projection): Json[] {
  const required = (source['required'] ?? []) as readonly string[]
  return Object.entries((source['properties'] ?? {}) as Readonly<Record<string, Json>>).map(([name, property]) => {
    const { description, examples, ...schema } = withCallersChoice(name, projection.schemas.use(property), projection)
    const example = exampleOf({ ...schema, ...(examples !== undefined && { examples }) }, 'request', projection.schemas)
    const parameter = {
      name,
      in: place,
      required: place === 'path' || required.includes(name),
      description,
      schema,
      example,
    }
    return place === 'path' ? projection.parameter(name, parameter) : parameter
  })
}

/** The caller's own application and its own objects are known, so the document says them. */
function withCallersChoice(name: string, schema: Json, { appId, objectKeys }: Projection): Json {
  if (name === 'saasAppId') return { ...schema, examples: [appId] }
  if (name !== 'objectKey' || objectKeys.length === 0) return schema
  const { pattern: _, minLength: __, maxLength: ___, ...rest } = schema
  return { ...rest, enum: objectKeys, examples: [objectKeys[0]] }
}

function requestBodyOf(operation: Operation<never>, { schemas }: Projection): Json {
  const schema = schemas.use(operation.body!)
  const example = exampleOf(schema, 'request', schemas)
  return { required: !operation.bodyOptional, content: { 'application/json': { schema, example } } }
}

function header(name: string, description: string, schema: Json, example: string): Json {
  return { name, in: 'header', required: false, description, schema: { type: 'string', ...schema }, example }
}

const idempotencyKey = header(
  'Idempotency-Key',
  'Makes the request safe to repeat for 24 hours: the same key and body replay the stored answer.',
  { minLength: 1, maxLength: 255 },
  '3f1f6a52-6f0b-4c55-9a4e-2f6a0c8d7b11',
)
const ifMatch = header('If-Match', 'Change it only if it is still at this revision.', {}, '"3"')
const ifNoneMatch = header('If-None-Match', 'Answer 304 if this ETag is still current.', {}, '"3"')
