import type { TSchema } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { type ErrorCode, type ErrorDetail, type Failure, fail } from './errors.ts'
import { findExcess } from './excess.ts'
import { kindsOf, withoutOtherKinds } from './unions.ts'

/**
 * Holds input against the schema of its operation. Each problem is named by the field or position to correct; the code of
 * the answer is the most telling one: an unknown field, then what a schema names itself (`x-error-above-maximum`), else
 * `validation_failed`.
 */
const validators = new WeakMap<TSchema, Validator>()

export function validatorOf(schema: TSchema): Validator {
  let validator = validators.get(schema)
  if (!validator) {
    validator = Compile(schema)
    validators.set(schema, validator)
  }
  return validator
}

const detailsMax = 20

/** Throws unless `value` fits `schema`. `root` prefixes the names, for instance `query`. */
export function assertValid(schema: TSchema, value: unknown, root = ''): void {
  const validator = validatorOf(schema)
  if (validator.Check(value)) return
  const excess = findExcess(schema, value)
  if (excess) throw invalid([{ field: fieldName(root, excess.path), code: excess.code, message: excess.message }])
  throw invalid(problemsOf(schema, validator, value, root))
}

function invalid(details: readonly ErrorDetail[]): Failure {
  const told = details.find((detail) => detail.code === 'unknown_field') ?? details.find((d) => d.code in namedCodes)
  return fail((told?.code as ErrorCode | undefined) ?? 'validation_failed', { details })
}

const namedCodes: Partial<Record<ErrorCode, true>> = { page_size_exceeded: true }

function problemsOf(schema: TSchema, validator: Validator, value: unknown, root: string): ErrorDetail[] {
  const details = new Map<string, ErrorDetail>()
  for (const error of withoutOtherKinds(validator.Errors(value))) {
    const add = (path: string, code: string, message: string) => {
      const field = fieldName(root, path)
      if (!details.has(field) && details.size < detailsMax) details.set(field, { field, code, message })
    }
    if (error.union) {
      add(error.instancePath, error.keyword, `Expected ${kindsOf(schemaAt(schema, error.schemaPath) ?? {})}.`)
      continue
    }
    switch (error.keyword) {
      case 'boolean': // the schema `false`, which nothing but an unknown field meets
        add(error.instancePath, 'unknown_field', 'There is no such field.')
        break
      case 'additionalProperties': // said by each of them, and lost where there are more than TypeBox reports (8)
        break
      case 'required':
        for (const name of error.params.requiredProperties) {
          add(`${error.instancePath}/${name}`, 'required', 'This field is required.')
        }
        break
      case 'maximum': {
        const named = schemaAt(schema, error.schemaPath)?.['x-error-above-maximum']
        add(error.instancePath, typeof named === 'string' ? named : 'maximum', sentence(error.message))
        break
      }
      case 'enum':
        add(
          error.instancePath,
          'enum',
          `Expected one of ${error.params.allowedValues.map((one) => JSON.stringify(one)).join(', ')}.`,
        )
        break
      case 'pattern':
        add(error.instancePath, 'pattern', formOf(schemaAt(schema, error.schemaPath)) ?? sentence(error.message))
        break
      case 'format':
        add(error.instancePath, 'format', formats[error.params.format] ?? sentence(error.message))
        break
      default:
        add(error.instancePath, error.keyword, sentence(error.message))
    }
  }
  if (details.size === 0) details.set(root, { field: root || 'body', code: 'invalid', message: 'Not valid.' })
  return [...details.values()]
}

const formats: Readonly<Record<string, string>> = {
  uuid: 'Expected a UUID.',
  date: 'Expected a date, for instance 2026-09-01.',
  'date-time': 'Expected a moment with its time zone, for instance 2026-09-01T00:00:00Z.',
}

/** Patterns that are longer say less than the description beside them. */
const readablePatternMax = 40

/** What a string should look like, in words: its example, and its pattern or its description. */
function formOf(schema: Record<string, unknown> | undefined): string | undefined {
  const example = (schema?.['examples'] as readonly unknown[] | undefined)?.[0]
  if (typeof example !== 'string') return undefined
  const pattern = String(schema?.['pattern'])
  if (pattern.length <= readablePatternMax) return `Expected something like "${example}", matching ${pattern}.`
  return `Expected something like "${example}". ${schema?.['description'] ?? ''}`.trimEnd()
}

function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`
}

/** `/filter/and/0/op` reads `filter.and[0].op`. */
function fieldName(root: string, pointer: string): string {
  const parts = pointer.split('/').slice(1)
  let name = root
  for (const escaped of parts) {
    const part = escaped.replaceAll('~1', '/').replaceAll('~0', '~')
    if (/^\d+$/.test(part)) name += `[${part}]`
    else name += name === '' ? part : `.${part}`
  }
  return name || 'body'
}

function schemaAt(schema: TSchema, schemaPath: string): Record<string, unknown> | undefined {
  let at: unknown = schema
  for (const part of schemaPath.replace(/^#\/?/, '').split('/')) {
    if (part === '') continue
    if (typeof at !== 'object' || at === null) return undefined
    at = (at as Record<string, unknown>)[part]
  }
  return typeof at === 'object' && at !== null ? (at as Record<string, unknown>) : undefined
}

/** The query string as its schema has it. Throws where it does not fit, also for a name that is repeated and takes one value. */
export function checkedQuery(schema: TSchema, raw: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { properties = {} } = schema as { properties?: Record<string, Record<string, unknown>> }
  for (const [name, value] of Object.entries(raw)) {
    if (!Array.isArray(value) || !Object.hasOwn(properties, name) || properties[name]!['type'] === 'array') continue
    throw fail('validation_failed', { field: name, message: 'Send it once: it takes a single value.' })
  }
  const query = fromQueryString(schema, raw)
  assertValid(schema, query)
  return query
}

/**
 * Turns the strings of a query string into what its schema says: integers, booleans, arrays of repeated names. What does
 * not convert stays a string, so that validation names it.
 */
export function fromQueryString(schema: TSchema, raw: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const properties = (schema as { properties?: Record<string, Record<string, unknown>> }).properties ?? {}
  // Without a prototype: `?__proto__=a&__proto__=b` must become a name to refuse, not the prototype of the result.
  const query: Record<string, unknown> = Object.create(null) as Record<string, unknown>
  for (const [name, value] of Object.entries(raw)) {
    query[name] = Object.hasOwn(properties, name) ? convert(properties[name]!, value) : value
  }
  for (const [name, property] of Object.entries(properties)) {
    if (!Object.hasOwn(query, name) && property['default'] !== undefined) query[name] = property['default']
  }
  return query
}

function convert(property: Record<string, unknown>, value: unknown): unknown {
  if (property['type'] === 'array') {
    const items = (property['items'] ?? {}) as Record<string, unknown>
    return (Array.isArray(value) ? value : [value]).map((item) => convert(items, item))
  }
  if (typeof value !== 'string') return value
  if (property['type'] === 'integer' && /^-?\d{1,15}$/.test(value)) return Number(value)
  if (property['type'] === 'boolean' && (value === 'true' || value === 'false')) return value === 'true'
  return value
}
