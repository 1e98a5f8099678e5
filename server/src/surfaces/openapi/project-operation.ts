import { type Operation, takesIdempotencyKey } from '../../kernel/operation.ts'
import { scopeDescriptions } from '../../kernel/scopes.ts'
import { exampleOf } from './examples.ts'
import type { Json } from './json-schema.ts'
import { allows, type ContractObject, exemplary } from './objects.ts'
import type { Projection } from './projection.ts'
import { hasETag, responsesOf } from './responses.ts'
import { schemeNameOf } from './security.ts'

/** Writes one operation as OpenAPI says it. Everything comes from its declaration. */
export function projectOperation(operation: Operation<never>, projection: Projection): Json {
  const objects = projection.objects.filter((object) => allows(object, operation.objectActions))
  const takesObject = 'objectKey' in ((operation.params as unknown as Json)['properties'] as Json)
  const object = takesObject ? exemplary(objects) : undefined
  return {
    operationId: operation.id,
    summary: operation.summary,
    description: descriptionOf(operation),
    tags: [operation.area],
    parameters: parametersOf(operation, projection, { objects, object }),
    ...(operation.body && { requestBody: requestBodyOf(operation, projection, object) }),
    responses: responsesOf(operation, projection, object),
    security: operation.credentials.filter((kind) => kind !== 'none').map((kind) => ({ [schemeNameOf(kind)]: [] })),
    'x-rate-class': operation.rateClass,
    ...(operation.scope && { 'x-required-scope': operation.scope }),
  }
}

function descriptionOf({ description, credentials, scope }: Operation<never>): string {
  const without = credentials.includes('none') ? 'Needs no credential.' : 'Needs a valid credential, and no scope.'
  const needs = scope ? `Needs the scope \`${scope}\`: ${lowerFirst(scopeDescriptions[scope])}` : without
  return `${description}\n\n${needs}`
}

function lowerFirst(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1)
}

/** The objects that the operation works on, and the one that its examples speak of. */
interface Choice {
  readonly objects: readonly ContractObject[]
  readonly object: ContractObject | undefined
}

function parametersOf(operation: Operation<never>, projection: Projection, choice: Choice): readonly Json[] {
  return [
    ...named(operation.params as unknown as Json, 'path', projection, choice),
    ...named((operation.query ?? {}) as unknown as Json, 'query', projection, choice),
    ...(takesIdempotencyKey(operation) ? [projection.parameter('Idempotency-Key', idempotencyKey)] : []),
    ...(operation.ifMatch ? [projection.parameter('If-Match', ifMatch)] : []),
    ...(hasETag(operation) ? [projection.parameter('If-None-Match', ifNoneMatch)] : []),
  ]
}

/** Query parameters that are the same in most lists: written out in each, they were 45 of 1,970 KB. */
const inManyLists = new Set(['pageNumber', 'pageSize', 'includeTotal', 'search', 'locationId', 'ownerUserId', 'cursor'])

function named(source: Json, place: 'path' | 'query', projection: Projection, choice: Choice): Json[] {
  const required = (source['required'] ?? []) as readonly string[]
  return Object.entries((source['properties'] ?? {}) as Readonly<Record<string, Json>>).map(([name, declared]) => {
    const property = withCallersChoice(name, declared, projection.appId, choice)
    const { description, examples: _, ...schema } = projection.schemas.use(property)
    const parameter = {
      name,
      in: place,
      required: place === 'path' || required.includes(name),
      description,
      schema,
      example: exampleOf(property, { use: 'request', object: choice.object }),
    }
    return place === 'path' || inManyLists.has(name) ? projection.parameter(name, parameter) : parameter
  })
}

/** The caller's own application and its own objects are known, so the document says them. */
function withCallersChoice(name: string, schema: Json, appId: string | null, { objects, object }: Choice): Json {
  if (name === 'saasAppId') return appId === null ? schema : { ...schema, examples: [appId] }
  if (name !== 'objectKey' || object === undefined) return schema
  const { pattern: _, minLength: __, maxLength: ___, ...rest } = schema
  return { ...rest, enum: objects.map(({ objectKey }) => objectKey), examples: [object.objectKey] }
}

function requestBodyOf(operation: Operation<never>, projection: Projection, object: ContractObject | undefined): Json {
  const schema = projection.schemas.use(operation.body!)
  const example = exampleOf(operation.body!, { use: 'request', object })
  const content = {
    'application/json': { schema, example },
    ...(operation.uploadBytesMax !== undefined && multipart(operation, operation.uploadBytesMax, projection)),
  }
  return { required: !operation.bodyOptional, content }
}

/** The body as one part, and a file behind it. */
function multipart({ body }: Operation<never>, bytesMax: number, { schemas }: Projection): Json {
  const options = body as unknown as Json
  const file = {
    type: 'string',
    contentMediaType: 'application/octet-stream',
    maxLength: bytesMax,
    description: 'The file, in place of `content`. It comes after `options`.',
    examples: ['name\nNorthwind Traders\n'],
  }
  const schema = schemas.use({
    title: `${options['title']}Upload`,
    description: 'Two parts, in this order.',
    type: 'object',
    properties: { options, file },
    required: ['options', 'file'],
  })
  return { 'multipart/form-data': { schema, encoding: { options: { contentType: 'application/json' } } } }
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
