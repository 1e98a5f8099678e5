import sql, { empty, join, raw, type Sql } from 'sql-template-tag'
import type { Caller } from '../../../kernel/caller.ts'
import type { Tx } from '../../../kernel/transaction.ts'
import { visible } from '../../../shared/access/envelope.ts'
import type { ObjectAccess } from '../../../shared/access/permissions.ts'
import type { ObjectDefinition } from '../../../shared/catalogue/catalogue.ts'
import type { Field } from '../../../shared/catalogue/field.ts'
import { comparedColumn, foldedExpression } from '../../../shared/modelling/physical-table.ts'
import { amongFewOf } from '../../../shared/records/read-store.ts'
import { columnsOf, type RecordRow } from '../../../shared/records/record.ts'

/** Every SQL statement of contacts' own operations. */
const column = (field: Field) => raw(`t."${field.column}"`)
const compared = (field: Field) => raw(`t."${comparedColumn(field)}"`)

export interface TypeRow {
  readonly contactTypeId: string
  readonly totalRecords: number
}

/** The types that live contacts of the caller have, alphabetical. */
export async function findTypes(
  tx: Tx,
  caller: Caller,
  access: ObjectAccess,
  field: Field,
  after: string | undefined,
  limit: number,
): Promise<TypeRow[]> {
  const later = after === undefined ? empty : sql`AND ${column(field)} > ${after}`
  const few = await amongFewOf(tx, caller, access)
  return tx.rows<TypeRow>(sql`
    SELECT ${column(field)} AS "contactTypeId", count(*) AS "totalRecords" FROM ${raw(access.object.table)} t
    WHERE ${visible(caller, 't')} AND t.archived_at IS NULL AND ${column(field)} IS NOT NULL ${later}${few}
    GROUP BY ${column(field)} ORDER BY ${column(field)} LIMIT ${limit}`)
}

/** How many contacts with one address or number are looked at. */
const sharersMax = 500

/** Live contacts of the caller whose primary address or number is one of these. */
export function findByPrimary(
  tx: Tx,
  caller: Caller,
  { object, readable }: ObjectAccess,
  field: Field,
  values: readonly string[],
): Promise<RecordRow[]> {
  const folded = raw(foldedExpression('v.value'))
  return tx.rows<RecordRow>(sql`
    SELECT ${raw(columnsOf(readable, 't'))} FROM ${raw(object.table)} t
    WHERE ${visible(caller, 't')} AND t.archived_at IS NULL
      AND ${compared(field)} = ANY (ARRAY(SELECT ${folded} FROM unnest(${values as string[]}::text[]) AS v (value)))
    ORDER BY t.record_id DESC LIMIT ${sharersMax}`)
}

export interface SimilarRow {
  /** Counted from 1, of the name. */
  readonly ordinal: number
  readonly similarity: number
  readonly record_id: string
  readonly created_at: string
  readonly name: string | null
}

/** Live contacts of the caller whose names are like these (folded) ones, at most ten for each. */
export function findSimilar(
  tx: Tx,
  caller: Caller,
  { object }: ObjectAccess,
  names: readonly string[],
): Promise<SimilarRow[]> {
  return tx.rows<SimilarRow>(sql`
    WITH similar_to AS MATERIALIZED (
      SELECT * FROM portico.similar_names(${caller.organizationId}, ${object.objectId}, ${names as string[]}::text[]))
    SELECT s.ordinal, s.similarity, t.record_id, t.created_at, ${column(object.nameField)} AS name
    FROM similar_to s JOIN ${raw(object.table)} t ON t.record_id = s.record_id
    WHERE ${visible(caller, 't')} AND t.archived_at IS NULL`)
}

export interface ReferringRow {
  readonly record_id: string
  readonly created_at: string
  readonly created_by_kind: 'user' | 'credential' | 'system'
  readonly created_by_id: string
  readonly name: unknown
}

/** Live records of one object that refer to one of these contacts by one of these fields, the newest first. */
export function findReferring(
  tx: Tx,
  caller: Caller,
  { object, readableByKey }: ObjectAccess,
  fields: readonly Field[],
  contactIds: readonly string[],
  before: readonly string[] | null,
  limit: number,
): Promise<ReferringRow[]> {
  const name = readableByKey.has(object.nameField.fieldKey) ? sql`${column(object.nameField)}::text` : sql`NULL`
  const older = before ? sql`AND (t.created_at, t.record_id) < (${before[0]}::timestamptz, ${before[1]}::uuid)` : empty
  return tx.rows<ReferringRow>(sql`
    SELECT t.record_id, t.created_at, t.created_by_kind, t.created_by_id, ${name} AS name FROM ${raw(object.table)} t
    WHERE ${visible(caller, 't')} AND t.archived_at IS NULL AND ${refersTo(fields, contactIds)} ${older}
    ORDER BY t.created_at DESC, t.record_id DESC LIMIT ${limit}`)
}

function refersTo(fields: readonly Field[], contactIds: readonly string[]): Sql {
  const each = fields.map((field) => sql`${column(field)} = ANY (${contactIds as string[]}::uuid[])`)
  return sql`(${join(each, ' OR ')})`
}

export interface ChangeRow {
  readonly record_id: string
  readonly revision: number
  readonly changed_at: string
  readonly operation: 'created' | 'updated' | 'archived' | 'restored'
  readonly actor_kind: 'user' | 'credential' | 'system'
  readonly actor_id: string
  readonly changes: Record<string, [before: unknown, after: unknown]> | null
}

/** Changes of these contacts, the newest first. That the caller sees them was made sure before. */
export function findChanges(
  tx: Tx,
  caller: Caller,
  contactIds: readonly string[],
  before: readonly string[] | null,
  limit: number,
): Promise<ChangeRow[]> {
  const older = before
    ? sql`AND (changed_at, record_id, revision) < (${before[0]}::timestamptz, ${before[1]}::uuid, ${before[2]}::bigint)`
    : empty
  return tx.rows<ChangeRow>(sql`
    SELECT record_id, revision, changed_at, operation, actor_kind, actor_id, changes FROM portico.record_history
    WHERE organization_id = ${caller.organizationId} AND record_id = ANY (${contactIds as string[]}::uuid[]) ${older}
    ORDER BY changed_at DESC, record_id DESC, revision DESC LIMIT ${limit}`)
}

/**
 * The contacts that are a part of this one, or of one that is: as far as the caller sees them; at most a hundred, the latest
 * merged first. By where they point: the note of a merge is kept only as long as the merge can be taken back.
 */
export async function findMerged(
  tx: Tx,
  caller: Caller,
  { object }: ObjectAccess,
  pointer: Field,
  survivorId: string,
): Promise<string[]> {
  const rows = await tx.rows<{ record_id: string }>(sql`
    WITH RECURSIVE part AS (
      SELECT t.record_id FROM ${raw(object.table)} t
      WHERE t.organization_id = ${caller.organizationId} AND ${column(pointer)} = ${survivorId}
      UNION
      SELECT t.record_id FROM ${raw(object.table)} t JOIN part p ON ${column(pointer)} = p.record_id
      WHERE t.organization_id = ${caller.organizationId})
    SELECT t.record_id FROM part JOIN ${raw(object.table)} t ON t.record_id = part.record_id
    WHERE ${visible(caller, 't')} ORDER BY t.archived_at DESC LIMIT 100`)
  return rows.map((row) => row.record_id)
}

/** Live records of an object, of everybody, that refer to a contact by this field, or those of them; locked, with all values. */
export function lockReferring(
  tx: Tx,
  caller: Caller,
  object: ObjectDefinition,
  field: Field,
  contactId: string,
  limit: number,
  only?: readonly string[],
): Promise<RecordRow[]> {
  const chosen = only ? sql`AND t.record_id = ANY (${only as string[]}::uuid[])` : empty
  return tx.rows<RecordRow>(sql`
    SELECT ${raw(columnsOf(object.fields, 't'))} FROM ${raw(object.table)} t
    WHERE t.organization_id = ${caller.organizationId} AND ${column(field)} = ${contactId} AND t.archived_at IS NULL ${chosen}
    ORDER BY t.record_id LIMIT ${limit} FOR NO KEY UPDATE OF t`)
}

export interface Moved {
  readonly references: readonly { readonly objectId: string; readonly fieldKey: string; readonly recordId: string }[]
  readonly links: readonly {
    readonly definitionId: string
    readonly fromRecordId: string
    readonly toRecordId: string
    /** Did the survivor get one in its place? */
    readonly isMade: boolean
  }[]
}

export interface MergeRow {
  readonly survivor_revision: number | null
  readonly merged_at: string
  readonly moved: Moved
}

/** Takes the place of the note of an earlier merge: a contact that was restored by hand may be merged again. */
export async function insertMerge(
  tx: Tx,
  caller: Caller,
  merge: MergeRow & { readonly survivorId: string; readonly mergedId: string },
): Promise<void> {
  await tx.rows(sql`
    INSERT INTO portico.contact_merge
      (organization_id, merged_record_id, survivor_record_id, survivor_revision, merged_at, moved)
    VALUES (${caller.organizationId}, ${merge.mergedId}, ${merge.survivorId}, ${merge.survivor_revision},
      ${merge.merged_at}, ${JSON.stringify(merge.moved)}::jsonb)
    ON CONFLICT (organization_id, merged_record_id) DO UPDATE SET survivor_record_id = excluded.survivor_record_id,
      survivor_revision = excluded.survivor_revision, merged_at = excluded.merged_at, moved = excluded.moved`)
}

/** Takes the note of a merge away and returns it. */
export async function takeMerge(
  tx: Tx,
  caller: Caller,
  survivorId: string,
  mergedId: string,
): Promise<MergeRow | undefined> {
  const [row] = await tx.rows<MergeRow>(sql`
    DELETE FROM portico.contact_merge
    WHERE organization_id = ${caller.organizationId} AND merged_record_id = ${mergedId} AND survivor_record_id = ${survivorId}
    RETURNING survivor_revision, merged_at, moved`)
  return row
}
