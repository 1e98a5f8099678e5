import { createHash } from 'node:crypto'
import type { Caller } from '../../kernel/caller.ts'
import type { BaseContext, Operation } from '../../kernel/operation.ts'
import type { Registry } from '../../kernel/registry.ts'
import { canonical } from './canonical.ts'
import { type Json, titlesOf } from './json-schema.ts'
import { allows, type ContractObject } from './objects.ts'
import { projectOperation } from './project-operation.ts'
import { createProjection, type Projection } from './projection.ts'
import { schemeNameOf, schemeOf } from './security.ts'

/** Pinned by specification 9; the fingerprint, not this, tells one contract from another. */
const contractVersion = '1.0.0-developer-platform'

export interface ContractInput<Context extends BaseContext> {
  readonly registry: Registry<Context>
  readonly caller: Pick<Caller, 'appId' | 'credentialKind' | 'scopes'>
  /** The objects that the caller may read, with the fields that it may see. */
  readonly objects: readonly ContractObject[]
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
  const text = canonical(documentOf(input))
  return { text, sha256: createHash('sha256').update(text).digest('hex') }
}

/** May a caller of this kind and with these scopes ever invoke the operation? */
export function isOpenTo(
  operation: Pick<Operation, 'credentials' | 'scope'>,
  caller: Pick<Caller, 'credentialKind' | 'scopes'>,
): boolean {
  if (!operation.credentials.includes(caller.credentialKind)) return false
  return operation.scope === null || caller.scopes.has(operation.scope)
}

/** Is there an object with which the operation is allowed? Without one the roles of the caller rule it out. */
function hasObject({ objectActions }: Pick<Operation, 'objectActions'>, objects: readonly ContractObject[]): boolean {
  return objectActions === undefined || objects.some((object) => allows(object, objectActions))
}

function documentOf<Context extends BaseContext>({ registry, caller, objects, baseUrl }: ContractInput<Context>): Json {
  const operations = registry.operations.filter(
    (operation) => isOpenTo(operation, caller) && hasObject(operation, objects),
  )
  const projection = createProjection(caller.appId, objects, titlesOf(registry.operations))
  const paths: Record<string, Record<string, Json>> = {}
  for (const operation of operations) {
    paths[operation.path] ??= {}
    paths[operation.path]![operation.method.toLowerCase()] = projectOperation(
      operation as unknown as Operation<never>,
      projection,
    )
  }
  return {
    openapi: '3.1.1',
    info,
    servers: [{ url: baseUrl, description: 'This service.' }],
    tags: [...new Set(operations.map((operation) => operation.area))].map((area) => ({
      name: area,
      description: areaDescriptions[area] ?? `${area}.`,
    })),
    paths,
    components: componentsOf(operations, projection),
  }
}

/** One sentence for each resource family. */
export const areaDescriptions: Readonly<Record<string, string>> = {
  Discovery: 'Who the credential is, and this document.',
  Objects: 'The objects that the caller may read, and the fields of each with types, limits and rights.',
  Records: 'Search, read and change the records of an object, one at a time or in batches.',
  Diagnostics: 'What the service noted about a request, found by its correlation id.',
  Pages: 'Pages of the application and their drafts.',
}

const info = {
  title: 'Portico',
  version: contractVersion,
  license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
  description: [
    'An application-scoped integration API. This document is made for the credential that asked for it: it holds the',
    'operations and objects that the credential may use, and its fingerprint changes when they do.',
    '',
    'Send the credential as `Authorization: Bearer <token>`. Every answer carries `X-Correlation-Id`; quote it when you',
    'report a problem. Errors are `{error, code, correlationId}`; `code` is stable, and `details` names what to correct.',
    'Send `Idempotency-Key` with every change that you may have to repeat, and `If-Match` or `expectedRevision` with',
    'every update that must not overwrite the change of another.',
  ].join('\n'),
}

function componentsOf(operations: readonly Pick<Operation, 'credentials'>[], projection: Projection): Json {
  const kinds = new Set(operations.flatMap((operation) => operation.credentials))
  return {
    securitySchemes: Object.fromEntries([...kinds].map((kind) => [schemeNameOf(kind), schemeOf(kind)])),
    headers: Object.fromEntries(projection.headers),
    parameters: Object.fromEntries(projection.parameters),
    responses: Object.fromEntries(projection.responses),
    schemas: Object.fromEntries(projection.schemas.components),
  }
}
