import type { TSchema } from 'typebox'
import type { ErrorCode } from '../../src/kernel/errors.ts'
import { bodyBytesDefault, type Operation } from '../../src/kernel/operation.ts'
import { fromQueryString, validatorOf } from '../../src/kernel/validation.ts'
import type { Sent } from './http-client.ts'

/** Input that breaks a schema, made from the schema itself: each value breaks it in one place, which an answer must name. */
export interface Broken {
  readonly label: string
  readonly value: unknown
  /** The field to be named, or something inside it. */
  readonly field: string
}

interface SchemaView {
  readonly type?: string
  readonly properties?: Readonly<Record<string, TSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: unknown
  readonly items?: TSchema
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
}

/** Ways to break a body that is good as it stands. */
export function brokenBodies(schema: TSchema, good: unknown): Broken[] {
  const wholes = [null, [], [good], 'text', 5, true]
  return [
    ...wholes.map((value) => ({ label: `the body is ${JSON.stringify(value).slice(0, 20)}`, value, field: 'body' })),
    ...brokenParts(schema, good, ''),
  ]
}

function brokenParts(schema: TSchema, good: unknown, at: string): Broken[] {
  const { properties, items } = schema as SchemaView
  if (items && Array.isArray(good) && good.length > 0) {
    return brokenParts(items, good[0], `${at}[0]`).map((broken) => ({
      ...broken,
      value: [broken.value, ...good.slice(1)],
    }))
  }
  if (!properties || typeof good !== 'object' || good === null) return []
  return brokenProperties(schema as SchemaView, good as Record<string, unknown>, at)
}

function brokenProperties(schema: SchemaView, good: Readonly<Record<string, unknown>>, at: string): Broken[] {
  const { properties = {}, required = [] } = schema
  const named = (name: string) => (at === '' ? name : `${at}.${name}`)
  const broken: Broken[] = []
  if (schema.additionalProperties === false) {
    for (const name of ['surprise', 'constructor', 'toString', 'organizationId']) {
      if (Object.hasOwn(properties, name)) continue
      broken.push({ label: `${named(name)} is unknown`, value: { ...good, [name]: 'x' }, field: named(name) })
    }
  }
  for (const name of required) {
    const { [name]: _, ...rest } = good
    broken.push({ label: `${named(name)} is missing`, value: rest, field: named(name) })
  }
  for (const [name, property] of Object.entries(properties)) {
    for (const value of wrongValues(property, good[name])) {
      const label = `${named(name)} is ${JSON.stringify(value).slice(0, 40)}`
      broken.push({ label, value: { ...good, [name]: value }, field: named(name) })
    }
    for (const inner of brokenParts(property, good[name], named(name))) {
      broken.push({ ...inner, value: { ...good, [name]: inner.value } })
    }
  }
  return broken
}

/** Values of every type and just beyond every limit, as far as the schema refuses them. */
function wrongValues(schema: TSchema, good: unknown): unknown[] {
  const { minimum, maximum, maxLength, maxItems } = schema as SchemaView
  const item = Array.isArray(good) ? good[0] : 'x'
  const candidates = [
    ...[null, true, 7, 1.5, -1, 1e300, 'not it', '', [], {}, [null], ['x', 'x', 'x', 'x'], { a: 1 }],
    ...(minimum === undefined ? [] : [minimum - 1]),
    ...(maximum === undefined ? [] : [maximum + 1]),
    ...(maxLength === undefined ? [] : ['x'.repeat(maxLength + 1)]),
    ...(maxItems === undefined ? [] : [Array.from({ length: maxItems + 1 }, () => item)]),
  ]
  return candidates.filter((value) => !validatorOf(schema).Check(value))
}

/** Query strings that break the schema; without one, everything does. */
export function brokenQueries(schema: TSchema | undefined): { readonly query: string; readonly field: string }[] {
  const { properties = {} } = (schema ?? {}) as SchemaView
  const names = ['surprise', '__proto__', 'constructor', 'fields[]', 'saasAppId', 'token']
  const unknown = names.filter((name) => !Object.hasOwn(properties, name))
  const broken = unknown.map((name) => ({ query: `${encodeURIComponent(name)}=1`, field: name }))
  for (const name of Object.keys(properties)) {
    const values = ['not it', '', '-1', '0', '1.5', '1e3', '201', '99999999999999999999', 'x'.repeat(5000)]
    for (const raw of [...values, ['1', '1']]) {
      if (validatorOf(schema!).Check(fromQueryString(schema!, { [name]: raw }))) continue
      const query = [raw].flat().map((value) => `${name}=${encodeURIComponent(value)}`)
      broken.push({ query: query.join('&'), field: name })
    }
  }
  return broken
}

/** Values of one path parameter that break the schema, ready to stand in a path. */
export function brokenParameters(schema: TSchema, name: string, good: string): string[] {
  const property = (schema as SchemaView).properties?.[name]
  if (!property) throw new Error(`The path has no parameter ${name}.`)
  const { maxLength = 0 } = property as SchemaView
  const candidates = ['not-a-uuid', '0', good.slice(0, -1), `${good}0`, `${good.slice(0, -1)}g`, '\0', '\u{1F600}\x7f']
  const values = [...candidates, 'x'.repeat(maxLength + 1)]
  // Without a value there is no such route.
  return values.filter((value) => value !== '' && !validatorOf(property).Check(value))
}

/** Values of If-Match that are no revision. */
export const brokenRevisions = ['x', '""', '"x"', 'W/"1"', '1', '"1", "2"', '"-1"', '"1e3"', `"${'9'.repeat(40)}"`]

export const brokenIdempotencyKeys = ['two words', 'x'.repeat(256), 'schlüssel', 'a\tb', '']

/** Bodies that are no JSON of bounded size, and how each is refused. */
export function brokenJson(
  operation: Pick<Operation, 'bodyBytesMax' | 'bodyOptional'>,
): readonly (readonly [sent: Sent, code: ErrorCode])[] {
  const bytesMax = operation.bodyBytesMax ?? bodyBytesDefault
  return [
    [{ raw: '{"a":' }, 'invalid_json'],
    [{ raw: 'undefined' }, 'invalid_json'],
    [{ raw: Buffer.from([0x22, 0xff, 0x22]) }, 'invalid_json'],
    [{ raw: '{"__proto__":{}}' }, 'invalid_json'],
    [{ raw: '['.repeat(Math.min(bytesMax, 1_000_000)) }, 'json_too_deep'],
    [{ raw: Buffer.alloc(bytesMax + 1, 0x20) }, 'payload_too_large'],
    [{ raw: '{}', headers: { 'content-type': 'text/plain' } }, 'unsupported_media_type'],
    [{ raw: '{}', headers: { 'content-type': undefined } }, 'unsupported_media_type'],
    [{ raw: '{}', headers: { 'content-type': 'application/json; charset=utf-16' } }, 'unsupported_media_type'],
    [{ raw: '{}', headers: { 'content-encoding': 'gzip' } }, 'unsupported_media_type'],
    ...(operation.bodyOptional ? [] : [[{ raw: '' }, 'invalid_json'] as const]),
  ]
}
