import sql, { raw } from 'sql-template-tag'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { Field } from '../catalogue/field.ts'
import { searchTag } from '../search-text.ts'
import type { Change } from './changes.ts'
import type { FieldDocument, ModelDocument, ObjectDocument } from './document.ts'
import {
  checkUser,
  columnName,
  createTable,
  dropColumns,
  fieldIndex,
  indexName,
  referenceConstraint,
} from './physical-table.ts'
import type { PublishedModel } from './published.ts'
import { rowsWithValue, sumOverOrganizations } from './stakes.ts'

/**
 * How changes of objects and fields are carried out: the rows that define them at once, what needs the locks of tables
 * collected for the end of the transaction, so that the locks are held for milliseconds.
 */
export interface Publishing {
  readonly tx: Tx
  readonly published: PublishedModel
  readonly wanted: ModelDocument
  /** Objects that this transaction makes, by key. */
  readonly made: Map<string, MadeObject>
  /** Makes the tables of these. Nobody sees them yet, so nothing of it needs a lock that somebody could wait for. */
  readonly making: string[]
  /** References between these, for when all of them are there. */
  readonly linking: string[]
  /** Columns of tables that exist, by table: added in one statement each. */
  readonly columns: Map<string, Field[]>
  /** Tables that exist and whose columns or indexes change. */
  readonly tables: Set<string>
  /** Tables that columns begin to refer to. */
  readonly targets: Set<string>
  readonly ddl: (string | (() => Promise<void>))[]
  /** Objects whose schema changes. */
  readonly touched: Set<string>
  /** Objects whose search documents must be written anew. */
  readonly searched: Set<string>
}

export interface MadeObject {
  readonly objectId: string
  readonly tableName: string
  /** Quoted and qualified. */
  readonly table: string
}

/** Rows were written between the moment they were counted and the moment the table was locked. */
export class RowsAppeared extends Error {
  override readonly name = 'RowsAppeared'
}

type Step = (publishing: Publishing, change: Change) => Promise<void>

export const objectSteps: Readonly<Record<string, Step>> = {
  'object.added': addObject,
  'object.changed': changeObject,
  'object.archived': archiveObject,
  'object.restored': archiveObject,
  'object.removed': removeObject,
  'field.added': addField,
  'field.changed': changeField,
  'field.archived': archiveField,
  'field.restored': archiveField,
  'field.removed': removeField,
}

function tableOf({ published, made }: Publishing, objectKey: string): string {
  return (made.get(objectKey) ?? published.objects.get(objectKey)!).table
}

async function addObject(publishing: Publishing, { key }: Change): Promise<void> {
  const { tx, published, wanted, made } = publishing
  const object = wanted.objects.find((one) => one.objectKey === key)!
  const objectId = uuidv7(Date.now())
  const tableName = await freeName(publishing, key.replaceAll('-', '_'), objectId)
  made.set(key, { objectId, tableName, table: `"${published.schemaName}"."${tableName}"` })
  await tx.rows(sql`
    INSERT INTO portico.object_definition (app_id, object_id, object_key, label, plural_label, table_name, name_field_key,
      archived_at)
    VALUES (${published.appId}, ${objectId}, ${key}, ${object.label}, ${object.pluralLabel}, ${tableName},
      ${object.nameField}, CASE WHEN ${object.archived ?? false} THEN now() END)`)
}

/** Tables share their names with indexes, and those of older objects are called `deal_role`. */
async function freeName({ tx, published }: Publishing, name: string, objectId: string): Promise<string> {
  const taken = await tx.rows(sql`SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ${published.schemaName} AND c.relname = ${name}`)
  return taken.length === 0 ? name : `${name}_${objectId.slice(-12)}`
}

/** The fields of objects that were added; run when all of these have a row. */
export async function addFieldsOfNewObjects(publishing: Publishing): Promise<void> {
  const { published, wanted, made, making } = publishing
  for (const object of wanted.objects) {
    const its = made.get(object.objectKey)
    if (!its) continue
    const fields: Field[] = []
    for (const document of object.fields) fields.push(await defineField(publishing, object, document, 'ready'))
    const indexes = fields.flatMap((field) => fieldIndex(its.table, field) ?? [])
    making.push(
      ...createTable(published.schemaName, its, fields),
      // Nobody waits for the index of an empty table; on one with records it is built afterwards.
      ...indexes.map(({ unique, definition }) => `CREATE ${unique ? 'UNIQUE ' : ''}INDEX ${definition}`),
    )
    for (const [position, field] of fields.entries()) {
      addReference(publishing, object, field, object.fields[position]!.references)
    }
  }
}

async function changeObject({ tx, published, wanted, touched }: Publishing, { key }: Change): Promise<void> {
  const { label, pluralLabel, nameField } = wanted.objects.find((one) => one.objectKey === key)!
  touched.add(key)
  await tx.rows(sql`UPDATE portico.object_definition
    SET label = ${label}, plural_label = ${pluralLabel}, name_field_key = ${nameField}
    WHERE app_id = ${published.appId} AND object_key = ${key}`)
}

async function archiveObject({ tx, published, touched }: Publishing, { key, verb }: Change): Promise<void> {
  touched.add(key)
  await tx.rows(sql`UPDATE portico.object_definition SET archived_at = CASE WHEN ${verb === 'archived'} THEN now() END
    WHERE app_id = ${published.appId} AND object_key = ${key}`)
}

/** Everything that is kept of its records goes with it, in one organisation after the other. */
async function removeObject(publishing: Publishing, change: Change): Promise<void> {
  const { tx, published, tables, ddl } = publishing
  const { objectId, table, fields } = published.objects.get(change.key)!
  const { appId } = published
  // What still refers to it goes in this transaction, too: problems.ts has seen to that.
  await tx.rows(sql`UPDATE portico.field_definition SET reference_object_id = NULL
    WHERE app_id = ${appId} AND reference_object_id = ${objectId}`)
  for (const name of ['field_permission', 'object_permission', 'field_definition', 'object_definition']) {
    await tx.rows(sql`DELETE FROM ${raw(`portico.${name}`)} WHERE app_id = ${appId} AND object_id = ${objectId}`)
  }
  const mine = `organization_id = $1 AND record_id IN (SELECT record_id FROM portico.record_directory
    WHERE organization_id = $1 AND object_id = ($2::jsonb ->> 'objectId')::uuid)`
  for (const name of ['record_participant', 'record_history', 'search_document', 'record_directory']) {
    const statement = `WITH gone AS (DELETE FROM portico.${name} WHERE ${mine} RETURNING 1) SELECT count(*) FROM gone`
    await sumOverOrganizations(tx, appId, statement, { objectId })
  }
  for (const name of [table, ...[...fields.values()].flatMap((one) => targetOf(published, one) ?? [])]) tables.add(name)
  if (change.before?.['archived'] !== true) {
    const statement = `SELECT count(*) FROM ${table} WHERE organization_id = $1 AND $2::jsonb IS NOT NULL`
    ddl.push(refuseRows(publishing, statement))
  }
  // CASCADE: to the foreign keys of tables that go with it.
  ddl.push(`DROP TABLE ${table} CASCADE`)
}

async function addField(publishing: Publishing, { key, fieldKey }: Change): Promise<void> {
  const { wanted, touched, tables, columns } = publishing
  const object = wanted.objects.find((one) => one.objectKey === key)!
  const document = object.fields.find((field) => field.fieldKey === fieldKey)!
  const table = tableOf(publishing, key)
  touched.add(key)
  tables.add(table)
  const field = await defineField(publishing, object, document, 'building')
  columns.set(table, [...(columns.get(table) ?? []), field])
  addReference(publishing, object, field, document.references)
}

/** Writes the row of a field; its column is up to the caller. */
async function defineField(
  publishing: Publishing,
  object: ObjectDocument,
  document: FieldDocument,
  indexState: Field['indexState'],
): Promise<Field> {
  const { tx, published } = publishing
  const { appId } = published
  const { objectKey } = object
  const field = newField(document, indexState)
  const tag = document.searchable && !document.archived ? await nextTag(publishing, objectKey) : null
  await tx.rows(sql`
    INSERT INTO portico.field_definition (app_id, object_id, field_id, field_key, label, data_type, column_name, position,
      required, is_unique, indexed, index_state, searchable, search_tag, options, validation, reference_object_id,
      archived_at)
    SELECT ${appId}, o.object_id, ${field.fieldId}, ${field.fieldKey}, ${field.label}, ${field.dataType}, ${field.column},
      ${object.fields.indexOf(document)}, ${field.required}, ${field.unique}, ${field.indexed},
      ${fieldIndex('', field) ? field.indexState : 'none'}, ${field.searchable}, ${tag},
      ${field.options && JSON.stringify(field.options)}, ${JSON.stringify(field.validation)},
      (SELECT object_id FROM portico.object_definition
        WHERE app_id = ${appId} AND object_key = ${document.references ?? null}),
      CASE WHEN ${document.archived ?? false} THEN now() END
    FROM portico.object_definition o WHERE o.app_id = ${appId} AND o.object_key = ${objectKey}`)
  return field
}

/** What holds the values of a new field to what they refer to. */
function addReference(
  publishing: Publishing,
  { objectKey }: ObjectDocument,
  field: Field,
  references: string | undefined,
): void {
  const { made, making, linking, targets, ddl } = publishing
  const isNew = made.has(objectKey)
  const table = tableOf(publishing, objectKey)
  if (field.dataType === 'user') {
    const steps = isNew ? making : ddl
    steps.push(...checkUser(table, field))
  }
  if (references === undefined) return
  const constraint = referenceConstraint(table, field, tableOf(publishing, references))
  if (isNew && made.has(references)) {
    linking.push(constraint)
    return
  }
  if (!made.has(references)) targets.add(tableOf(publishing, references))
  // Nothing to validate: the column is new, all its values are null, and looking at a million of them takes 100 ms.
  ddl.push(isNew ? constraint : `${constraint} NOT VALID`)
}

/** The rest comes from what is published. */
function newField(document: FieldDocument, indexState: Field['indexState']): Field {
  return {
    fieldId: uuidv7(Date.now()),
    fieldKey: document.fieldKey,
    label: document.label,
    dataType: document.dataType,
    column: columnName(document.fieldKey),
    required: document.required ?? false,
    readOnly: false,
    unique: document.unique ?? false,
    indexed: document.indexed ?? false,
    indexState,
    searchable: document.searchable ?? false,
    searchTag: null,
    options: document.options ?? null,
    validation: document.validation ?? {},
    referenceObjectId: null,
  }
}

async function nextTag({ tx, published }: Publishing, objectKey: string): Promise<string> {
  const [row] = await tx.rows<{ given: number }>(sql`
    UPDATE portico.object_definition SET search_tags_given = search_tags_given + 1
    WHERE app_id = ${published.appId} AND object_key = ${objectKey} RETURNING search_tags_given AS given`)
  return searchTag(row!.given - 1)
}

async function changeField(publishing: Publishing, { key, fieldKey, before, after }: Change): Promise<void> {
  const { tx, published, wanted, touched, searched } = publishing
  const object = published.objects.get(key)!
  const field = object.fields.get(fieldKey!)!
  const document = wanted.objects.find((one) => one.objectKey === key)!.fields.find((one) => one.fieldKey === fieldKey)!
  const changed = (property: keyof FieldDocument) => Object.hasOwn(after ?? {}, property)
  touched.add(key)
  await tx.rows(sql`UPDATE portico.field_definition SET label = ${document.label},
      required = ${document.required ?? false}, is_unique = ${document.unique ?? false},
      indexed = ${document.indexed ?? false}, searchable = ${document.searchable ?? false},
      options = ${document.options ? JSON.stringify(document.options) : null}::jsonb,
      validation = ${JSON.stringify(document.validation ?? {})}::jsonb
    WHERE app_id = ${published.appId} AND object_id = ${object.objectId} AND field_id = ${field.fieldId}`)
  if (changed('unique') || changed('indexed')) await changeIndex(publishing, object, field, document)
  const wasFound = before?.['searchable'] === true
  if (changed('searchable')) {
    const tag = document.searchable && !document.archived ? await nextTag(publishing, key) : null
    await setTag(publishing, object.objectId, field, tag)
    searched.add(key)
  } else if (changed('options') && (wasFound || document.searchable)) searched.add(key) // people find labels
}

/** The old index goes with the transaction, the new one is built after it. */
async function changeIndex(
  { tx, published, tables, ddl }: Publishing,
  object: { readonly objectId: string; readonly table: string },
  field: Field,
  document: FieldDocument,
): Promise<void> {
  const after = { ...field, unique: document.unique ?? false, indexed: document.indexed ?? false }
  const [old, next] = [fieldIndex(object.table, field), fieldIndex(object.table, after)]
  if (old?.definition === next?.definition && old?.unique === next?.unique) return
  await tx.rows(sql`UPDATE portico.field_definition SET index_state = ${next ? 'building' : 'none'}
    WHERE app_id = ${published.appId} AND object_id = ${object.objectId} AND field_id = ${field.fieldId}`)
  if (!old) return
  tables.add(object.table)
  ddl.push(`DROP INDEX IF EXISTS "${published.schemaName}"."${indexName(field)}"`)
}

async function setTag(
  { tx, published }: Publishing,
  objectId: string,
  field: Field,
  tag: string | null,
): Promise<void> {
  await tx.rows(sql`UPDATE portico.field_definition SET search_tag = ${tag}
    WHERE app_id = ${published.appId} AND object_id = ${objectId} AND field_id = ${field.fieldId}`)
}

/** What is out of sight is not found either, and is found again when it is back. */
async function archiveField(publishing: Publishing, { key, fieldKey, verb }: Change): Promise<void> {
  const { tx, published, wanted, touched, searched } = publishing
  const { objectId, fields } = published.objects.get(key)!
  const field = fields.get(fieldKey!)!
  const searchable = wanted.objects
    .find((one) => one.objectKey === key)!
    .fields.find((one) => one.fieldKey === fieldKey)!.searchable
  touched.add(key)
  await tx.rows(sql`UPDATE portico.field_definition SET archived_at = CASE WHEN ${verb === 'archived'} THEN now() END
    WHERE app_id = ${published.appId} AND object_id = ${objectId} AND field_id = ${field.fieldId}`)
  if (!field.searchable && !searchable) return
  await setTag(publishing, objectId, field, verb === 'restored' && searchable ? await nextTag(publishing, key) : null)
  searched.add(key)
}

async function removeField(publishing: Publishing, change: Change): Promise<void> {
  const { tx, published, touched, tables, searched, ddl } = publishing
  const object = published.objects.get(change.key)!
  const field = object.fields.get(change.fieldKey!)!
  const { objectId, table } = object
  touched.add(change.key)
  for (const name of ['field_permission', 'field_definition']) {
    await tx.rows(sql`DELETE FROM ${raw(`portico.${name}`)}
      WHERE app_id = ${published.appId} AND object_id = ${objectId} AND field_id = ${field.fieldId}`)
  }
  if (field.dataType === 'autoNumber') {
    const statement = `WITH gone AS (DELETE FROM portico.auto_number WHERE organization_id = $1
      AND field_id = ($2::jsonb ->> 'fieldId')::uuid RETURNING 1) SELECT count(*) FROM gone`
    await sumOverOrganizations(tx, published.appId, statement, { fieldId: field.fieldId })
  }
  if (field.searchTag !== null) searched.add(change.key)
  const target = targetOf(published, field)
  if (target) tables.add(target)
  tables.add(table)
  if (change.before?.['archived'] !== true) ddl.push(refuseRows(publishing, rowsWithValue(object, field)))
  ddl.push(...dropColumns(table, field))
}

/** The table of the object that the values of a field refer to. Taking a foreign key away locks it as well. */
function targetOf({ objects }: PublishedModel, { referenceObjectId }: Field): string | undefined {
  return [...objects.values()].find(({ objectId }) => objectId === referenceObjectId)?.table
}

/** Asked again under the lock: what was empty when it was counted may have been written to since. */
function refuseRows({ tx, published }: Publishing, statement: string): () => Promise<void> {
  return async () => {
    if ((await sumOverOrganizations(tx, published.appId, statement)) > 0) throw new RowsAppeared()
  }
}
