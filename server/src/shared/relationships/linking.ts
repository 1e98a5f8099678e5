import sql from 'sql-template-tag'
import { fail } from '../../kernel/errors.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import { type Relationship, relationshipNamed, relationshipsOf } from './definitions.ts'
import { deleteLinks, insertLink, type LinkScope } from './link-changes.ts'
import { findLinks, findRivals, holdEnd, type LinkRow } from './link-store.ts'

export interface NewLink {
  readonly relationshipKey: string
  readonly fromRecordId: string
  readonly toRecordId: string
}

/** One that the caller does not know answers as one that does not exist. */
export function requireRelationship({ profile }: LinkScope, key: string): Relationship {
  const relationship = relationshipNamed(profile, key)
  if (relationship) return relationship
  const names = relationshipsOf(profile).map(({ definition }) => definition.relationshipKey)
  const known = names.length === 0 ? 'none' : names.slice(0, 20).join(', ')
  throw fail('reference_not_found', { field: 'relationshipKey', message: `Expected one of: ${known}.` })
}

/**
 * Relates two records. Both must be visible to the caller and live, and it needs the right to update the object of the one at
 * `from`: a link decides what archiving that record does (`deleteRule`), and whoever could link at will could keep others from
 * archiving what is theirs.
 *
 * Two records are related once: a link that is there already is returned as it is, so that asking again does no harm. Where
 * the relationship is one-to-many and the record at `to` belongs to another one: 409 `duplicate_value`, unless that other one
 * is archived; its link is out of sight and nobody could remove it, so it gives way.
 */
export async function createLink(
  scope: LinkScope,
  link: NewLink,
): Promise<{ readonly row: LinkRow; readonly relationship: Relationship; readonly created: boolean }> {
  const relationship = requireRelationship(scope, link.relationshipKey)
  const { definition, from, to } = relationship
  const [fromRecordId, toRecordId] = [link.fromRecordId.toLowerCase(), link.toRecordId.toLowerCase()]
  await requireEnd(scope, from, fromRecordId, 'fromRecordId')
  if (!from.update) throw fail('permission_denied')
  if (fromRecordId === toRecordId) {
    throw fail('validation_failed', { field: 'toRecordId', message: 'A record is not related to itself.' })
  }
  await requireEnd(scope, to, toRecordId, 'toRecordId')
  // A rival that is found may be gone by the time that it would give way; somebody else may take its place as often.
  for (let attempt = 0; attempt < 3; attempt++) {
    const made = await insertLink(scope, definition, fromRecordId, toRecordId)
    if (made) return { row: made, relationship, created: true }
    const rivals = await findRivals(scope.tx, scope.caller, relationship, fromRecordId, toRecordId)
    const same = rivals.find((rival) => rival.from_record_id === fromRecordId)
    if (same) return { row: same, relationship, created: false }
    if (rivals.some((rival) => !rival.is_given_up)) break
    const ids = rivals.map((rival) => rival.relationship_id)
    await deleteLinks(scope, sql`l.relationship_id = ANY (${ids}::uuid[])`)
  }
  throw fail('duplicate_value', {
    field: 'toRecordId',
    message: 'The relationship is one-to-many, and this record is related to another one already.',
  })
}

async function requireEnd(
  { tx, caller }: LinkScope,
  access: ObjectAccess,
  recordId: string,
  field: keyof NewLink,
): Promise<void> {
  const state = await holdEnd(tx, caller, access, recordId)
  if (state === undefined) {
    throw fail('reference_not_found', { field, message: `There is no such record of ${access.object.objectKey}.` })
  }
  if (state === 'archived') throw fail('record_archived', { field })
}

/** Ends a relationship of two records; asks for the same rights as making it. Returns it as it was. */
export async function removeLink(
  scope: LinkScope,
  relationshipId: string,
): Promise<{ readonly row: LinkRow; readonly relationship: Relationship }> {
  const { tx, caller, profile } = scope
  const relationships = relationshipsOf(profile)
  const [found] = await findLinks(tx, caller, relationships, { relationshipId }, undefined, 1)
  if (!found) throw fail('relationship_not_found')
  const relationship = relationships.find(({ definition }) => definition.definitionId === found.definition_id)!
  if (!relationship.from.update) throw fail('permission_denied')
  const [row] = await deleteLinks(scope, sql`l.relationship_id = ${found.relationship_id}`)
  // Somebody else was faster.
  if (!row) throw fail('relationship_not_found')
  return { row, relationship }
}
