import { createConfig, lintFromString } from '@redocly/openapi-core'
import { Validator } from '@seriousme/openapi-schema-validator'

/** Holds a contract against the rules of OpenAPI and our own. Each check returns what is wrong, one line each. */
type Json = Readonly<Record<string, unknown>>

/** Against the JSON Schema of OpenAPI 3.1. */
export async function violations(document: Json): Promise<string[]> {
  const { valid, errors } = await new Validator().validate(structuredClone(document) as Record<string, unknown>)
  return valid ? [] : [JSON.stringify(errors)]
}

/**
 * Redocly's recommended rules, warnings included, and some of its optional ones. Two are off:
 *
 * - `no-ambiguous-paths`: the specification itself has `…/records/search` beside `…/records/{recordId}`. A record id is a
 *   UUID, and the methods differ.
 * - `no-server-example.com`: the address of the server is the operator's, and on a first start it is 127.0.0.1.
 */
const lintRules = {
  'no-ambiguous-paths': 'off',
  'no-server-example.com': 'off',
  'operation-description': 'error',
  'operation-operationId': 'error',
  'operation-tag-defined': 'error',
  'parameter-description': 'error',
  'response-contains-header': {
    severity: 'error',
    names: { '2XX': ['X-Correlation-Id'], '4XX': ['X-Correlation-Id'] },
  },
  'spec-components-invalid-map-name': 'error',
} as const

export async function lintProblems(text: string): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'], rules: lintRules })
  const problems = await lintFromString({ source: text, absoluteRef: 'openapi.json', config })
  // What a receiver of webhooks answers is its own affair.
  const isReceivers = ({ ruleId, location }: (typeof problems)[number]) =>
    ruleId === 'response-contains-header' && location[0]?.pointer?.startsWith('#/webhooks/')
  return problems
    .filter((problem) => !isReceivers(problem))
    .map(({ ruleId, message, location }) => `${ruleId} at ${location[0]?.pointer}: ${message}`)
}

/** Places of properties and parameters without a description, or without an example where they are not containers. */
export function unexplained(document: Json): string[] {
  const problems: string[] = []
  walk(document, '#', (node, place) => {
    if (typeof node['in'] === 'string' && typeof node['name'] === 'string') explain(node, place)
    // `properties` may also be the name of a property; then it has a description of its own and no schemas in it.
    const properties = node['properties']
    if (!isObject(properties) || 'description' in properties) return
    for (const [name, property] of Object.entries(properties)) explain(property as Json, `${place}/properties/${name}`)
  })
  return problems

  function explain(node: Json, place: string): void {
    const views = viewsOf(node)
    if (!views.some((view) => typeof view['description'] === 'string')) problems.push(`${place} has no description`)
    const shown = views.some(
      (view) => isContainer(view) || ['example', 'examples', 'enum', 'const'].some((k) => k in view),
    )
    if (!shown) problems.push(`${place} has no example`)
  }

  /** The node, what it refers to, and its branches: a description may stand on any of them. */
  function viewsOf(node: Json): Json[] {
    const target = typeof node['$ref'] === 'string' ? resolve(node['$ref']) : undefined
    const branches = [...((node['anyOf'] ?? []) as Json[]), ...((node['oneOf'] ?? []) as Json[])]
    const schema = isObject(node['schema']) && 'in' in node ? [node['schema']] : []
    return [node, ...[...(target ? [target] : []), ...branches, ...schema].flatMap(viewsOf)]
  }

  function resolve(reference: string): Json {
    const parts = reference.replace(/^#\//, '').split('/')
    return parts.reduce<Json>((at, part) => at[part] as Json, document)
  }
}

function isContainer(schema: Json): boolean {
  const types = [schema['type']].flat()
  return types.includes('object') || types.includes('array') || 'properties' in schema || 'items' in schema
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Visits every object except values that are only shown. */
function walk(value: unknown, place: string, visit: (node: Json, place: string) => void): void {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) walk(item, `${place}/${index}`, visit)
  } else if (isObject(value)) {
    visit(value, place)
    for (const [name, inner] of Object.entries(value)) {
      if (!['example', 'examples', 'default', 'const', 'enum'].includes(name) || place.endsWith('/properties')) {
        walk(inner, `${place}/${name}`, visit)
      }
    }
  }
}
