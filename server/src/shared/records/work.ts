import { fail } from '../../kernel/errors.ts'
import { uuidv7 } from '../../kernel/ids.ts'
import { mayPlace } from '../access/envelope.ts'
import type { ObjectDefinition } from '../catalogue/catalogue.ts'
import { followDeleteRules, newCascade } from '../relationships/delete-rules.ts'
import { changeRecord } from './change.ts'
import { withDefaults, withDerived } from './derive.ts'
import {
  type FieldValues,
  nowhere,
  type Placed,
  placementAfter,
  readFields,
  requireRevision,
  requireValues,
  type WriteBody,
} from './input.ts'
import { insertRecords, type NewRecord } from './insert.ts'
import { findByExternalKeys, findParticipants, findRecord, findRecords } from './read-store.ts'
import type { RecordRow } from './record.ts'
import type { RecordScope } from './scope.ts'

/**
 * What can be done to records: every check of data.md around every write. Object permission, field permission, the
 * envelope before and after, references that the caller can see, revisions.
 */
export interface CreateBody extends WriteBody {
  readonly fields: Readonly<Record<string, unknown>>
}

export interface UpdateBody extends WriteBody {
  readonly expectedRevision?: number
}

/** Checks a creation as far as that can be done without the database. `at` prefixes the positions of its problems. */
export function prepareCreation(scope: RecordScope, body: CreateBody, at = ''): NewRecord {
  const { access, caller, now } = scope
  if (!access.create) throw fail('permission_denied')
  const named = withDefaults(readFields(body.fields, access, `${at}fields`), access.object)
  requireValues(named, access, `${at}fields`, true)
  const placement = placementAfter(body, nowhere)
  if (!mayPlace(caller, placement)) throw fail('permission_denied', deniedPlacement(body, at))
  return {
    recordId: uuidv7(now),
    values: withDerived(scope, named, undefined, `${at}fields`),
    placement,
    externalKey: body.externalKey ?? null,
    participants: normalised(body.participants ?? []),
  }
}

export async function createRecords(scope: RecordScope, records: readonly NewRecord[]): Promise<RecordRow[]> {
  await requireVisibleReferences(
    scope,
    records.map((record) => record.values),
  )
  return insertRecords(scope.tx, scope.caller, scope.access, records)
}

/** A record with what the caller may read of it. One that it cannot see, or none: the same answer. */
export async function visibleRecord({ tx, caller, access }: RecordScope, recordId: string): Promise<RecordRow> {
  const row = await findRecord(tx, caller, access, recordId, access.readable)
  if (!row) throw fail('record_not_found')
  return row
}

/** A record the caller cannot see, or none: the same answer. */
export async function lockRecord(scope: RecordScope, recordId: string): Promise<RecordRow> {
  const { access, caller, tx } = scope
  const row = await findRecord(tx, caller, access, recordId, access.object.fields, true)
  if (!row) throw fail('record_not_found')
  return row
}

export async function updateRecord(
  scope: RecordScope,
  recordId: string,
  body: UpdateBody,
  ifMatch?: number,
): Promise<RecordRow> {
  const { access, caller, tx } = scope
  const before = await lockRecord(scope, recordId)
  if (!access.update) throw fail('permission_denied')
  requireRevision(before.revision, body.expectedRevision, ifMatch)
  if (before.archived_at !== null) throw fail('record_archived')
  const values = readFields(body.fields ?? {}, access, 'fields')
  requireValues(values, access, 'fields', false)
  const placement = placementAfter(body, placementOf(before))
  requirePlacementRight(scope, before, placement, body)
  await requireVisibleReferences(scope, [values])
  return changeRecord(tx, caller, access, before, {
    operation: 'updated',
    values: withDerived(scope, values, before, 'fields'),
    placement,
    externalKey: body.externalKey === undefined ? before.external_key : body.externalKey,
    ...(body.participants && {
      participants: {
        before: normalised((await findParticipants(tx, caller, recordId)).map((participant) => participant.userId)),
        after: normalised(body.participants),
      },
    }),
  })
}

/**
 * Archiving what is archived, and restoring what is not, changes nothing. Archiving does what the relationships of the record
 * ask for; `cascade` counts the records that one request archives that way.
 */
export async function setArchived(
  scope: RecordScope,
  recordId: string,
  archived: boolean,
  expectedRevision?: number,
  ifMatch?: number,
  cascade = newCascade(),
): Promise<RecordRow> {
  const { access, caller, tx } = scope
  const before = await lockRecord(scope, recordId)
  if (!access.archive) throw fail('permission_denied')
  requireRevision(before.revision, expectedRevision, ifMatch)
  if ((before.archived_at !== null) === archived) return before
  const row = await changeRecord(tx, caller, access, before, {
    operation: archived ? 'archived' : 'restored',
    values: archived ? new Map() : clearedOnRestore(access.object),
    placement: placementOf(before),
    externalKey: before.external_key,
  })
  if (archived) {
    await followDeleteRules(scope, before.record_id, cascade, (related, relatedId) =>
      setArchived(related, relatedId, true, undefined, undefined, cascade),
    )
  }
  return row
}

function clearedOnRestore({ behaviour, fieldsByKey }: ObjectDefinition): FieldValues {
  const fields = behaviour?.clearedOnRestore.flatMap((key) => fieldsByKey.get(key) ?? []) ?? []
  return new Map(fields.map((field) => [field, null]))
}

/** Updates the live record with this key, or creates it. Two that race to create: the loser updates. */
export async function upsertRecord(
  scope: RecordScope,
  externalKey: string,
  body: CreateBody & UpdateBody,
  ifMatch?: number,
): Promise<{ row: RecordRow; created: boolean }> {
  const { tx, caller, access } = scope
  const find = async () => (await findByExternalKeys(tx, caller, access, [externalKey])).get(externalKey)
  const change = async (recordId: string) => ({
    row: await updateRecord(scope, recordId, { ...body, externalKey }, ifMatch),
    created: false,
  })
  const found = await find()
  // A key that is taken by a record that the caller cannot see goes the way of a free one: who could not create the record
  // is told that, and who could is told what is true of any other taken value.
  if (found?.visible) return change(found.recordId)
  if (body.expectedRevision !== undefined || ifMatch !== undefined) throw fail('record_not_found')
  const record = prepareCreation(scope, { ...body, externalKey })
  try {
    const [row] = await tx.savepoint(() => createRecords(scope, [record]))
    return { row: row!, created: true }
  } catch (error) {
    const rival = await find()
    if (!rival?.visible) throw error
    return change(rival.recordId)
  }
}

export function placementOf(row: RecordRow): Placed {
  return { ownerUserId: row.owner_user_id, dataRoleId: row.data_role_id, locationId: row.location_id }
}

/**
 * Nobody gives a record away to where it may not write, nor pulls one in from there. Letting somebody take part shows them
 * the record, so that too is for those who could place it.
 */
function requirePlacementRight({ caller }: RecordScope, before: RecordRow, after: Placed, body: WriteBody): void {
  const from = placementOf(before)
  const moved =
    from.ownerUserId !== after.ownerUserId ||
    from.dataRoleId !== after.dataRoleId ||
    from.locationId !== after.locationId
  if (!moved && body.participants === undefined) return
  if (!(mayPlace(caller, from) && mayPlace(caller, after))) throw fail('permission_denied', deniedPlacement(body, ''))
}

function normalised(userIds: readonly string[]): string[] {
  return [...new Set(userIds.map((userId) => userId.toLowerCase()))].sort()
}

function deniedPlacement(body: WriteBody, at: string) {
  const named = (['ownerUserId', 'dataRoleId', 'locationId', 'participants'] as const).find(
    (name) => body[name] !== undefined,
  )
  return { field: `${at}${named ?? 'ownerUserId'}`, message: 'You may not place a record there.' }
}

/**
 * Foreign keys prove that a referenced record exists; for a restricted caller it must also be one that it sees, or a
 * reference would tell which ids exist.
 */
async function requireVisibleReferences(scope: RecordScope, valuesOfRecords: readonly FieldValues[]): Promise<void> {
  const { access, caller, profile, tx } = scope
  if (caller.unrestricted) return
  for (const field of access.object.fields) {
    if (field.referenceObjectId === null) continue
    const wanted = new Set(valuesOfRecords.flatMap((values) => (values.get(field) as string | null | undefined) ?? []))
    if (wanted.size === 0) continue
    const target = profile.byObjectId.get(field.referenceObjectId)
    const found = target ? await findRecords(tx, caller, target, [...wanted]) : []
    if (found.length < wanted.size) throw fail('reference_not_found', { field: `fields.${field.fieldKey}` })
  }
}
