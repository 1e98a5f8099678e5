import { type ErrorCode, type ErrorDetail, Failure, fail } from '../../kernel/errors.ts'
import { assertValid } from '../../kernel/validation.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import { dataTypeOf, isReadOnly } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'
import { BadValue } from '../catalogue/values.ts'
import { asWritten } from '../catalogue/written.ts'
import { noSuchField } from './hints.ts'

/** Reading what a client wants to write: names, rights, types, limits, required fields. Nothing here touches the database. */
export interface WriteBody {
  readonly fields?: Readonly<Record<string, unknown>>
  readonly ownerUserId?: string | null
  readonly dataRoleId?: string | null
  readonly locationId?: string | null
  readonly externalKey?: string | null
  /** User ids; replaces those that the record has. */
  readonly participants?: readonly string[]
}

/** Normalised values by field, ready for the database; null clears. */
export type FieldValues = ReadonlyMap<Field, unknown>

/**
 * Reads `fields`. Collects every problem before it refuses, so that a form can show them all. A field that the caller may
 * not read is an unknown field; one that it reads but may not write is a denial.
 */
export function readFields(raw: Readonly<Record<string, unknown>>, access: ObjectAccess, at: string): FieldValues {
  const values = new Map<Field, unknown>()
  const details: ErrorDetail[] = []
  for (const [key, value] of Object.entries(raw)) {
    const refuse = (code: ErrorCode, message: string) => details.push({ field: `${at}.${key}`, code, message })
    const field = access.readableByKey.get(key)
    if (!field) refuse('unknown_field', noSuchField(key, access))
    else if (isReadOnly(field)) refuse('field_read_only', 'The service sets this field.')
    else if (!access.writableKeys.has(key)) refuse('permission_denied', 'You may not write this field.')
    else if (value === null) values.set(field, null)
    else {
      try {
        values.set(field, shaped(field, dataTypeOf(field).read(value, field), `${at}.${key}`))
      } catch (error) {
        if (error instanceof BadValue) refuse('field_value_invalid', error.message)
        else if (error instanceof Failure && error.details) details.push(...error.details.map(ofValue))
        else throw error
      }
    }
  }
  refuseIfAny(details)
  return values
}

/** A json value whose shape is known, held against it; without what the service works out in it. */
function shaped(field: Field, value: unknown, at: string): unknown {
  const schema = field.behaviour?.schema
  if (!schema) return value
  const written = asWritten(schema, value)
  assertValid(schema, written, at)
  return written
}

/** Schemas tell problems by their keywords; of a value of a field there are these two. */
function ofValue(detail: ErrorDetail): ErrorDetail {
  return detail.code === 'unknown_field' ? detail : { ...detail, code: 'field_value_invalid' }
}

/** On creation every required field needs a value; on update none may be cleared. */
export function requireValues(values: FieldValues, access: ObjectAccess, at: string, creating: boolean): void {
  const details: ErrorDetail[] = []
  for (const field of access.object.fields) {
    if (!field.required || (creating ? (values.get(field) ?? null) !== null : values.get(field) !== null)) continue
    // A required field that the caller may not write: it cannot create this record, and need not learn why.
    if (!access.writableKeys.has(field.fieldKey)) throw fail('permission_denied')
    const message = 'This field needs a value.'
    details.push({ field: `${at}.${field.fieldKey}`, code: 'required_field_missing', message })
  }
  refuseIfAny(details)
}

function refuseIfAny(details: readonly ErrorDetail[]): void {
  const [first] = details
  if (!first) return
  // A denial says least; a name that is wrong says more than a value that is.
  const order: ErrorCode[] = ['unknown_field', 'field_read_only', 'required_field_missing', 'field_value_invalid']
  const code = order.find((candidate) => details.some((detail) => detail.code === candidate)) ?? 'permission_denied'
  throw fail(code, { details })
}

export interface Placed {
  readonly ownerUserId: string | null
  readonly dataRoleId: string | null
  readonly locationId: string | null
}

/** Naming an owner takes the record from its role, and the reverse; naming both is a contradiction. */
export function placementAfter(body: WriteBody, before: Placed): Placed {
  if (body.ownerUserId && body.dataRoleId) throw fail('ownership_conflict', { field: 'dataRoleId' })
  const ownerUserId = body.ownerUserId === undefined ? (body.dataRoleId ? null : before.ownerUserId) : body.ownerUserId
  const dataRoleId = body.dataRoleId === undefined ? (body.ownerUserId ? null : before.dataRoleId) : body.dataRoleId
  const locationId = body.locationId === undefined ? before.locationId : body.locationId
  return {
    ownerUserId: ownerUserId?.toLowerCase() ?? null,
    dataRoleId: dataRoleId?.toLowerCase() ?? null,
    locationId: locationId?.toLowerCase() ?? null,
  }
}

export const nowhere: Placed = { ownerUserId: null, dataRoleId: null, locationId: null }

/** Guards against lost updates: by the body or by If-Match, and never by two that differ. */
export function requireRevision(current: number, expected: number | undefined, ifMatch: number | undefined): void {
  for (const [field, wanted] of [
    ['expectedRevision', expected],
    ['If-Match', ifMatch],
  ] as const) {
    if (wanted !== undefined && wanted !== current) {
      throw fail('revision_conflict', {
        field,
        message: `The current revision is ${current}.`,
        headers: { etag: `"${current}"` },
      })
    }
  }
}
