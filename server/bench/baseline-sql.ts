import { foldedExpression } from '../src/shared/modelling/physical-table.ts'
import type { Tenant } from './tenant.ts'

/** The statements of the baseline: what the service sends, written out by hand for one object. */
export interface Named {
  readonly name: string
  readonly text: string
}

export const bind: Named = { name: 'bind', text: `SELECT set_config('portico.organization_id', $1, true)` }

const envelope = [
  'record_id',
  'owner_user_id',
  'data_role_id',
  'location_id',
  'external_key',
  'created_at',
  'created_by_kind',
  'created_by_id',
  'updated_at',
  'updated_by_kind',
  'updated_by_id',
  'archived_at',
  'revision',
]
const fields = ['f_name', 'f_stage', 'f_amount', 'f_probability', '"f_closeDate"', 'f_company', 'f_notes']
const columns = [...envelope, ...fields].map((name) => `t.${name}`).join(', ')

/**
 * With the page size as a parameter, as in the service, PostgreSQL plans each page for its values, which keeps an
 * organisation or a value of unusual size from running on a plan made for others. With a constant it keeps one plan for
 * everybody after the fifth page, 130 µs cheaper. Both are measured.
 */
const pageOf = (table: string, condition: string, limit: string) => `
  SELECT ${columns} FROM ${table} t
  WHERE t.organization_id = $1 AND t.archived_at IS NULL AND ${condition}
  ORDER BY t.created_at DESC, t.record_id DESC LIMIT ${limit}`

/** data.md, the record envelope, for a user of one role at one location. */
const visibleToUser = `((t.owner_user_id IS NULL AND t.data_role_id IS NULL)
    OR t.owner_user_id = $2
    OR (t.data_role_id = ANY ($3) AND (t.location_id IS NULL OR t.location_id = ANY ($4)))
    OR t.record_id = ANY (ARRAY(SELECT p.record_id FROM portico.record_participant p
      WHERE p.organization_id = $1 AND p.user_id = $2)))`

const targets = `(organization_id, record_id, created_at, created_by_kind, created_by_id, updated_at, updated_by_kind,
    updated_by_id, revision, f_name, x_name, f_stage, f_amount, x_amount, f_probability, "f_closeDate", f_company, f_notes)`
const now = 'now()::timestamptz(3)'

const outbox = `portico.outbox (organization_id, app_id, event_key, event_version, subject_type, actor_kind,
      actor_id, event_id, occurred_at, subject_id, object_id, data)`

const create = (table: string) => `
  WITH directory AS (
    INSERT INTO portico.record_directory (organization_id, record_id, object_id) VALUES ($1, $2, $3)),
  history AS (
    INSERT INTO portico.record_history (organization_id, record_id, revision, changed_at, operation, actor_kind, actor_id)
    VALUES ($1, $2, 1, ${now}, 'created', 'credential', $4)),
  document AS (
    INSERT INTO portico.search_document (organization_id, object_id, record_id, content, created_at)
    VALUES ($1, $3, $2, $5, ${now})),
  event AS (
    INSERT INTO ${outbox}
    VALUES ($1, $13, 'record.created', '2026-11-20', 'record', 'credential', $4, $14, ${now}, $2, $3, $15))
  INSERT INTO ${table} AS t ${targets}
  VALUES ($1, $2, ${now}, 'credential', $4, ${now}, 'credential', $4, 1,
    $6, ${foldedExpression('$6')}, $7, $8::numeric, $8::numeric::float8, $9, $10, $11, $12)
  RETURNING ${columns}`

const batch = (table: string) => `
  WITH input AS (
    SELECT * FROM json_to_recordset($4::json) AS r (record_id uuid, document text, f_name text, f_stage text,
      f_amount numeric, f_probability float8, "f_closeDate" date, f_company uuid, f_notes text, event_id uuid, event json)),
  directory AS (
    INSERT INTO portico.record_directory (organization_id, record_id, object_id) SELECT $1, record_id, $2 FROM input),
  history AS (
    INSERT INTO portico.record_history (organization_id, record_id, revision, changed_at, operation, actor_kind, actor_id)
    SELECT $1, record_id, 1, ${now}, 'created', 'credential', $3 FROM input),
  document AS (
    INSERT INTO portico.search_document (organization_id, object_id, record_id, content, created_at)
    SELECT $1, $2, record_id, document, ${now} FROM input),
  event AS (
    INSERT INTO ${outbox}
    SELECT $1, $5, 'record.created', '2026-11-20', 'record', 'credential', $3, event_id, ${now}, record_id, $2, event
    FROM input)
  INSERT INTO ${table} AS t ${targets}
  SELECT $1, record_id, ${now}, 'credential', $3, ${now}, 'credential', $3, 1,
    f_name, ${foldedExpression('f_name')}, f_stage, f_amount, f_amount::float8, f_probability, "f_closeDate", f_company, f_notes
  FROM input
  RETURNING ${columns}`

export function forTenant({ deal: { table } }: Tenant) {
  return {
    search: { name: 'search', text: pageOf(table, 't.f_stage = $2', '$3') },
    searchFixed: { name: 'searchFixed', text: pageOf(table, 't.f_stage = $2', '51') },
    searchAsUser: { name: 'searchAsUser', text: pageOf(table, `t.f_stage = $5 AND ${visibleToUser}`, '$6') },
    searchAsUserFixed: {
      name: 'searchAsUserFixed',
      text: pageOf(table, `t.f_stage = $5 AND ${visibleToUser}`, '51'),
    },
    get: { name: 'get', text: `SELECT ${columns} FROM ${table} t WHERE t.organization_id = $1 AND t.record_id = $2` },
    create: { name: 'create', text: create(table) },
    batch: { name: 'batch', text: batch(table) },
    keep: {
      name: 'keep',
      text: `INSERT INTO portico.idempotency_key
          (tenant_id, principal, key, created_at, request_hash, status, headers, payload)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
    },
  } satisfies Record<string, Named>
}

/** A row of the JSON that `batch` reads. */
export function batchRow(row: NewRow): object {
  const values = Object.fromEntries(Object.entries(row.fields).map(([key, value]) => [`f_${key}`, value]))
  return { record_id: row.recordId, document: row.document, event_id: row.eventId, event: row.event, ...values }
}

export interface NewRow {
  readonly recordId: string
  readonly document: string
  readonly fields: Record<string, unknown>
  readonly eventId: string
  /** What the event of it tells. */
  readonly event: object
}
