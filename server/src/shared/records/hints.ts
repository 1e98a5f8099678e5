import { closest } from '../../kernel/closest.ts'
import type { AccessProfile, ObjectAccess } from '../access/permissions.ts'
import { hopsFrom } from '../relationships/definitions.ts'

/**
 * What to say of a name that leads nowhere: the name, and the one that was probably meant. Only names that the caller may
 * read are proposed, so a hint tells nothing that `schema` does not.
 */
export function noSuchField(name: unknown, access: ObjectAccess): string {
  return noSuch('field', name, [...access.readableByKey.keys()])
}

/** The same of a name in `related` or `expand`, which may also be that of a relationship. */
export function noSuchHop(name: unknown, access: ObjectAccess, profile: AccessProfile): string {
  const hops = hopsFrom(access, profile).flatMap(({ name, definition }) => [definition.relationshipKey, name])
  return noSuch('field or relationship', name, [...access.readableByKey.keys(), ...hops])
}

/** The same of a name of anything else: `known` must be what the caller may know. */
export function noSuch(what: string, name: unknown, known: readonly string[]): string {
  if (typeof name !== 'string') return `Expected the key of a ${what}.`
  const shown = name.length > 60 ? `${name.slice(0, 60)}…` : name
  const meant = closest(name, known)
  return `There is no ${what} ${JSON.stringify(shown)}.${meant === undefined ? '' : ` Did you mean ${JSON.stringify(meant)}?`}`
}
