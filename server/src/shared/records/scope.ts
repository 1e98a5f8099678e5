import { fail } from '../../kernel/errors.ts'
import { type AccessProfile, accessProfile, withinScopes } from '../access/permissions.ts'
import type { Context } from '../context.ts'
import type { FilterScope } from './filter.ts'

/** A caller at work on one object: what it may do there, in this transaction, at this moment. */
export interface RecordScope extends FilterScope {
  readonly tx: Context['tx']
}

/** What work on records takes of the context of an operation, whichever host it answers on. */
export type RecordContext = Pick<Context, 'caller' | 'tx' | 'now' | 'catalogue'>

/**
 * What the caller may do with each object. Not a promise where the model is known: awaiting it would send BEGIN on its way
 * before the first statement can join it.
 */
export function profileOf({ catalogue, caller, tx }: RecordContext): AccessProfile | Promise<AccessProfile> {
  const known = catalogue.modelFor(tx, caller)
  return known instanceof Promise ? known.then((model) => accessProfile(model, caller)) : accessProfile(known, caller)
}

/** An object that the caller may not read answers as one that does not exist; scopes narrow what there is of it. */
export async function recordScope(context: RecordContext, objectKey: string): Promise<RecordScope> {
  const { caller, tx, now } = context
  const known = profileOf(context)
  const profile = withinScopes(known instanceof Promise ? await known : known, caller)
  const access = profile.objects.get(objectKey)
  if (!access) throw fail('object_not_found')
  return { caller, tx, now, profile, access }
}
