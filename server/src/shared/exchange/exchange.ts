import { fail } from '../../kernel/errors.ts'
import type { Scope } from '../../kernel/scopes.ts'
import { type RecordContext, type RecordScope, recordScope } from '../records/scope.ts'

/** Whose records come or go: those of an object, or, by its own operations, of a native module. */
export interface Exchanged {
  readonly objectKey: string
  /** By the operations of the module: an object of the application that has taken its name is not it. */
  readonly native: boolean
}

/** The operation that an import or export is, and the scope that it needs. */
export interface Exchange extends Exchanged {
  readonly scope: Scope
}

export async function exchangeScope(context: RecordContext, { objectKey, native }: Exchanged): Promise<RecordScope> {
  const scope = await recordScope(context, objectKey)
  if (native && scope.access.object.kind !== 'native') throw fail('object_not_found')
  return scope
}
