import { fail } from '../../../kernel/errors.ts'
import type { ModuleField, ModuleValues } from '../module.ts'
import { text } from './fields.ts'

/** Repetition as calendars write it: the value of an RRULE (RFC 5545, 3.3.10), without time parts below the day. */
const weekday = '(MO|TU|WE|TH|FR|SA|SU)'
const listOf = (item: string) => `${item}(,${item})*`
const rules = [
  '(INTERVAL|COUNT)=[1-9][0-9]{0,3}',
  'UNTIL=[0-9]{8}(T[0-9]{6}Z)?',
  `WKST=${weekday}`,
  `BYDAY=${listOf(`([+-]?[1-9][0-9]?)?${weekday}`)}`,
  `BYMONTHDAY=${listOf('-?([1-9]|[12][0-9]|3[01])')}`,
  `BYMONTH=${listOf('([1-9]|1[0-2])')}`,
  `BYSETPOS=${listOf('-?[1-9][0-9]{0,2}')}`,
]

export const recurrencePattern = `FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;(${rules.join('|')}))*`

export function recurrence(description: string): ModuleField {
  return text(
    'recurrence',
    'Recurrence',
    `${description} An RFC 5545 recurrence rule, without "RRULE:".`,
    'FREQ=WEEKLY;BYDAY=MO;COUNT=10',
    { pattern: recurrencePattern, maxLength: 500 },
  )
}

/** What the pattern cannot say: each part once, and an end by number or by time, not by both. */
export function requireRecurrence(values: ModuleValues): void {
  const rule = values['recurrence'] ?? null
  if (rule === null) return
  const names = String(rule)
    .split(';')
    .map((part) => part.split('=')[0]!)
  if (new Set(names).size !== names.length) refuse('Name each part of the rule once.')
  if (names.includes('COUNT') && names.includes('UNTIL')) refuse('Give COUNT or UNTIL, not both.')
}

function refuse(message: string): never {
  throw fail('field_value_invalid', { field: 'recurrence', message })
}
