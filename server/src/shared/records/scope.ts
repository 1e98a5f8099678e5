import { fail } from '../../kernel/errors.ts'
import { accessProfile } from '../access/permissions.ts'
import type { Context } from '../context.ts'
import type { FilterScope } from './filter.ts'

/** A caller at work on one object: what it may do there, in this transaction, at this moment. */
export interface RecordScope extends FilterScope {
  readonly tx: Context['tx']
}

/** What work on records takes of the context of an operation, whichever host it answers on. */
export type RecordContext = Pick<Context, 'caller' | 'tx' | 'now' | 'catalogue'>

/** An object that the caller may not read answers as one that does not exist. */
export async function recordScope(context: RecordContext, objectKey: string): Promise<RecordScope> {
  const { caller, tx, now } = context
  const known = context.catalogue.modelFor(tx, caller)
  // Awaiting a known model would send BEGIN on its way before the first statement can join it.
  const profile = accessProfile(known instanceof Promise ? await known : known, caller)
  const access = profile.objects.get(objectKey)
  if (!access) throw fail('object_not_found')
  return { caller, tx, now, profile, access }
}
