import type { AccessProfile, ObjectAccess } from '../../../shared/access/permissions.ts'
import type { Field } from '../../../shared/catalogue/field.ts'
import { type Context, operation } from '../../../shared/context.ts'
import { pageOf } from '../../../shared/cursors.ts'
import { historyItem } from '../../../shared/records/history.ts'
import type { RecordScope } from '../../../shared/records/scope.ts'
import { visibleRecord } from '../../../shared/records/work.ts'
import { basePath, moduleScope, readingOf } from '../declaration.ts'
import { contacts } from '../descriptors/contacts.ts'
import { RowParams } from '../schemas.ts'
import { pointerOf } from './merging.ts'
import * as schema from './schema.ts'
import { type ChangeRow, findChanges, findMerged, findReferring, type ReferringRow } from './store.ts'

type Position = readonly [occurredAt: string, recordId: string, revision: string]

export const readTimeline = operation({
  ...readingOf(contacts),
  id: 'developerModulesContactsGetTimeline',
  method: 'GET',
  path: `${basePath}/contacts/{recordId}/timeline`,
  summary: 'Read what happened to a contact across modules, newest first.',
  description:
    'Its own changes and those of contacts that were merged into it, and the records that refer to it (tasks, tickets, invoices and custom objects alike) at the time they were made; only what the caller may see.',
  rateClass: 'search',
  params: RowParams,
  query: schema.TimelineQuery,
  responses: { 200: schema.Timeline },
  errors: ['object_not_found', 'record_not_found', 'cursor_invalid', 'cursor_mismatch', 'page_size_exceeded'],

  async handler(context: Context, { params, query }) {
    const scope = await moduleScope(context, contacts)
    const recordId = params.recordId.toLowerCase()
    const [contact, merged] = await Promise.all([
      visibleRecord(scope, recordId),
      findMerged(scope.tx, scope.caller, scope.access, pointerOf(scope), recordId),
    ])
    const name = scope.access.readableByKey.has('displayName') ? contact[scope.access.object.nameField.column] : null
    const { rows, nextCursor } = await pageOf(
      context.cursors,
      ['timeline', scope.caller.organizationId, recordId],
      query,
      (before, limit) => happened(scope, [recordId, ...merged], (name ?? null) as string | null, before, limit),
      ({ position }) => position,
    )
    return { status: 200, body: { items: rows.map((row) => row.item), nextCursor } }
  },
})

/** As many of each kind as the page could hold, and of all of them the newest. */
async function happened(
  scope: RecordScope,
  contactIds: readonly string[],
  name: string | null,
  before: readonly string[] | null,
  limit: number,
) {
  const { tx, caller, profile, access } = scope
  const [changes, ...referring] = await Promise.all([
    findChanges(tx, caller, contactIds, before, limit),
    ...referringObjects(profile, access).map(async ([object, fields]) => {
      const rows = await findReferring(tx, caller, object, fields, contactIds, before, limit)
      return rows.map((row) => made(row, object))
    }),
  ])
  return [...changes.map((row) => changed(row, access, name)), ...referring.flat()]
    .sort((a, b) => compare(b.position, a.position))
    .slice(0, limit)
}

/** The objects that the caller reads which refer to contacts, and by which of the fields that it reads. */
function referringObjects(profile: AccessProfile, { object }: ObjectAccess): [ObjectAccess, readonly Field[]][] {
  return [...profile.objects.values()].flatMap((access): [ObjectAccess, readonly Field[]][] => {
    const fields = access.readable.filter((field) => field.referenceObjectId === object.objectId)
    return fields.length === 0 || access.object === object ? [] : [[access, fields]]
  })
}

function changed(row: ChangeRow, access: ObjectAccess, displayName: string | null) {
  const { changes, operation: what, changedAt, changedBy } = historyItem(row, access)
  const position: Position = [row.changed_at, row.record_id, String(row.revision)]
  return {
    position,
    item: {
      occurredAt: changedAt,
      kind: 'change',
      objectKey: access.object.objectKey,
      recordId: row.record_id,
      displayName,
      operation: what,
      actor: changedBy,
      changedFields: changes.map((change) => change.field),
    },
  }
}

function made(row: ReferringRow, { object }: ObjectAccess) {
  const position: Position = [row.created_at, row.record_id, '0']
  return {
    position,
    item: {
      occurredAt: row.created_at,
      kind: 'record',
      objectKey: object.objectKey,
      recordId: row.record_id,
      displayName: row.name === null ? null : String(row.name),
      operation: 'created',
      actor: { kind: row.created_by_kind, id: row.created_by_id },
      changedFields: [],
    },
  }
}

/** By time, then by id: ids compare as PostgreSQL compares them, byte by byte. */
function compare([timeA, idA, revisionA]: Position, [timeB, idB, revisionB]: Position): number {
  if (timeA !== timeB) return timeA < timeB ? -1 : 1
  if (idA !== idB) return idA < idB ? -1 : 1
  return Number(revisionA) - Number(revisionB)
}
