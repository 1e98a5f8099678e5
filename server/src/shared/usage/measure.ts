import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import { isContention, isTimeout } from '../database/failures.ts'
import { type MeasuredApplication, measuredKeys, type ResourceKey, resourceOf } from './resources.ts'

export interface Figure {
  readonly resourceKey: ResourceKey
  readonly quantity: number
}

/**
 * What an application of the bound account has now, exactly. A figure that could not be made in time is absent, never zero.
 *
 * @param day in UTC: what is counted by day is told for this one
 * @param withinMs the longest that each figure may take; asked before each, and none is made when nothing is left
 */
export async function measureApplication(
  tx: Tx,
  application: MeasuredApplication,
  day: string,
  withinMs: () => number,
  keys: readonly ResourceKey[] = measuredKeys,
): Promise<Figure[]> {
  const figures: Figure[] = []
  for (const resourceKey of keys) {
    const limitMs = Math.floor(withinMs())
    if (limitMs <= 0) break
    const quantity = await tx
      .savepoint(() => measureWithin(tx, application, { resourceKey, day, limitMs }))
      .catch(absentIfLate)
    if (quantity !== undefined) figures.push({ resourceKey, quantity })
  }
  return figures
}

async function measureWithin(
  tx: Tx,
  application: MeasuredApplication,
  { resourceKey, day, limitMs }: { readonly resourceKey: ResourceKey; readonly day: string; readonly limitMs: number },
): Promise<number | undefined> {
  // In one turn, hence in one transaction, also where each turn of a read is one of its own.
  const [, quantity] = await Promise.all([
    tx.rows(sql`SELECT set_config('statement_timeout', ${String(limitMs)}, true)`),
    resourceOf(resourceKey).measure?.(tx, application, day),
  ])
  return quantity
}

function absentIfLate(error: unknown): undefined {
  // In the background somebody else's lock ends the wait before the time limit does.
  if (!isTimeout(error) && !isContention(error)) throw error
}
