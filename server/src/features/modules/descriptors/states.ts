import { isDeepStrictEqual } from 'node:util'
import { fail } from '../../../kernel/errors.ts'
import { asWritten } from '../../../shared/catalogue/written.ts'
import type { ModuleDescriptor, ModuleField, ModuleStates, ModuleValues } from '../module.ts'
import { Decimal } from './decimal.ts'

/** What holds of the states of every module: where a record may go, what is final there, when it came there. */

/** The state that values are in; without one, the first. */
export function stateOf(states: ModuleStates, values: ModuleValues): string {
  return String(values[states.field] ?? states.initial)
}

/** Throws `state_transition_invalid`, naming the field and the states that it could go to. */
export function requireTransition(
  states: ModuleStates | undefined,
  after: ModuleValues,
  before: ModuleValues | undefined,
): void {
  if (!states) return
  const to = stateOf(states, after)
  const from = before && stateOf(states, before)
  if (to === from) return
  const allowed = from === undefined ? [states.initial, ...(states.createdIn ?? [])] : (states.transitions[from] ?? [])
  if (allowed.includes(to)) return
  const targets = allowed.length === 0 ? 'nowhere: it is final' : allowed.map((one) => JSON.stringify(one)).join(', ')
  const message =
    from === undefined
      ? `A record is created in ${targets}, not in ${JSON.stringify(to)}.`
      : `From ${JSON.stringify(from)} it can go to ${targets}. It cannot go to ${JSON.stringify(to)}.`
  throw fail('state_transition_invalid', { field: states.field, message })
}

/** The fields of `times` that change with this write. */
export function timesOfStates(
  states: ModuleStates | undefined,
  after: ModuleValues,
  before: ModuleValues | undefined,
  now: string,
): ModuleValues {
  if (!states?.times) return {}
  const to = stateOf(states, after)
  const from = before && stateOf(states, before)
  const times: Record<string, string | null> = {}
  for (const [field, { entering, clearedIn = [] }] of Object.entries(states.times)) {
    if (entering.includes(to) && (from === undefined || !entering.includes(from))) times[field] = now
    else if (clearedIn.includes(to)) times[field] = null
  }
  return times
}

/** Throws `field_locked` for the first field whose value is final in these states and would change. */
export function requireUnlocked(
  { states, fields }: Pick<ModuleDescriptor, 'states' | 'fields'>,
  after: ModuleValues,
  before: ModuleValues | undefined,
): void {
  if (!states || !before) return
  const from = stateOf(states, before)
  const to = stateOf(states, after)
  for (const field of fields) {
    if (!field.lockedIn?.includes(from) || !field.lockedIn.includes(to)) continue
    if (isSame(field, before[field.fieldKey] ?? null, after[field.fieldKey] ?? null)) continue
    const message = `${field.label} cannot change while ${states.field} is ${JSON.stringify(from)}.`
    throw fail('field_locked', { field: field.fieldKey, message })
  }
}

function isSame({ dataType, schema }: ModuleField, one: unknown, other: unknown): boolean {
  if (dataType === 'decimal' && typeof one === 'string' && typeof other === 'string') return new Decimal(one).eq(other)
  return schema ? isDeepStrictEqual(asWritten(schema, one), asWritten(schema, other)) : isDeepStrictEqual(one, other)
}
