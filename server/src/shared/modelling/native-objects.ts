import { createHash } from 'node:crypto'
import sql, { raw } from 'sql-template-tag'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { Field } from '../catalogue/field.ts'
import { searchTag } from '../search-text.ts'
import type { FieldDocument, ObjectDocument } from './document.ts'
import { lockTables } from './lock-tables.ts'
import { type NativeRelationship, writeNativeRelationships } from './native-relationships.ts'
import { addColumns, checkUser, columnName, createTable, fieldIndex, referenceConstraint } from './physical-table.ts'

/**
 * Native objects: what every application has beside the objects of its own model, made from the descriptors of the native
 * modules. They are objects like any other, with a table each; a model document never holds them, but may name them.
 */
export interface NativeObject extends Omit<ObjectDocument, 'fields' | 'archived'> {
  readonly fields: readonly NativeField[]
}

export interface NativeField extends Omit<FieldDocument, 'archived'> {
  /** Set by the service. */
  readonly readOnly?: boolean
}

export interface NativeObjects {
  readonly objects: readonly NativeObject[]
  readonly relationships: readonly NativeRelationship[]
  /** Other objects, other version: what applications are compared by. */
  readonly version: string
}

/** Puts a version on definitions: a hash of what they say. */
export function versioned(
  objects: readonly NativeObject[],
  relationships: readonly NativeRelationship[] = [],
): NativeObjects {
  const version = createHash('sha256')
    .update(JSON.stringify([objects, relationships]))
    .digest('hex')
  return { objects, relationships, version }
}

/** A custom key begins with a letter, so no table of a custom object is called like that. */
const tableNameOf = (objectKey: string) => `_${objectKey.replaceAll('-', '_')}`

/**
 * Brings the native objects of an application to these, in this transaction, as the owner. Adds: objects and fields that
 * it does not have; of fields that it has, labels, options, limits and order follow, and what is to be indexed or searched
 * from now on is left to the index builder. Nothing is removed, no type changes. An object whose key a custom object has
 * is left out, with the references to it, until that object is gone. Throws `TablesInUse`.
 */
export async function installNativeObjects(tx: Tx, appId: string, native: NativeObjects): Promise<void> {
  const installed = await readInstalled(tx, appId)
  const taken = new Set(installed.objects.filter(({ kind }) => kind === 'custom').map(({ objectKey }) => objectKey))
  const wanted = native.objects.filter(({ objectKey }) => !taken.has(objectKey))
  const version = versionWithout(native, taken)
  if (installed.version === version) return
  const objects = wanted.map((object) => planOf(installed, object, wanted))
  await writeDefinitions(tx, appId, objects)
  await writeNativeRelationships(tx, appId, native.relationships)
  await tx.rows(sql`UPDATE portico.application SET native_version = ${version} WHERE app_id = ${appId}`)
  await tx.rows(sql`SELECT portico.bump_epoch(${appId})`)
  await changeTables(tx, installed.schemaName, objects)
}

/** Not the version itself where objects are left out: the next start looks whether they still have to be. */
function versionWithout({ objects, version }: NativeObjects, taken: ReadonlySet<string>): string {
  const missing = objects.filter(({ objectKey }) => taken.has(objectKey))
  return [version, ...missing.map(({ objectKey }) => objectKey)].join(' without ')
}

interface Installed {
  readonly schemaName: string
  readonly version: string | null
  readonly objects: readonly InstalledObject[]
}

interface InstalledObject {
  readonly objectId: string
  readonly objectKey: string
  readonly kind: 'custom' | 'native'
  readonly tagsGiven: number
  /** Of native objects; none of custom ones. */
  readonly fields: readonly (Field & { readonly references: string | null })[]
}

async function readInstalled(tx: Tx, appId: string): Promise<Installed> {
  const [[application], objects, fields] = await Promise.all([
    tx.rows<{ schemaName: string; version: string | null }>(sql`
      SELECT schema_name AS "schemaName", native_version AS version FROM portico.application WHERE app_id = ${appId}`),
    tx.rows<Omit<InstalledObject, 'fields'>>(sql`
      SELECT object_id AS "objectId", object_key AS "objectKey", kind, search_tags_given AS "tagsGiven"
      FROM portico.object_definition WHERE app_id = ${appId}`),
    tx.rows<InstalledObject['fields'][number] & { readonly objectId: string }>(sql`
      SELECT f.object_id AS "objectId", f.field_id AS "fieldId", f.field_key AS "fieldKey", f.label,
        f.data_type AS "dataType", f.column_name AS "column", f.required, f.read_only AS "readOnly",
        f.is_unique AS "unique", f.indexed, f.index_state AS "indexState", f.searchable, f.search_tag AS "searchTag",
        f.options, f.validation, f.reference_object_id AS "referenceObjectId", r.object_key AS "references"
      FROM portico.field_definition f JOIN portico.object_definition o USING (app_id, object_id)
      LEFT JOIN portico.object_definition r ON r.app_id = f.app_id AND r.object_id = f.reference_object_id
      WHERE f.app_id = ${appId} AND o.kind = 'native'`),
  ])
  if (!application) throw new Error(`There is no application ${appId}.`)
  return {
    ...application,
    objects: objects.map((object) => ({
      ...object,
      fields: fields.filter(({ objectId }) => objectId === object.objectId),
    })),
  }
}

interface ObjectPlan {
  readonly definition: NativeObject
  readonly objectId: string
  readonly tableName: string
  readonly isNew: boolean
  readonly tagsGiven: number
  /** Do fields that records have values in become searchable? */
  readonly searchedAnew: boolean
  readonly fields: readonly FieldPlan[]
}

interface FieldPlan extends Field {
  readonly isNew: boolean
  readonly references: string | null
}

function planOf(installed: Installed, definition: NativeObject, wanted: readonly NativeObject[]): ObjectPlan {
  const known = installed.objects.find(({ objectKey }) => objectKey === definition.objectKey)
  const there = new Set(wanted.map(({ objectKey }) => objectKey))
  let tagsGiven = known?.tagsGiven ?? 0
  let searchedAnew = false
  const fields = definition.fields
    .filter(({ references }) => references === undefined || there.has(references))
    .map((field): FieldPlan => {
      const before = known?.fields.find(({ fieldKey }) => fieldKey === field.fieldKey)
      requireSameType(definition, field, before)
      const searchable = field.searchable === true || before?.searchable === true
      const isFound = searchable && before?.searchTag == null
      if (isFound && before) searchedAnew = true
      return fieldPlan(field, before, {
        isNew: !before,
        searchable,
        searchTag: isFound ? searchTag(tagsGiven++) : (before?.searchTag ?? null),
        indexNow: !known,
      })
    })
  const { objectId = uuidv7(Date.now()) } = known ?? {}
  const tableName = tableNameOf(definition.objectKey)
  return { definition, objectId, tableName, isNew: !known, tagsGiven, searchedAnew, fields }
}

function fieldPlan(
  field: NativeField,
  before: Field | undefined,
  decided: Pick<FieldPlan, 'isNew' | 'searchable' | 'searchTag'> & { readonly indexNow: boolean },
): FieldPlan {
  const { isNew, searchable, searchTag: tag, indexNow } = decided
  const plan = {
    fieldId: before?.fieldId ?? uuidv7(Date.now()),
    fieldKey: field.fieldKey,
    label: field.label,
    dataType: field.dataType,
    column: columnName(field.fieldKey),
    required: field.required ?? false,
    readOnly: field.readOnly ?? false,
    // Of values that exist nobody can say that they differ.
    unique: before?.unique ?? field.unique ?? false,
    indexed: field.indexed === true || before?.indexed === true,
    indexState: before?.indexState ?? 'none',
    searchable,
    searchTag: tag,
    options: field.options ?? null,
    validation: field.validation ?? {},
    referenceObjectId: null,
    references: field.references ?? null,
    isNew,
  } as const
  const had = before && fieldIndex('', before)
  const wants = fieldIndex('', plan)
  return wants && !had ? { ...plan, indexState: indexNow ? 'ready' : 'building' } : plan
}

function requireSameType(
  { objectKey }: NativeObject,
  { fieldKey, dataType, references }: NativeField,
  before: InstalledObject['fields'][number] | undefined,
): void {
  if (!before || (before.dataType === dataType && before.references === (references ?? null))) return
  throw new Error(`${objectKey}.${fieldKey} is a ${before.dataType} and cannot become a ${dataType}.`)
}

async function writeDefinitions(tx: Tx, appId: string, objects: readonly ObjectPlan[]): Promise<void> {
  const objectRows = objects.map(({ definition, objectId, tableName, tagsGiven, searchedAnew }) => {
    const { objectKey, label, pluralLabel, nameField } = definition
    return { objectId, objectKey, label, pluralLabel, nameField, tableName, tagsGiven, searchedAnew }
  })
  await tx.rows(sql`
    INSERT INTO portico.object_definition AS o (app_id, object_id, object_key, label, plural_label, kind, table_name,
      name_field_key, search_tags_given)
    SELECT ${appId}, r."objectId", r."objectKey", r.label, r."pluralLabel", 'native', r."tableName", r."nameField",
      r."tagsGiven"
    FROM json_to_recordset(${JSON.stringify(objectRows)}::json) AS r ("objectId" uuid, "objectKey" text, label text,
      "pluralLabel" text, "tableName" text, "nameField" text, "tagsGiven" integer)
    ON CONFLICT (app_id, object_key) DO UPDATE SET label = excluded.label, plural_label = excluded.plural_label,
      name_field_key = excluded.name_field_key, search_tags_given = excluded.search_tags_given,
      schema_revision = o.schema_revision + 1`)
  await tx.rows(sql`UPDATE portico.object_definition SET search_state = 'building'
    WHERE app_id = ${appId} AND object_id = ANY (${objectRows.flatMap((row) => (row.searchedAnew ? row.objectId : []))})`)
  const fieldRows = objects.flatMap(({ objectId, fields }) =>
    fields.map((field, position) => ({ ...field, objectId, position })),
  )
  await tx.rows(sql`
    INSERT INTO portico.field_definition (app_id, object_id, field_id, field_key, label, data_type, column_name, position,
      required, read_only, is_unique, indexed, index_state, searchable, search_tag, options, validation,
      reference_object_id)
    SELECT ${appId}, r."objectId", r."fieldId", r."fieldKey", r.label, r."dataType", r."column", r.position,
      r.required, r."readOnly", r."unique", r.indexed, r."indexState", r.searchable, r."searchTag",
      CASE WHEN json_typeof(r.options) <> 'null' THEN r.options END::jsonb, r.validation::jsonb, o.object_id
    FROM json_to_recordset(${JSON.stringify(fieldRows)}::json) AS r ("objectId" uuid, "fieldId" uuid, "fieldKey" text,
      label text, "dataType" text, "column" text, position integer, required boolean, "readOnly" boolean,
      "unique" boolean, indexed boolean, "indexState" text, searchable boolean, "searchTag" text, options json,
      validation json, "references" text)
    LEFT JOIN portico.object_definition o ON o.app_id = ${appId} AND o.object_key = r."references"
    ON CONFLICT (app_id, object_id, field_key) DO UPDATE SET label = excluded.label, position = excluded.position,
      required = excluded.required, read_only = excluded.read_only, indexed = excluded.indexed,
      index_state = excluded.index_state, searchable = excluded.searchable, search_tag = excluded.search_tag,
      options = excluded.options, validation = excluded.validation`)
}

/**
 * All tables in one statement: nineteen of them, one statement after the other, are 600 round trips. What has to wait for
 * others comes last, so that they wait for milliseconds.
 */
async function changeTables(tx: Tx, schemaName: string, objects: readonly ObjectPlan[]): Promise<void> {
  const qualified = (objectKey: string) => `"${schemaName}"."${tableNameOf(objectKey)}"`
  const made = objects.filter(({ isNew }) => isNew)
  const grown = objects.filter(({ isNew, fields }) => !isNew && fields.some((field) => field.isNew))
  const ddl = made.flatMap((plan) => {
    const { definition, fields } = plan
    const table = qualified(definition.objectKey)
    const indexes = fields.flatMap((field) => fieldIndex(table, field) ?? [])
    return [
      ...createTable(schemaName, plan, fields),
      ...indexes.map(({ unique, definition: index }) => `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${index}`),
    ]
  })
  for (const { definition, fields } of grown) {
    const table = qualified(definition.objectKey)
    ddl.push(
      addColumns(
        table,
        fields.filter((field) => field.isNew),
      ),
    )
  }
  for (const { definition, isNew, fields } of objects) {
    for (const field of fields.filter((one) => one.isNew)) {
      const table = qualified(definition.objectKey)
      if (field.dataType === 'user') ddl.push(...checkUser(table, field))
      if (field.references === null) continue
      const constraint = referenceConstraint(table, field, qualified(field.references))
      // On a table that exists the column is new and empty: nothing to validate.
      ddl.push(isNew ? constraint : `${constraint} NOT VALID`)
    }
  }
  if (ddl.length === 0) return
  await lockTables(tx, grown.map(({ definition }) => qualified(definition.objectKey)).sort(), [])
  await tx.rows(sql`${raw(`DO $native$ BEGIN ${ddl.map((statement) => `${statement};`).join('\n')} END $native$`)}`)
}
