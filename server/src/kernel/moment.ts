import { fail } from './errors.ts'

const first = Date.parse('0001-01-01T00:00:00.000Z')
const last = Date.parse('9999-12-31T23:59:59.999Z')

/**
 * Reads a moment that fits the schema `Timestamp`, in milliseconds. Throws `validation_failed` naming `field` for what RFC
 * 3339 allows and a clock or a database does not know: leap seconds, and offsets that lead out of the years 0001 to 9999.
 */
export function momentOf(text: string, field: string): number {
  const moment = Date.parse(text)
  if (moment >= first && moment <= last) return moment
  throw fail('validation_failed', { field, message: 'Must be a moment of the years 0001 to 9999, not a leap second.' })
}
