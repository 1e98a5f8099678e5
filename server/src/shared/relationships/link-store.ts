import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { visible } from '../access/envelope.ts'
import type { ObjectAccess } from '../access/permissions.ts'
import type { Relationship } from './definitions.ts'

/** Every SQL statement that reads links of records. */
export interface LinkRow {
  readonly relationship_id: string
  readonly definition_id: string
  readonly from_record_id: string
  readonly to_record_id: string
  readonly created_at: string
  readonly created_by_kind: 'user' | 'credential' | 'system'
  readonly created_by_id: string
}

export const linkColumns = raw(
  'l.relationship_id, l.definition_id, l.from_record_id, l.to_record_id, l.created_at, l.created_by_kind, l.created_by_id',
)

/** Which links to look for; what is undefined narrows nothing. */
export interface LinkChoice {
  readonly relationshipId?: string | undefined
  /** At either end. */
  readonly recordId?: string | undefined
  readonly fromRecordId?: string | undefined
  readonly toRecordId?: string | undefined
}

/** Links of the given relationships that the caller sees, newest first, older than `beforeId` where given. */
export async function findLinks(
  tx: Tx,
  caller: Caller,
  relationships: readonly Relationship[],
  choice: LinkChoice,
  beforeId: string | undefined,
  limit: number,
): Promise<LinkRow[]> {
  if (relationships.length === 0) return []
  const { relationshipId, recordId, fromRecordId, toRecordId } = choice
  const ids = relationships.map(({ definition }) => definition.definitionId)
  const conditions = [
    sql`l.organization_id = ${caller.organizationId} AND l.definition_id = ANY (${ids}::uuid[])`,
    ...(relationshipId === undefined ? [] : [sql`l.relationship_id = ${relationshipId}`]),
    ...(recordId === undefined ? [] : [sql`(l.from_record_id = ${recordId} OR l.to_record_id = ${recordId})`]),
    ...(fromRecordId === undefined ? [] : [sql`l.from_record_id = ${fromRecordId}`]),
    ...(toRecordId === undefined ? [] : [sql`l.to_record_id = ${toRecordId}`]),
    ...(beforeId === undefined ? [] : [sql`l.relationship_id < ${beforeId}::uuid`]),
    visibleEnd(caller, relationships, 'from'),
    visibleEnd(caller, relationships, 'to'),
  ]
  return tx.rows<LinkRow>(sql`SELECT ${linkColumns} FROM portico.record_relationship l
    WHERE ${join(conditions, ' AND ')} ORDER BY l.relationship_id DESC LIMIT ${limit}`)
}

/**
 * Is there a live record at this end that the caller sees? One look-up by key in the table that the relationship leads to;
 * tables are asked by object and not by relationship, because several lead to one object and each makes the statement longer.
 */
function visibleEnd(caller: Caller, relationships: readonly Relationship[], end: 'from' | 'to'): Sql {
  const byObject = Map.groupBy(relationships, (relationship) => relationship[end])
  const cases = [...byObject].map(([access, leading]) => {
    const ids = leading.map(({ definition }) => definition.definitionId)
    return sql`WHEN l.definition_id = ANY (${ids}::uuid[]) THEN EXISTS (
      SELECT FROM ${raw(access.object.table)} t
      WHERE ${visible(caller, 't')} AND t.record_id = ${raw(`l.${end}_record_id`)} AND t.archived_at IS NULL)`
  })
  return sql`CASE ${join(cases, ' ')} ELSE false END`
}

/**
 * Is the record live, archived, or none that the caller sees? Held against being archived until the transaction ends; other
 * links to it need not wait.
 */
export async function holdEnd(
  tx: Tx,
  caller: Caller,
  access: ObjectAccess,
  recordId: string,
): Promise<'live' | 'archived' | undefined> {
  const [row] = await tx.rows<{ archived: boolean }>(sql`
    SELECT t.archived_at IS NOT NULL AS archived FROM ${raw(access.object.table)} t
    WHERE ${visible(caller, 't')} AND t.record_id = ${recordId} FOR SHARE OF t`)
  return row && (row.archived ? 'archived' : 'live')
}

/** What names the records, by id: of those that the caller sees. Null where it may not read the field. */
export async function findNames(
  tx: Tx,
  caller: Caller,
  { object, readableByKey }: ObjectAccess,
  recordIds: readonly string[],
): Promise<Map<string, string | null>> {
  const name = readableByKey.has(object.nameField.fieldKey) ? sql`t.${raw(`"${object.nameField.column}"`)}` : sql`NULL`
  const rows = await tx.rows<{ record_id: string; name: unknown }>(sql`
    SELECT t.record_id, ${name} AS name FROM ${raw(object.table)} t
    WHERE ${visible(caller, 't')} AND t.record_id = ANY (${recordIds as string[]}::uuid[]) AND t.archived_at IS NULL`)
  return new Map(rows.map((row) => [row.record_id, row.name === null ? null : String(row.name)]))
}

/** Those links of a `to` record that stand in the way of another one, and whether the record at `from` is archived. */
export async function findRivals(
  tx: Tx,
  caller: Caller,
  { definition, from }: Relationship,
  fromRecordId: string,
  toRecordId: string,
): Promise<(LinkRow & { readonly is_given_up: boolean })[]> {
  const single = definition.cardinality === 'one-to-many'
  return tx.rows(sql`
    SELECT ${linkColumns}, f.archived_at IS NOT NULL AS is_given_up FROM portico.record_relationship l
    JOIN ${raw(from.object.table)} f ON f.organization_id = l.organization_id AND f.record_id = l.from_record_id
    WHERE l.organization_id = ${caller.organizationId} AND l.definition_id = ${definition.definitionId}
      AND l.to_record_id = ${toRecordId} ${single ? empty : sql`AND l.from_record_id = ${fromRecordId}`}`)
}
