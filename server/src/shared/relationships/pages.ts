import type { Static } from 'typebox'
import { fail } from '../../kernel/errors.ts'
import type { Context } from '../context.ts'
import { pageOf } from '../cursors.ts'
import { findRecord } from '../records/read-store.ts'
import type { RecordScope } from '../records/scope.ts'
import { type Relationship, relationshipsOf } from './definitions.ts'
import type { LinkScope } from './link-changes.ts'
import { findLinks, findNames, type LinkChoice, type LinkRow } from './link-store.ts'
import { requireRelationship } from './linking.ts'
import type { LinkQuery, RelatedQuery } from './schema.ts'
import { linkView, otherEnd, relatedView } from './views.ts'

type Paging = Pick<Context, 'cursors'>
type PageQuery = Static<typeof RelatedQuery>

/** One page of the links that the caller sees, the latest first. Throws `reference_not_found` for an unknown relationship. */
export async function linksPage(context: Paging, scope: LinkScope, query: Static<typeof LinkQuery>) {
  const relationships = chosen(scope, query)
  const { rows, nextCursor } = await linkPage(context, scope, relationships, query, query)
  return { items: rows.map((row) => linkView(row, definedBy(relationships, row))), nextCursor }
}

/**
 * One page of what a record is related to, from either end, the latest related first. A record that the caller does not see is
 * not found; an archived one is related to nothing while it is.
 */
export async function relatedPage(context: Paging, scope: RecordScope, recordId: string, query: PageQuery) {
  const { tx, caller, access } = scope
  const id = recordId.toLowerCase()
  if (!(await findRecord(tx, caller, access, id, []))) throw fail('record_not_found')
  const touching = chosen(scope, query).filter(({ from, to }) => from === access || to === access)
  const { rows, nextCursor } = await linkPage(context, scope, touching, { recordId: id }, query)
  const far = Map.groupBy(rows, (row) => farAccess(definedBy(touching, row), row, id))
  const found = await Promise.all(
    [...far].map(([object, links]) =>
      findNames(
        tx,
        caller,
        object,
        links.map((row) => otherEnd(row, id)),
      ),
    ),
  )
  const names = new Map(found.flatMap((some) => [...some]))
  const items = rows
    // What went out of sight between the two statements is out of sight.
    .filter((row) => names.has(otherEnd(row, id)))
    .map((row) => relatedView(row, definedBy(touching, row), id, names.get(otherEnd(row, id))!))
  return { items, nextCursor }
}

function chosen(scope: LinkScope, { relationshipKey }: { readonly relationshipKey?: string }): Relationship[] {
  return relationshipKey === undefined ? relationshipsOf(scope.profile) : [requireRelationship(scope, relationshipKey)]
}

function definedBy(relationships: readonly Relationship[], row: LinkRow): Relationship {
  return relationships.find(({ definition }) => definition.definitionId === row.definition_id)!
}

function farAccess({ from, to }: Relationship, row: LinkRow, recordId: string) {
  return row.from_record_id === recordId ? to : from
}

function linkPage(
  { cursors }: Paging,
  { tx, caller }: LinkScope,
  relationships: readonly Relationship[],
  choice: LinkChoice,
  query: PageQuery,
) {
  const { relationshipKey = null } = query
  const { recordId, fromRecordId, toRecordId } = choice
  const ids = [recordId, fromRecordId, toRecordId].map((id) => id?.toLowerCase() ?? null)
  return pageOf(
    cursors,
    ['relationships', caller.organizationId, relationshipKey, ...ids],
    query,
    (after, limit) => findLinks(tx, caller, relationships, { recordId, fromRecordId, toRecordId }, after?.[0], limit),
    (row) => [row.relationship_id],
  )
}
