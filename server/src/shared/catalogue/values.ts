import { isUuid } from '../../kernel/ids.ts'
import type { Field } from './field.ts'
import { compiledPattern } from './patterns.ts'

/**
 * Reading values that a client sends: each reader returns the normalised value as it is stored, or throws `BadValue` with
 * a sentence that says what is expected. `null` never reaches a reader.
 */
export class BadValue extends Error {
  override readonly name = 'BadValue'
}

function expected(what: string): never {
  throw new BadValue(`Expected ${what}.`)
}

export function readText(value: unknown, field: Field, longest: number): string {
  if (typeof value !== 'string') expected('a string')
  requireStorable(value)
  const { minLength = 0, pattern } = field.validation
  const maxLength = Math.min(field.validation.maxLength ?? longest, longest)
  const length = lengthOf(value)
  if (length < minLength || length > maxLength) expected(`${minLength} to ${maxLength} characters`)
  // One that is too large holds for nothing: to try it would stop the service for all.
  if (pattern !== undefined && !compiledPattern(pattern)?.matches(value)) expected(`text that matches ${pattern}`)
  return value
}

/** Characters as JSON Schema and PostgreSQL count them: a surrogate pair is one. */
function lengthOf(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff]/g)?.length ?? 0)
}

/** PostgreSQL stores neither U+0000 nor half a surrogate pair; the driver would replace the latter silently. */
function requireStorable(text: string): void {
  if (text.includes('\0')) expected('text without the character U+0000')
  if (!text.isWellFormed()) expected('well-formed Unicode (no lone surrogates)')
}

const int64Min = -(2n ** 63n)
const int64Max = 2n ** 63n - 1n

/** A JSON integer, or a string of digits where it goes beyond 2^53 (contract 0). Stored as text: int8 is wider. */
export function readInteger(value: unknown, field: Field): string {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return withinRange(value, String(value), field)
  if (typeof value === 'string' && /^-?\d{1,19}$/.test(value)) {
    const wide = BigInt(value)
    if (wide >= int64Min && wide <= int64Max) return withinRange(Number(wide), String(wide), field)
  }
  expected('an integer (a string of digits beyond 2^53)')
}

export function readFloat(value: unknown, field: Field): number {
  if (typeof value !== 'number' || !Number.isFinite(value)) expected('a number')
  return withinRange(value, Object.is(value, -0) ? 0 : value, field)
}

/** A JSON number is a double, which surely keeps fifteen digits of what was written; of more it may have made others. */
function isSurelyMeant(value: number): boolean {
  return String(value).replaceAll(/^-?[0.]*|\./g, '').length <= 15
}

/** Exact: at most 38 digits, 18 of them after the point. The scale that was sent is kept ("12.50" stays "12.50"). */
export function readDecimal(value: unknown, field: Field): string {
  const text = typeof value === 'number' && isSurelyMeant(value) ? String(value) : value
  const match = typeof text === 'string' ? /^(-?)0*(\d+)(?:\.(\d{1,18}))?$/.exec(text) : null
  if (!match) expected('a decimal number as a string, for instance "12.50"')
  const [, sign, whole, fraction = ''] = match
  const scaleMax = field.validation.scale ?? 18
  if (whole!.length + fraction.length > 38) expected('at most 38 digits')
  if (fraction.length > scaleMax) expected(`at most ${scaleMax} digits after the point`)
  const digits = fraction === '' ? whole! : `${whole}.${fraction}`
  return withinRange(Number(text), /^[0.]+$/.test(digits) ? digits : `${sign}${digits}`, field)
}

function withinRange<T>(number: number, stored: T, { validation: { minimum, maximum } }: Field): T {
  if (minimum !== undefined && number < minimum) expected(`at least ${minimum}`)
  if (maximum !== undefined && number > maximum) expected(`at most ${maximum}`)
  return stored
}

export function readBoolean(value: unknown): boolean {
  if (typeof value !== 'boolean') expected('true or false')
  return value
}

/** A calendar date, `2026-09-14`, in the years 0001 to 9999. */
export function readDate(value: unknown): string {
  if (typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value) && !value.startsWith('0000')) {
    const date = new Date(`${value}T00:00:00.000Z`)
    // Date rolls the 31st of June over to July; what comes back must be what was sent.
    if (!Number.isNaN(date.getTime()) && date.toISOString().startsWith(value)) return value
  }
  expected('a date, for instance "2026-09-14"')
}

const dateTimeShape =
  /^(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/** RFC 3339 with an offset; kept in UTC with milliseconds. */
export function readDateTime(value: unknown): string {
  const match = typeof value === 'string' ? dateTimeShape.exec(value) : null
  if (match) {
    readDate(match[1])
    const date = new Date((value as string).toUpperCase())
    const year = date.getUTCFullYear()
    if (!Number.isNaN(date.getTime()) && year >= 1 && year <= 9999) return date.toISOString()
  }
  expected('a time with an offset, for instance "2026-09-14T09:30:00Z"')
}

export function readOption(value: unknown, field: Field): string {
  if (typeof value === 'string' && field.options?.some((option) => option.value === value)) return value
  expected(`one of ${(field.options ?? []).map((option) => JSON.stringify(option.value)).join(', ')}`)
}

export function readOptions(value: unknown, field: Field): string[] {
  if (!Array.isArray(value) || value.length > 200) expected('a list of at most 200 options')
  const chosen = value.map((item) => readOption(item, field))
  if (new Set(chosen).size !== chosen.length) expected('each option once')
  return chosen
}

const emailShape = /^[^\s@"(),:;<>[\\\]\p{Cc}]+@[^\s@"(),:;<>[\\\]\p{Cc}]+\.[^\s@"(),:;<>[\\\]\p{Cc}.]+$/u

export function readEmail(value: unknown, field: Field): string {
  const text = readText(value, field, 254)
  if (!emailShape.test(text)) expected('an e-mail address')
  return text
}

export function readPhone(value: unknown, field: Field): string {
  const text = readText(value, field, 40)
  if (!/^\+?[\d\s().\-/]{3,}(?:\s*(?:x|ext\.?)\s*\d{1,8})?$/i.test(text) || !/\d{3}/.test(text.replace(/\D/g, ''))) {
    expected('a telephone number')
  }
  return text
}

export function readUrl(value: unknown, field: Field): string {
  const text = readText(value, field, 2048)
  const url = URL.canParse(text) ? new URL(text) : undefined
  if ((url?.protocol !== 'https:' && url?.protocol !== 'http:') || Buffer.byteLength(text) > 2048) {
    expected('an http or https address of at most 2048 bytes')
  }
  return text
}

const jsonBytesMax = 65_536
const jsonDepthMax = 32

export function readJson(value: unknown): unknown {
  requireStorableJson(value)
  if (Buffer.byteLength(JSON.stringify(value)) > jsonBytesMax) expected(`JSON of at most ${jsonBytesMax} bytes`)
  return value
}

/** Level by level, so that no depth is too deep for the check itself. */
function requireStorableJson(root: unknown): void {
  let level: unknown[] = [root]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth === jsonDepthMax) expected(`JSON at most ${jsonDepthMax} levels deep`)
    const next: unknown[] = []
    for (const value of level) {
      if (typeof value === 'string') requireStorable(value)
      // JSON.parse makes Infinity of 1e400, and JSON.stringify would make null of that.
      else if (typeof value === 'number' && !Number.isFinite(value))
        expected('JSON with numbers in the range of a double')
      else if (typeof value === 'object' && value !== null) {
        if (!Array.isArray(value)) Object.keys(value).forEach(requireStorable)
        for (const inner of Object.values(value)) next.push(inner)
      }
    }
    level = next
  }
}

export function readUuid(value: unknown): string {
  if (!isUuid(value)) expected('a UUID')
  return value.toLowerCase()
}
