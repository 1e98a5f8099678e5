import { isDeepStrictEqual } from 'node:util'
import sql from 'sql-template-tag'
import { fail } from '../../../kernel/errors.ts'
import { accessProfile, type ObjectAccess } from '../../../shared/access/permissions.ts'
import type { Field } from '../../../shared/catalogue/field.ts'
import { changeRecord } from '../../../shared/records/change.ts'
import { findHistory, lockRecords } from '../../../shared/records/read-store.ts'
import type { RecordRow } from '../../../shared/records/record.ts'
import type { RecordScope } from '../../../shared/records/scope.ts'
import { lockRecord, placementOf, type UpdateBody, updateRecord } from '../../../shared/records/work.ts'
import { deleteLinks, insertLink } from '../../../shared/relationships/link-changes.ts'
import { contacts } from '../descriptors/contacts.ts'
import { rowOf } from '../row.ts'
import { takenOver } from './rules.ts'
import { insertMerge, lockReferring, type Moved, takeMerge } from './store.ts'

/**
 * Making one contact of two, and two of one again. Whom records refer to must not depend on who merges: what refers to the
 * one that goes is moved whether the caller sees it or not. All of it happens in the transaction of the request.
 */
export const reversibleDays = 30
const movedMax = 1000
const pointer = 'mergedIntoId'

/** The field of a merged contact that names the one it became a part of. */
export const pointerOf = ({ access }: RecordScope): Field => access.object.fieldsByKey.get(pointer)!

export interface Merged {
  readonly row: RecordRow
  readonly reversibleUntil: string | null
}

/** `choices`: what the survivor is to hold, whatever the two held. Merging the same two again only applies them. */
export async function mergeContacts(
  scope: RecordScope,
  survivorId: string,
  otherId: string,
  choices: UpdateBody,
  ifMatch: number | undefined,
): Promise<Merged> {
  const { survivor, other } = await lockBoth(scope, survivorId, otherId)
  const mergedAt = new Date(scope.now).toISOString()
  if (other.archived_at !== null) {
    if (other[pointerOf(scope).column] !== survivor.record_id) throw fail('record_archived', { field: 'otherRecordId' })
    const row = await updateRecord(scope, survivorId, choices, ifMatch)
    return { row, reversibleUntil: endOf(other.archived_at) }
  }
  const fields = { ...valuesTakenOver(scope, survivor, other), ...choices.fields }
  const row = await updateRecord(scope, survivorId, { ...choices, fields }, ifMatch)
  const moved = {
    references: await moveReferences(scope, other.record_id, survivor.record_id),
    links: await moveLinks(scope, other.record_id, survivor.record_id),
  }
  if (moved.references.length + moved.links.length > movedMax) throw fail('merge_too_large')
  await change(scope, other, 'archived', survivor.record_id)
  await insertMerge(scope.tx, scope.caller, {
    survivorId: survivor.record_id,
    mergedId: other.record_id,
    survivor_revision: row.revision === survivor.revision ? null : row.revision,
    merged_at: mergedAt,
    moved,
  })
  return { row, reversibleUntil: endOf(mergedAt) }
}

/**
 * Brings the other contact back, with what referred to it and still refers to the survivor. Of the survivor's fields those
 * become again what they were which nobody has changed since.
 */
export async function separateContacts(
  scope: RecordScope,
  survivorId: string,
  otherId: string,
  guard: Pick<UpdateBody, 'expectedRevision'>,
  ifMatch: number | undefined,
): Promise<Merged> {
  const { tx, caller, now } = scope
  const { survivor, other } = await lockBoth(scope, survivorId, otherId)
  const merge = await takeMerge(tx, caller, survivor.record_id, other.record_id)
  if (!merge || endOf(merge.merged_at) < new Date(now).toISOString()) throw fail('merge_not_reversible')
  // It may have been restored by hand meanwhile; what it lost is still to be brought back.
  if (other.archived_at !== null) await change(scope, other, 'restored', null)
  await moveReferencesBack(scope, merge.moved.references, survivor.record_id, other.record_id)
  await moveLinksBack(scope, merge.moved.links, survivor.record_id, other.record_id)
  const fields = await valuesBefore(scope, survivor, merge.survivor_revision)
  return { row: await updateRecord(scope, survivorId, { ...guard, fields }, ifMatch), reversibleUntil: null }
}

function endOf(mergedAt: string): string {
  return new Date(Date.parse(mergedAt) + reversibleDays * 86_400_000).toISOString()
}

async function lockBoth(scope: RecordScope, survivorId: string, otherId: string) {
  const { tx, caller, access } = scope
  if (survivorId.toLowerCase() === otherId.toLowerCase()) {
    throw fail('validation_failed', { field: 'otherRecordId', message: 'Expected another contact.' })
  }
  await lockRecords(tx, caller, access, [survivorId, otherId], [])
  const survivor = await lockRecord(scope, survivorId)
  const other = await lockRecord(scope, otherId).catch((error: unknown) => {
    throw fail('reference_not_found', { field: 'otherRecordId', cause: error })
  })
  if (!access.update || !access.archive) throw fail('permission_denied')
  return { survivor, other }
}

function valuesTakenOver(scope: RecordScope, survivor: RecordRow, other: RecordRow) {
  const mostOf = (fieldKey: string) => {
    const schema = contacts.fields.find((field) => field.fieldKey === fieldKey)?.schema as { maxItems?: number }
    return schema?.maxItems ?? Number.POSITIVE_INFINITY
  }
  const fieldsOf = (row: RecordRow) => {
    const values: Readonly<Record<string, unknown>> = rowOf(row, scope)
    return Object.fromEntries(scope.access.readable.map(({ fieldKey }) => [fieldKey, values[fieldKey]]))
  }
  return takenOver(fieldsOf(survivor), fieldsOf(other), scope.access.writableKeys, mostOf)
}

/** Archives or restores the other contact, with the pointer to where it went. */
function change(scope: RecordScope, row: RecordRow, operation: 'archived' | 'restored', target: string | null) {
  return changeRecord(scope.tx, scope.caller, scope.access, row, {
    operation,
    values: new Map([[pointerOf(scope), target]]),
    placement: placementOf(row),
    externalKey: row.external_key,
  })
}

/** Every object of the application, with every field that refers to contacts. */
function referring(scope: RecordScope): { access: ObjectAccess; field: Field }[] {
  const all = accessProfile(scope.profile.model, { ...scope.caller, unrestricted: true })
  return [...all.objects.values()].flatMap((access) =>
    access.object.fields
      .filter((field) => field.referenceObjectId === scope.access.object.objectId && field.fieldKey !== pointer)
      .map((field) => ({ access, field })),
  )
}

async function moveReferences(scope: RecordScope, from: string, to: string): Promise<Moved['references']> {
  const moved: Moved['references'][number][] = []
  for (const { access, field } of referring(scope)) {
    const rows = await lockReferring(scope.tx, scope.caller, access.object, field, from, movedMax + 1)
    if (moved.length + rows.length > movedMax) throw fail('merge_too_large')
    for (const row of rows) await refer(scope, access, row, field, to)
    const { objectId } = access.object
    moved.push(...rows.map((row) => ({ objectId, fieldKey: field.fieldKey, recordId: row.record_id })))
  }
  return moved
}

async function moveReferencesBack(scope: RecordScope, moved: Moved['references'], from: string, to: string) {
  for (const { access, field } of referring(scope)) {
    const { objectId } = access.object
    const ids = new Set(
      moved.filter((one) => one.objectId === objectId && one.fieldKey === field.fieldKey).map((one) => one.recordId),
    )
    if (ids.size === 0) continue
    const rows = await lockReferring(scope.tx, scope.caller, access.object, field, from, movedMax, [...ids])
    for (const row of rows) await refer(scope, access, row, field, to)
  }
}

function refer(scope: RecordScope, access: ObjectAccess, row: RecordRow, field: Field, contactId: string) {
  return changeRecord(scope.tx, scope.caller, access, row, {
    operation: 'updated',
    values: new Map([[field, contactId]]),
    placement: placementOf(row),
    externalKey: row.external_key,
  })
}

type MovedLink = Moved['links'][number]

/** Links that the survivor has already, or that would lead from it to itself, go. */
async function moveLinks(scope: RecordScope, from: string, to: string): Promise<MovedLink[]> {
  const rows = await deleteLinks(scope, sql`(l.from_record_id = ${from} OR l.to_record_id = ${from})`)
  const definitions = new Map([...scope.profile.model.relationships.values()].map((one) => [one.definitionId, one]))
  const moved: MovedLink[] = []
  for (const row of rows) {
    const definition = definitions.get(row.definition_id)
    const [start, end] = [row.from_record_id, row.to_record_id].map((id) => (id === from ? to : id)) as [string, string]
    const made = definition && start !== end && (await insertLink(scope, definition, start, end))
    moved.push({
      definitionId: row.definition_id,
      fromRecordId: row.from_record_id,
      toRecordId: row.to_record_id,
      isMade: Boolean(made),
    })
  }
  return moved
}

async function moveLinksBack(scope: RecordScope, links: readonly MovedLink[], survivor: string, other: string) {
  const definitions = new Map([...scope.profile.model.relationships.values()].map((one) => [one.definitionId, one]))
  for (const { definitionId, fromRecordId, toRecordId, isMade } of links) {
    const definition = definitions.get(definitionId)
    if (!definition) continue
    if (isMade) {
      const [start, end] = [fromRecordId, toRecordId].map((id) => (id === other ? survivor : id)) as [string, string]
      const gone = await deleteLinks(
        scope,
        sql`l.definition_id = ${definitionId} AND l.from_record_id = ${start} AND l.to_record_id = ${end}`,
      )
      // Somebody has ended the relationship since.
      if (gone.length === 0) continue
    }
    await insertLink(scope, definition, fromRecordId, toRecordId)
  }
}

/** What the fields that the merge changed held before, as far as they still hold what it made of them. */
async function valuesBefore(scope: RecordScope, survivor: RecordRow, revision: number | null) {
  if (revision === null) return {}
  const [made] = await findHistory(scope.tx, scope.caller, survivor.record_id, String(revision + 1), 1)
  const values: Readonly<Record<string, unknown>> = rowOf(survivor, scope)
  return Object.fromEntries(
    Object.entries(made?.changes ?? {})
      .filter(([field, [, after]]) => scope.access.writableKeys.has(field) && isDeepStrictEqual(values[field], after))
      .map(([field, [before]]) => [field, before]),
  )
}
