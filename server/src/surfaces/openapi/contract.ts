import { createHash } from 'node:crypto'
import type { Caller, CallerKind } from '../../kernel/caller.ts'
import type { BaseContext, Operation } from '../../kernel/operation.ts'
import type { Registry } from '../../kernel/registry.ts'
import { contractVersion } from '../../kernel/schemas.ts'
import { describedArea } from './areas.ts'
import { canonical } from './canonical.ts'
import { type Json, titlesOf } from './json-schema.ts'
import { allows, type ContractObject } from './objects.ts'
import { projectOperation } from './project-operation.ts'
import { createProjection, type Projection } from './projection.ts'
import { schemeNameOf, schemeOf } from './security.ts'
import { type ContractEvent, webhooksOf } from './webhooks.ts'

export interface ContractInput<Context extends BaseContext> {
  readonly registry: Registry<Context>
  readonly caller: Pick<Caller, 'appId' | 'credentialKind' | 'scopes'>
  /** The objects that the caller may read, with the fields that it may see. */
  readonly objects: readonly ContractObject[]
  /** What a subscription of the caller may ask for. */
  readonly events: readonly ContractEvent[]
  readonly baseUrl: string
}

export interface Contract {
  /** The canonical document (RFC 8785). */
  readonly text: string
  /** SHA-256 of the text's UTF-8 bytes, in lowercase hex. */
  readonly sha256: string
}

/**
 * The OpenAPI document of what this caller could ever invoke (specification 4.1, contract 3). The same caller and the
 * same state give the same bytes on every process: nothing in it comes from a clock, an order of arrival or a locale.
 */
export function projectContract<Context extends BaseContext>(input: ContractInput<Context>): Contract {
  const { registry, caller, objects, events, baseUrl } = input
  const operations = registry.operations as unknown as readonly Operation<never>[]
  const shown = operations.filter((operation) => isOpenTo(operation, caller) && hasObject(operation, objects))
  return writeContract({
    title: 'Portico',
    description: appDescription,
    operations: shown,
    events: shown.some(({ area }) => area === 'Webhooks') ? events : [],
    projection: createProjection(caller.appId, objects, reservedBy(operations)),
    baseUrl,
  })
}

/** Looked for once: going through the schemas of 250 operations takes 30 ms. */
const reserved = new WeakMap<object, ReadonlySet<string>>()

function reservedBy(operations: readonly Operation<never>[]): ReadonlySet<string> {
  const titles = reserved.get(operations) ?? titlesOf(operations)
  reserved.set(operations, titles)
  return titles
}

/** May a caller of this kind and with these scopes ever invoke the operation? */
export function isOpenTo(
  operation: Pick<Operation, 'credentials' | 'scope'>,
  caller: { readonly credentialKind: CallerKind; readonly scopes: ReadonlySet<string> },
): boolean {
  if (!operation.credentials.includes(caller.credentialKind)) return false
  return operation.scope === null || caller.scopes.has(operation.scope)
}

/** Is there an object with which the operation is allowed? Without one the roles of the caller rule it out. */
function hasObject(
  { objectKey, objectActions }: Pick<Operation, 'objectKey' | 'objectActions'>,
  objects: readonly ContractObject[],
): boolean {
  if (objectKey === undefined && objectActions === undefined) return true
  const concerned = objectKey === undefined ? objects : objects.filter((object) => object.objectKey === objectKey)
  return concerned.some((object) => allows(object, objectActions))
}

/** A document in the making: what it holds, and what it says of itself. */
export interface ContractPlan {
  readonly title: string
  readonly description: string
  readonly operations: readonly Operation<never>[]
  readonly events?: readonly ContractEvent[]
  readonly projection: Projection
  readonly baseUrl: string
}

/** Writes the document of these operations, in the order of their registries; see `projectContract`. */
export function writeContract(plan: ContractPlan): Contract {
  const text = canonical(documentOf(plan))
  return { text, sha256: createHash('sha256').update(text).digest('hex') }
}

function documentOf({ title, description, operations, events = [], projection, baseUrl }: ContractPlan): Json {
  const paths: Record<string, Record<string, Json>> = {}
  for (const operation of operations) {
    paths[operation.path] ??= {}
    paths[operation.path]![operation.method.toLowerCase()] = projectOperation(operation, projection)
  }
  const license = { name: 'Apache-2.0', identifier: 'Apache-2.0' }
  return {
    openapi: '3.1.1',
    // The version is pinned by specification 9; the fingerprint, not this, tells one contract from another.
    info: { title, version: contractVersion, license, description },
    servers: [{ url: baseUrl, description: 'This service.' }],
    tags: [...new Map(operations.map((operation) => [operation.area, operation])).values()].map((operation) => ({
      name: operation.area,
      description: describedArea(operation) ?? `${operation.area}.`,
    })),
    paths,
    ...(events.length > 0 && { webhooks: webhooksOf(events, projection) }),
    components: componentsOf(operations, projection),
  }
}

/** What every document says of answers, errors and changes. */
export const commonRules = [
  'Every answer carries `X-Correlation-Id`; quote it when you report a problem. Errors are',
  '`{error, code, correlationId}`; `code` is stable, and `details` names what to correct. Send `Idempotency-Key` with',
  'every change that you may have to repeat, and `If-Match` or `expectedRevision` with every update that must not',
  'overwrite the change of another.',
].join('\n')

const appDescription = `An application-scoped integration API. This document is made for the credential that asked for it: it holds the
operations and objects that the credential may use, and its fingerprint changes when they do.

Send the credential as \`Authorization: Bearer <token>\`.
${commonRules}`

function componentsOf(operations: readonly Pick<Operation, 'credentials'>[], projection: Projection): Json {
  const kinds = new Set(operations.flatMap((operation) => operation.credentials).filter((kind) => kind !== 'none'))
  return {
    securitySchemes: Object.fromEntries([...kinds].map((kind) => [schemeNameOf(kind), schemeOf(kind)])),
    headers: Object.fromEntries(projection.headers),
    parameters: Object.fromEntries(projection.parameters),
    responses: Object.fromEntries(projection.responses),
    ...(projection.examples.size > 0 && { examples: Object.fromEntries(projection.examples) }),
    schemas: Object.fromEntries(projection.schemas.components),
  }
}
