import { raw } from 'sql-template-tag'
import type { Actor } from '../../kernel/caller.ts'

/** An event as the outbox keeps it. What of it somebody may know is decided by `disclosure.ts`. */
export interface StoredEvent {
  readonly organizationId: string
  readonly eventId: string
  readonly appId: string
  readonly eventKey: string
  readonly eventVersion: string
  readonly occurredAt: string
  readonly subjectType: string
  readonly subjectId: string
  readonly actorKind: Actor['kind']
  readonly actorId: string
  /** Whole: for somebody who may read everything. */
  readonly data: Readonly<Record<string, unknown>>
  /** Of an event about a record: where the record was after the change. */
  readonly objectId: string | null
  readonly ownerUserId: string | null
  readonly dataRoleId: string | null
  readonly locationId: string | null
  readonly changedFields: readonly string[] | null
  /** Of a test: the only subscription that it is for. */
  readonly subscriptionId: string | null
}

/** The select list of a `StoredEvent`, from `portico.event AS e`. */
export const storedEventColumns =
  raw(`e.organization_id AS "organizationId", e.event_id AS "eventId", e.app_id AS "appId",
  e.event_key AS "eventKey", e.event_version AS "eventVersion", e.occurred_at AS "occurredAt",
  e.subject_type AS "subjectType", e.subject_id AS "subjectId", e.actor_kind AS "actorKind", e.actor_id AS "actorId",
  e.data, e.object_id AS "objectId", e.owner_user_id AS "ownerUserId", e.data_role_id AS "dataRoleId",
  e.location_id AS "locationId", e.changed_fields AS "changedFields", e.subscription_id AS "subscriptionId"`)
