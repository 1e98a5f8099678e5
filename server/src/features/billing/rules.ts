import { fail } from '../../kernel/errors.ts'
import { dayOf } from '../../shared/usage/snapshots.ts'

const dayMs = 24 * 60 * 60 * 1000
const daysDefault = 30
export const daysMax = 92
/** Nothing was measured before, and databases know no year 0. */
const firstDay = '1970-01-01'

export interface Period {
  readonly from: string
  readonly to: string
}

/** The days that were asked for, both included; the last 30 unless said otherwise. `now` in milliseconds. */
export function periodOf({ from, to }: Partial<Period>, now: number): Period {
  const last = to ?? dayOf(now)
  if (last < firstDay) throw fail('validation_failed', { field: 'to', message: `Must not be before ${firstDay}.` })
  const first = from ?? dayOf(Date.parse(last) - (daysDefault - 1) * dayMs)
  const days = (Date.parse(last) - Date.parse(first)) / dayMs + 1
  if (days < 1) throw fail('validation_failed', { field: 'from', message: 'Must not be later than `to`.' })
  if (days > daysMax) {
    throw fail('validation_failed', { field: 'from', message: `At most ${daysMax} days can be asked for at once.` })
  }
  return { from: first, to: last }
}
