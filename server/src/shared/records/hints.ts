import { closest } from '../../kernel/closest.ts'
import type { ObjectAccess } from '../access/permissions.ts'

/**
 * What to say of a name that leads nowhere: the name, and the one that was probably meant. Only names that the caller may
 * read are proposed, so a hint tells nothing that `schema` does not.
 */
export function noSuchField(name: unknown, access: ObjectAccess): string {
  if (typeof name !== 'string') return 'Expected the key of a field.'
  const shown = name.length > 60 ? `${name.slice(0, 60)}…` : name
  const meant = closest(name, [...access.readableByKey.keys()])
  return `There is no field ${JSON.stringify(shown)}.${meant === undefined ? '' : ` Did you mean ${JSON.stringify(meant)}?`}`
}
