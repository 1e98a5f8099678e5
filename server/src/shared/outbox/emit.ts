import type { Actor } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { noteEmitted } from './emitted.ts'
import { eventVersion as currentVersion } from './event-types.ts'

/** One event of several that a change writes: what is its own. */
export interface NewEvent {
  readonly event_id: string
  readonly occurred_at: string
  readonly subject_id: string
  readonly object_id?: string
  readonly owner_user_id?: string | null
  readonly data_role_id?: string | null
  readonly location_id?: string | null
  readonly changed_fields?: readonly string[] | undefined
  /** Of a test: the only subscription that it is for. */
  readonly subscription_id?: string
  readonly data: object
}

/** What the events of one change have in common. */
export interface EventHeading {
  readonly organizationId: string
  readonly appId: string
  readonly actor: Actor
  readonly eventKey: string
  readonly eventVersion?: string
  readonly subjectType: string
}

const target = `
  INSERT INTO portico.outbox (organization_id, app_id, event_key, event_version, subject_type, actor_kind, actor_id,
    event_id, occurred_at, subject_id, object_id, owner_user_id, data_role_id, location_id, changed_fields,
    subscription_id, data)`
const heading = '$1::uuid, $2::uuid, $3::text, $4::text, $5::text, $6::text, $7::text'
const collapse = `
  ON CONFLICT (organization_id, transaction_id, event_key, subject_id) DO UPDATE SET
    occurred_at = excluded.occurred_at, data = excluded.data, owner_user_id = excluded.owner_user_id,
    data_role_id = excluded.data_role_id, location_id = excluded.location_id,
    changed_fields = ARRAY(SELECT DISTINCT unnest(outbox.changed_fields || excluded.changed_fields))`

/** Two statements, each prepared once: most changes are of one record, and reading it out of JSON again takes its time. */
const single = `${target}
  VALUES (${heading}, $8::uuid, $9::timestamptz, $10::uuid, $11::uuid, $12::uuid, $13::uuid, $14::uuid, $15::text[],
    $16::uuid, $17::json)
  ${collapse}`
const several = `${target}
  SELECT ${heading}, e.event_id, e.occurred_at, e.subject_id, e.object_id, e.owner_user_id, e.data_role_id, e.location_id,
    e.changed_fields, e.subscription_id, e.data
  FROM json_to_recordset($8::json) AS e (event_id uuid, occurred_at timestamptz, subject_id uuid, object_id uuid,
    owner_user_id uuid, data_role_id uuid, location_id uuid, changed_fields text[],
    subscription_id uuid, data json)
  ${collapse}`

/**
 * Writes events into the outbox, in the transaction of the change; they are delivered later. Several of one kind about one
 * subject in one transaction collapse to the last, which keeps the id of the first (specification 6.5). The transaction must
 * be bound to the organisation.
 */
export async function emitEvents(tx: Tx, heading: EventHeading, events: readonly NewEvent[]): Promise<void> {
  const [first] = events
  if (!first) return
  const { organizationId, appId, eventKey, eventVersion = currentVersion, subjectType, actor } = heading
  const common = [organizationId, appId, eventKey, eventVersion, subjectType, actor.kind, actor.id]
  noteEmitted(tx)
  if (events.length === 1) await tx.rows({ text: single, values: [...common, ...valuesOf(first)] })
  else await tx.rows({ text: several, values: [...common, JSON.stringify(events)] })
}

function valuesOf({ event_id, occurred_at, subject_id, data, ...rest }: NewEvent): unknown[] {
  const { object_id = null, owner_user_id = null, data_role_id = null, location_id = null } = rest
  const { changed_fields = null, subscription_id = null } = rest
  const placement = [object_id, owner_user_id, data_role_id, location_id]
  return [event_id, occurred_at, subject_id, ...placement, changed_fields, subscription_id, JSON.stringify(data)]
}
