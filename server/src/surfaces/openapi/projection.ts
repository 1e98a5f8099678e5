import { canonical } from './canonical.ts'
import type { Json } from './json-schema.ts'
import type { ContractObject } from './objects.ts'
import { createSchemaSet, type SchemaSet } from './schema-set.ts'

/** What grows while operations are written into a document: the components that they share. */
export interface Projection {
  /** The application of the caller; null where it is bound to none. */
  readonly appId: string | null
  /** The caller's objects, by key. */
  readonly objects: readonly ContractObject[]
  readonly schemas: SchemaSet
  readonly parameters: ReadonlyMap<string, Json>
  readonly headers: ReadonlyMap<string, Json>
  readonly responses: ReadonlyMap<string, Json>
  readonly examples: ReadonlyMap<string, Json>
  /** Refers to the shared parameter of this name, or writes this one out where another has taken the name. */
  parameter(name: string, parameter: Json): Json
  header(name: string, header: Json): Json
  response(name: string, make: () => Json): Json
  /** Refers to the shared example of this name, or writes this one out where another has taken the name. */
  example(name: string, value: unknown): Json
}

export function createProjection(
  appId: string | null,
  objects: readonly ContractObject[],
  reserved: ReadonlySet<string>,
): Projection {
  const parameters = new Map<string, Json>()
  const headers = new Map<string, Json>()
  const responses = new Map<string, Json>()
  const examples = new Map<string, Json>()
  return {
    appId,
    objects: objects.toSorted((a, b) => (a.objectKey < b.objectKey ? -1 : 1)),
    schemas: createSchemaSet(objects, reserved),
    parameters,
    headers,
    responses,
    examples,
    parameter(name, parameter) {
      const known = parameters.get(name)
      if (known && canonical(known) !== canonical(parameter)) return parameter
      parameters.set(name, parameter)
      return { $ref: `#/components/parameters/${name}` }
    },
    header(name, header) {
      headers.set(name, header)
      return { $ref: `#/components/headers/${name}` }
    },
    response(name, make) {
      if (!responses.has(name)) responses.set(name, make())
      return { $ref: `#/components/responses/${name}` }
    },
    example(name, value) {
      const example = { value }
      const known = examples.get(name)
      if (known && canonical(known) !== canonical(example)) return example
      examples.set(name, example)
      return { $ref: `#/components/examples/${name}` }
    },
  }
}
