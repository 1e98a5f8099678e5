import sql from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import type { Field } from '../catalogue/field.ts'
import type {
  FieldDocument,
  LocationDocument,
  ModelDocument,
  ObjectDocument,
  RelationshipDocument,
  RoleDocument,
} from './document.ts'
import { normalised } from './normalise.ts'
import type { NativeKeys } from './problems.ts'

/** The model of an application as it was published last: what is archived included, with the ids behind the keys. */
export interface PublishedModel {
  readonly appId: string
  /** The schema that holds its tables. */
  readonly schemaName: string
  /** Of the newest release; 0 before the first. */
  readonly releaseNumber: number
  readonly document: ModelDocument
  /** Native objects are among them; they are not part of the document. */
  readonly objects: ReadonlyMap<string, PublishedObject>
}

export interface PublishedObject {
  readonly kind: 'custom' | 'native'
  readonly objectId: string
  readonly tableName: string
  /** Quoted and qualified, ready for SQL. */
  readonly table: string
  readonly fields: ReadonlyMap<string, Field>
}

/** The native objects that a document may name, with the keys of their fields. */
export function nativeKeys({ objects }: PublishedModel): NativeKeys {
  const natives = [...objects].filter(([, { kind }]) => kind === 'native')
  return new Map(natives.map(([objectKey, { fields }]) => [objectKey, new Set(fields.keys())]))
}

interface ObjectRow {
  readonly kind: 'custom' | 'native'
  readonly objectId: string
  readonly objectKey: string
  readonly label: string
  readonly pluralLabel: string
  readonly nameField: string
  readonly tableName: string
  readonly archived: boolean
}
type FieldRow = Field & { readonly objectId: string; readonly archived: boolean; readonly references: string | null }

/** Undefined where there is no such application. */
export async function readPublished(tx: Tx, appId: string): Promise<PublishedModel | undefined> {
  const [[application], objectRows, fieldRows, roles, relationships, locations] = await Promise.all([
    tx.rows<{ schemaName: string; releaseNumber: number }>(sql`
      SELECT schema_name AS "schemaName", coalesce((SELECT max(release_number) FROM portico.model_release r
        WHERE r.app_id = a.app_id), 0) AS "releaseNumber"
      FROM portico.application a WHERE app_id = ${appId}`),
    tx.rows<ObjectRow>(sql`
      SELECT object_id AS "objectId", object_key AS "objectKey", label, plural_label AS "pluralLabel",
        name_field_key AS "nameField", kind, table_name AS "tableName", archived_at IS NOT NULL AS archived
      FROM portico.object_definition WHERE app_id = ${appId} ORDER BY object_id`),
    tx.rows<FieldRow>(sql`
      SELECT f.object_id AS "objectId", f.field_id AS "fieldId", f.field_key AS "fieldKey", f.label,
        f.data_type AS "dataType", f.column_name AS "column", f.required, f.read_only AS "readOnly", f.is_unique AS "unique", f.indexed,
        f.index_state AS "indexState", f.searchable, f.search_tag AS "searchTag", f.options, f.validation,
        f.reference_object_id AS "referenceObjectId", f.archived_at IS NOT NULL AS archived, r.object_key AS "references"
      FROM portico.field_definition f LEFT JOIN portico.object_definition r
        ON r.app_id = f.app_id AND r.object_id = f.reference_object_id
      WHERE f.app_id = ${appId} ORDER BY f.object_id, f.position`),
    tx.rows<{ key: string } & RoleDocument>(sql`
      SELECT t.template_key AS key, t.label, t.actions, coalesce((SELECT json_object_agg(o.object_key, json_build_object(
          'read', p.can_read, 'create', p.can_create, 'update', p.can_update, 'archive', p.can_archive,
          'fields', coalesce((SELECT json_object_agg(d.field_key, json_build_object('read', f.can_read, 'write', f.can_write))
            FROM portico.field_permission f JOIN portico.field_definition d USING (app_id, object_id, field_id)
            WHERE f.app_id = p.app_id AND f.template_key = p.template_key AND f.object_id = p.object_id), '{}')))
        FROM portico.object_permission p JOIN portico.object_definition o USING (app_id, object_id)
        WHERE p.app_id = t.app_id AND p.template_key = t.template_key), '{}') AS objects
      FROM portico.data_role_template t WHERE t.app_id = ${appId} ORDER BY t.template_key`),
    tx.rows<{ key: string } & RelationshipDocument>(sql`
      SELECT r.relationship_key AS key, r.label, r.inverse_label AS "inverseLabel", r.cardinality, f.object_key AS "from",
        t.object_key AS "to", r.delete_rule AS "deleteRule"
      FROM portico.relationship_definition r
      JOIN portico.object_definition f ON f.app_id = r.app_id AND f.object_id = r.from_object_id
      JOIN portico.object_definition t ON t.app_id = r.app_id AND t.object_id = r.to_object_id
      WHERE r.app_id = ${appId} AND r.kind = 'custom' ORDER BY r.relationship_key`),
    tx.rows<{ key: string } & LocationDocument>(sql`
      SELECT template_key AS key, label FROM portico.location_template WHERE app_id = ${appId} ORDER BY template_key`),
  ])
  if (!application) return undefined
  const { schemaName, releaseNumber } = application
  const fieldsOf = ({ objectId }: ObjectRow) => fieldRows.filter((field) => field.objectId === objectId)
  const custom = objectRows.filter(({ kind }) => kind === 'custom')
  const objects = custom.map((row) => objectDocument(row, fieldsOf(row)))
  return {
    appId,
    schemaName,
    releaseNumber,
    document: normalised({
      objects,
      relationships: byKey(relationships),
      roles: byKey(roles),
      locations: byKey(locations),
    }),
    objects: new Map(
      objectRows.map((row) => [
        row.objectKey,
        {
          kind: row.kind,
          objectId: row.objectId,
          tableName: row.tableName,
          table: `"${schemaName}"."${row.tableName}"`,
          fields: new Map(fieldsOf(row).map((field) => [field.fieldKey, field])),
        },
      ]),
    ),
  }
}

function objectDocument(row: ObjectRow, fields: readonly FieldRow[]): ObjectDocument {
  const { objectKey, label, pluralLabel, nameField, archived } = row
  return { objectKey, label, pluralLabel, nameField, archived, fields: fields.map(fieldDocument) }
}

function fieldDocument(row: FieldRow): FieldDocument {
  const {
    fieldKey,
    label,
    dataType,
    required,
    unique,
    indexed,
    searchable,
    options,
    validation,
    references,
    archived,
  } = row
  return {
    ...{ fieldKey, label, dataType, required, unique, indexed, searchable, validation, archived },
    ...(options && { options: [...options] }),
    ...(references !== null && { references }),
  }
}

function byKey<T>(rows: readonly ({ readonly key: string } & T)[]): Record<string, T> {
  return Object.fromEntries(rows.map(({ key, ...rest }) => [key, rest as T]))
}
