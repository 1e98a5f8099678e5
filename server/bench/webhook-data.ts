import pg from 'pg'
import type { ConnectionSettings } from '../src/ports/database/port.ts'
import type { Tenant } from './tenant.ts'

/** Rows of webhooks by INSERT … SELECT, as the dispatcher and the worker would have written them. */
async function connected<T>(connection: ConnectionSettings, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    return await work(client)
  } finally {
    await client.end()
  }
}

/** Events of new records; `ids` is a temporary table of their ids, numbered from 0. */
const events = (age: string) => `
  INSERT INTO portico.event (organization_id, event_id, position, app_id, event_key, event_version, occurred_at,
    subject_type, subject_id, actor_kind, actor_id, data, object_id)
  SELECT $1, i.event_id, nextval('portico.event_position'), $2, 'record.created', '2026-11-20', now() - ${age},
    'record', gen_random_uuid(), 'system', 'bench', json_build_object('organizationId', $1::uuid, 'record', json_build_object(
      'recordId', gen_random_uuid(), 'objectKey', 'deal', 'fields', json_build_object('name', 'Deal ' || i.n,
      'stage', 'open', 'amount', '12.50', 'probability', 0.5, 'closeDate', '2026-12-24', 'notes', repeat('x', 200)),
      'ownerUserId', NULL, 'dataRoleId', NULL, 'locationId', NULL, 'revision', 1)), $3
  FROM ids i`

/** Deliveries that are due, in equal parts to each of the subscriptions, each of an event of its own. */
export async function queueDeliveries(
  connection: ConnectionSettings,
  { appId, organization, deal }: Tenant,
  subscriptionIds: readonly string[],
  count: number,
): Promise<void> {
  await connected(connection, async (client) => {
    await client.query(
      `CREATE TEMP TABLE ids AS SELECT n, uuidv7() AS event_id FROM generate_series(0, ${count - 1}) AS n`,
    )
    await client.query(events(`interval '0'`), [organization.organizationId, appId, deal.objectId])
    await client.query(
      `INSERT INTO portico.webhook_queue (organization_id, delivery_id, subscription_id, app_id, event_organization_id,
         event_id, event_key, event_version, created_at, max_attempts, due_at)
       SELECT $1, uuidv7(), ($3::uuid[])[1 + n % ${subscriptionIds.length}], $2, $1, event_id, 'record.created',
         '2026-11-20', now(), 10, now() FROM ids`,
      [organization.organizationId, appId, subscriptionIds],
    )
  })
}

/** Deliveries of the last 30 days that are over, one in ten of which failed. */
export async function fillHistory(
  connection: ConnectionSettings,
  { appId, organization, deal }: Tenant,
  count: number,
): Promise<void> {
  await connected(connection, async (client) => {
    const age = `interval '30 days' * i.n / ${count}`
    await client.query(`CREATE TEMP TABLE ids AS
      SELECT n, uuidv7(- interval '30 days' * n / ${count}) AS event_id FROM generate_series(0, ${count - 1}) AS n`)
    await client.query(events(age), [organization.organizationId, appId, deal.objectId])
    await client.query(
      `INSERT INTO portico.webhook_delivery (organization_id, delivery_id, subscription_id, app_id, event_organization_id,
         event_id, event_key, event_version, created_at, attempts, attempt_count, max_attempts, state, category, completed_at)
       SELECT $1, uuidv7(- ${age}), gen_random_uuid(), $2, $1, event_id, 'record.created', '2026-11-20', now() - ${age},
         '[{"attemptNumber": 1, "trigger": "schedule", "startedAt": "2026-11-20T08:00:00.000Z", "durationMs": 12,
            "httpStatus": 200, "category": "success", "responseExcerpt": "ok", "responseTruncated": false}]',
         1, 10, CASE WHEN n % 10 = 0 THEN 'failed' ELSE 'delivered' END,
         CASE WHEN n % 10 = 0 THEN 'http_5xx' ELSE 'success' END, now() - ${age}
       FROM ids i`,
      [organization.organizationId, appId],
    )
  })
}
