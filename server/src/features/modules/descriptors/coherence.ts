import { fail } from '../../../kernel/errors.ts'
import type { ModuleValues } from '../module.ts'

/** Values of one record that must fit each other. Each of these throws `field_value_invalid` that names the field. */

/** Has the field a value? */
export function has(values: ModuleValues, fieldKey: string): boolean {
  return (values[fieldKey] ?? null) !== null
}

/** Does the write change the field? On creation: does it set it? */
export function changes(fieldKey: string, after: ModuleValues, before: ModuleValues | undefined): boolean {
  return (after[fieldKey] ?? null) !== (before?.[fieldKey] ?? null)
}

/** Dates and times of one form, which sort as text. Both may be absent; `equal` may they be the same? */
export function requireOrder(values: ModuleValues, first: string, last: string, equal = true): void {
  if (!has(values, first) || !has(values, last)) return
  const from = Date.parse(String(values[first]))
  const to = Date.parse(String(values[last]))
  if (to > from || (equal && to === from)) return
  throw fail('field_value_invalid', { field: last, message: `${last} must come after ${first}.` })
}

/** A name of the IANA time zone database, in any case. */
export function requireTimeZone(values: ModuleValues): void {
  const name = values['timeZone'] ?? null
  if (name === null) return
  try {
    new Intl.DateTimeFormat('en', { timeZone: String(name) })
  } catch (cause) {
    const message = 'Expected the name of a time zone, for instance "Europe/Vienna".'
    throw fail('field_value_invalid', { field: 'timeZone', message, cause })
  }
}

/** Whole minutes from one time to the other, rounded; null where one of them is absent. */
export function minutesBetween(values: ModuleValues, first: string, last: string): number | null {
  if (!has(values, first) || !has(values, last)) return null
  return Math.round((Date.parse(String(values[last])) - Date.parse(String(values[first]))) / 60_000)
}
