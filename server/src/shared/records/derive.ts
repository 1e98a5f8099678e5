import { Failure, fail } from '../../kernel/errors.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import { dataTypeOf } from '../catalogue/data-types.ts'
import type { Field } from '../catalogue/field.ts'
import { BadValue } from '../catalogue/values.ts'
import { same, wireValue } from './change.ts'
import type { FieldValues } from './input.ts'
import type { RecordRow } from './record.ts'
import type { RecordScope } from './scope.ts'

/** What the behaviour of a native object adds to what a client writes (shared/catalogue/behaviour.ts). */

/** With what a creation holds where the body leaves it out. */
export function withDefaults(values: FieldValues, { behaviour, fields }: ObjectDefinition): FieldValues {
  if (!behaviour) return values
  const filled = new Map(values)
  for (const field of fields) {
    const initial = field.behaviour?.default
    if (initial !== undefined && !values.has(field)) filled.set(field, dataTypeOf(field).read(initial, field))
  }
  return filled
}

/**
 * With what the service works out of it. `before` is the row as it is, complete, whatever of it the caller may read;
 * undefined on creation. Throws what the behaviour throws, under the names that the body has for fields.
 */
export function withDerived(
  { access, caller, now }: RecordScope,
  values: FieldValues,
  before: RecordRow | undefined,
  at: string,
): FieldValues {
  const { behaviour, fields } = access.object
  // A write that names no field leaves all of them as they are, those that are worked out too.
  if (!behaviour || (before && values.size === 0)) return values
  const stored = before && Object.fromEntries(fields.map((field) => [field.fieldKey, before[field.column] ?? null]))
  const written = [...values].map(([field, value]) => [field.fieldKey, wireValue(field, value)] as const)
  const moment = { now: new Date(now).toISOString(), userId: caller.user?.userId ?? null }
  const derived = named(access, at, () =>
    read(access.object, behaviour.derive({ ...stored, ...Object.fromEntries(written) }, stored, moment)),
  )
  const all = new Map([...values, ...derived])
  // Sent again as it was: nothing changes, whatever could be worked out of it by now.
  const changes = ([field]: readonly [Field, unknown]) =>
    !before || !same(before[field.column], wireValue(field, all.get(field)))
  return [...values].some(changes) ? all : new Map([...values].map(([field]) => [field, all.get(field)]))
}

/** A field that this application does not have yet is left out: it is added while the service already runs. */
function read({ fieldsByKey }: ObjectDefinition, values: Readonly<Record<string, unknown>>): [Field, unknown][] {
  return Object.entries(values).flatMap(([fieldKey, value]): [Field, unknown][] => {
    const field = fieldsByKey.get(fieldKey)
    if (!field || value === undefined) return []
    if (value === null) return [[field, null]]
    try {
      return [[field, dataTypeOf(field).read(value, field)]]
    } catch (cause) {
      if (!(cause instanceof BadValue)) throw cause
      throw fail('field_value_invalid', { field: fieldKey, message: cause.message, cause })
    }
  })
}

/** Failures name `lines[0].total`; the client wrote `fields.lines[0].total`. What it may not read, it is not told of. */
function named<T>({ readableByKey }: ObjectAccess, at: string, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Failure) || !error.details) throw error
    const details = error.details.filter(({ field }) => readableByKey.has(field.split(/[.[]/)[0]!))
    throw fail(error.code, {
      ...(details.length > 0 && { details: details.map((one) => ({ ...one, field: `${at}.${one.field}` })) }),
      cause: error,
    })
  }
}
