import sql, { raw } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import { mayPlace, visible } from '../access/envelope.ts'
import type { AccessProfile } from '../access/permissions.ts'
import type { Database } from '../database/database.ts'
import { eventTypeOf, mayHear } from './event-types.ts'
import type { StoredEvent } from './stored-event.ts'

/**
 * What of an event the holder of a credential may know: nothing of a record that it could not read, and no field of one that
 * it could. Fan-out, delivery and the feed of events all ask here, each at its own moment: rights that were withdrawn between
 * an event and its last attempt are withdrawn from that attempt too.
 */
export interface Standing {
  /** A credential of an application's server: it has no user, and takes part in nothing. */
  readonly caller: Caller
  /** Within the scopes of the credential. */
  readonly profile: AccessProfile
  /** Are its organisation and application? Where they are not, it learns that they became so, and nothing of records. */
  readonly active: boolean
}

/** What decides whether somebody may know of an event; `data` matters for relationships alone. */
export type EventHead = Pick<
  StoredEvent,
  | 'organizationId'
  | 'appId'
  | 'eventKey'
  | 'subjectType'
  | 'actorKind'
  | 'actorId'
  | 'objectId'
  | 'ownerUserId'
  | 'dataRoleId'
  | 'locationId'
  | 'data'
>

/** Those of the events that the bearer may know of, in their order. Events of other organisations than the caller's are lifecycle events. */
export async function knowable<E extends EventHead>(
  database: Pick<Database, 'inOrganization'>,
  standing: Standing,
  events: readonly E[],
): Promise<E[]> {
  const candidates = events.filter((event) => mayKnow(event, standing))
  if (standing.caller.unrestricted) return candidates
  const links = candidates.flatMap((event) => linkOf(event) ?? [])
  if (links.length === 0) return candidates
  const seen = await database.inOrganization(standing.caller.organizationId, async (tx) => {
    const found = new Set<string>()
    const ends = links.flatMap((link) => [
      { objectKey: link.fromObjectKey, recordId: link.fromRecordId },
      { objectKey: link.toObjectKey, recordId: link.toRecordId },
    ])
    for (const [objectKey, ofObject] of Map.groupBy(ends, (end) => end.objectKey)) {
      const access = standing.profile.objects.get(objectKey)
      if (!access) continue
      const ids = ofObject.map((end) => end.recordId)
      const rows = await tx.rows<{ record_id: string }>(sql`SELECT t.record_id FROM ${raw(access.object.table)} t
        WHERE ${visible(standing.caller, 't')} AND t.record_id = ANY (${ids}::uuid[])`)
      for (const row of rows) found.add(row.record_id)
    }
    return found
  })
  return candidates.filter((event) => {
    const link = linkOf(event)
    return !link || (seen.has(link.fromRecordId) && seen.has(link.toRecordId))
  })
}

/** As far as it can be said without the database: of links, that both objects are readable. */
function mayKnow(event: EventHead, { caller, profile, active }: Standing): boolean {
  const type = eventTypeOf(event.eventKey)
  if (!type || event.appId !== caller.appId || !mayHear(type, caller) || (type.requires !== null && !active))
    return false
  // The nine of specification 6.2 are for whoever subscribes to all organisations; the others stay in theirs.
  if (event.organizationId !== caller.organizationId && !type.scopes.includes('app')) return false
  const link = linkOf(event)
  if (link) return profile.objects.has(link.fromObjectKey) && profile.objects.has(link.toObjectKey)
  // As its status: work may tell of more than who looks at it may see.
  if (event.subjectType === 'operation') return caller.unrestricted || isOwn(event, caller)
  if (event.objectId === null) return true
  return profile.byObjectId.has(event.objectId) && mayPlace(caller, event)
}

function isOwn({ actorKind, actorId }: EventHead, { actor }: Caller): boolean {
  return actorKind === actor.kind && actorId === actor.id
}

interface LinkEnds {
  readonly fromRecordId: string
  readonly fromObjectKey: string
  readonly toRecordId: string
  readonly toObjectKey: string
}

/** The link that the event is about; undefined where it is about something else. */
export function linkOf(event: EventHead): LinkEnds | undefined {
  return event.eventKey.startsWith('relationship.') ? (event.data['relationship'] as LinkEnds) : undefined
}

/** The envelope of specification 6.3: what a delivery carries, and an item of the feed. */
export interface EventEnvelope {
  readonly id: string
  readonly type: string
  readonly version: string
  readonly occurredAt: string
  readonly appId: string
  readonly subject: { readonly type: string; readonly id: string }
  readonly actor: { readonly kind: string; readonly id: string }
  readonly data: unknown
}

/** What the bearer is told of an event that it may know of (`knowable`). */
export function envelopeOf(event: StoredEvent, { profile }: Standing): EventEnvelope {
  return {
    id: event.eventId,
    type: event.eventKey,
    version: event.eventVersion,
    occurredAt: event.occurredAt,
    appId: event.appId,
    subject: { type: event.subjectType, id: event.subjectId },
    actor: { kind: event.actorKind, id: event.actorId },
    data: event.objectId === null ? event.data : recordData(event, profile),
  }
}

const placementProperties = new Set(['ownerUserId', 'dataRoleId', 'locationId', 'externalKey', 'participants'])

function recordData(event: StoredEvent, profile: AccessProfile): unknown {
  const access = profile.byObjectId.get(event.objectId!)!
  const { record, ...rest } = event.data as {
    record: { recordId: string; objectKey: string; fields: Record<string, unknown> }
  }
  const { recordId, objectKey, fields, ...common } = record
  // What is empty is not kept with the event.
  const readable = access.readable.map(({ fieldKey }) => [fieldKey, fields[fieldKey] ?? null])
  const { fieldKey } = access.object.nameField
  const name = access.readableByKey.has(fieldKey) ? fields[fieldKey] : null
  const told = (key: string) => placementProperties.has(key) || access.readableByKey.has(key)
  return {
    ...rest,
    record: {
      recordId,
      objectKey,
      displayName: name === null || name === undefined ? null : String(name),
      fields: Object.fromEntries(readable),
      ...common,
    },
    ...(event.eventKey === 'record.updated' && { changedFields: (event.changedFields ?? []).filter(told).sort() }),
  }
}
