import { type ErrorDetail, fail } from '../../kernel/errors.ts'
import type { AccessProfile } from '../../shared/access/permissions.ts'
import { foldForSearch, wordsOf } from '../../shared/search-text.ts'
import type { Question } from './store.ts'

export interface Filters {
  readonly query?: string
  readonly moduleKey?: readonly string[]
  readonly locationId?: string
}

/**
 * What the caller asks for. Throws `validation_failed` for keys of modules and objects that do not exist, naming each; one
 * that the caller may not read does not exist.
 */
export function questionOf(profile: AccessProfile, { query, moduleKey, locationId }: Filters): Question {
  const searched = query === undefined || query.trim() === '' ? undefined : query
  return {
    accesses: moduleKey === undefined ? [...profile.objects.values()] : named(profile, moduleKey),
    locationId,
    words: searched === undefined ? undefined : { ...wordsOf(searched, 'query'), whole: foldForSearch(searched) },
  }
}

function named(profile: AccessProfile, moduleKeys: readonly string[]) {
  const details = moduleKeys.flatMap((key, index): ErrorDetail[] =>
    profile.objects.has(key)
      ? []
      : [{ field: `moduleKey[${index}]`, code: 'enum', message: 'There is no such module or object.' }],
  )
  if (details.length > 0) throw fail('validation_failed', { details })
  return [...new Set(moduleKeys)].map((key) => profile.objects.get(key)!)
}
