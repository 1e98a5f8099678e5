import sql, { type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import type { Words } from '../search-text.ts'
import { searchTagsOf } from './search-document.ts'

/** What is searched for, and where. */
export interface SearchQuestion {
  readonly accesses: readonly ObjectAccess[]
  /** Only records of this location; undefined: of any. */
  readonly locationId?: string | undefined
  /** `whole`: all that was searched for, folded; titles that are similar to it are found where nothing holds the words. */
  readonly words?: (Words & { readonly whole?: string }) | undefined
}

/** The question of a caller as the functions of search take it (`portico.search_question`). */
export function questionSql(caller: Caller, { accesses, locationId, words }: SearchQuestion): Sql {
  const { organizationId, user, dataRoleIds, locationIds, unrestricted } = caller
  const isTitled = ({ object, readableByKey }: ObjectAccess) => readableByKey.has(object.nameField.fieldKey)
  const question = {
    organization: organizationId,
    objects: accesses.map(({ object }) => object.objectId),
    tags: accesses.map(searchTagsOf),
    titled: accesses.filter(isTitled).map(({ object }) => object.objectId),
    audience: unrestricted ? null : [organizationId, ...(user ? [user.userId] : []), ...dataRoleIds],
    user_id: user?.userId ?? null,
    data_role_ids: dataRoleIds,
    location_ids: locationIds === 'all' ? null : locationIds,
    only_location: locationId ?? null,
    ...words,
  }
  return sql`json_populate_record(NULL::portico.search_question, ${JSON.stringify(question)}::json)`
}
