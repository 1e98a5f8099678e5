import sql, { raw } from 'sql-template-tag'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { assertValid } from '../../kernel/validation.ts'
import { type ApplicationModel, readModel } from '../catalogue/catalogue.ts'
import type { Field } from '../catalogue/field.ts'
import type { Database } from '../database/database.ts'
import { searchTag } from '../search-text.ts'
import { type FieldDocument, ModelDocument, type ObjectDocument, problemsOf } from './document.ts'
import { addColumns, columnName, createTable, fieldIndex, referenceConstraint } from './physical-table.ts'
import { inTurn } from './turn.ts'

/** The document cannot be applied; nothing was changed. */
export class ModelError extends Error {
  override readonly name = 'ModelError'
}

export interface ApplyResult {
  readonly objectsAdded: number
  readonly fieldsAdded: number
}

/**
 * Brings an application to a model document: adds the objects, fields and roles that are missing, sets the permissions of
 * the roles that it names, all in one transaction. Additive: what exists and differs in type is refused, what the document
 * does not name stays. Running it twice changes nothing the second time.
 */
export async function applyModel(database: Database, appId: string, document: unknown): Promise<ApplyResult> {
  assertValid(ModelDocument, document)
  return whenItIsTheirTurn(database, appId, async () => {
    const added = await database.as('portico_owner', (tx) => applyIn(tx, appId, document as ModelDocument))
    await buildUnfinished(database, appId)
    return added
  })
}

async function whenItIsTheirTurn<T>(database: Database, appId: string, work: () => Promise<T>): Promise<T> {
  const done = await inTurn(database, appId, work)
  if (!done) throw new ModelError('Another change of this model is still being applied.')
  return done.value
}

async function applyIn(tx: Tx, appId: string, document: ModelDocument): Promise<ApplyResult> {
  // DDL must not queue behind a long reader and so stop everybody behind it (data.md, Schema changes).
  await tx.rows(sql`SELECT set_config('lock_timeout', '1s', true)`)
  const before = await readModel(tx, appId, '')
  const problems = problemsOf(document, new Set(before.byKey.keys()))
  if (problems.length > 0) throw new ModelError(problems.join('\n'))
  const added = await addObjects(tx, before, document)
  await setRoles(tx, await readModel(tx, appId, ''), document.roles ?? {})
  await tx.rows(sql`SELECT portico.bump_epoch(${appId})`)
  return added
}

async function addObjects(tx: Tx, before: ApplicationModel, document: ModelDocument): Promise<ApplyResult> {
  const [application] = await tx.rows<{ schema_name: string }>(
    sql`SELECT schema_name FROM portico.application WHERE app_id = ${before.appId}`,
  )
  if (!application) throw new ModelError(`There is no application ${before.appId}.`)
  const schema = application.schema_name
  await ddl(tx, `CREATE SCHEMA IF NOT EXISTS "${schema}"`)
  await ddl(tx, `GRANT USAGE ON SCHEMA "${schema}" TO portico_app`)

  const added = document.objects.filter((object) => !before.byKey.has(object.objectKey))
  for (const object of added) {
    const table = object.objectKey.replaceAll('-', '_')
    await tx.rows(sql`
      INSERT INTO portico.object_definition (app_id, object_id, object_key, label, plural_label, table_name, name_field_key)
      VALUES (${before.appId}, ${uuidv7(Date.now())}, ${object.objectKey}, ${object.label}, ${object.pluralLabel},
        ${table}, ${object.nameField})`)
    for (const statement of createTable(schema, table)) await ddl(tx, statement)
  }
  let fieldsAdded = 0
  for (const object of document.objects) fieldsAdded += await addFields(tx, before, schema, object)
  return { objectsAdded: added.length, fieldsAdded }
}

async function addFields(tx: Tx, before: ApplicationModel, schema: string, object: ObjectDocument): Promise<number> {
  const existing = before.byKey.get(object.objectKey)
  const missing = object.fields.filter((field) => !refuseOrSkip(existing?.fieldsByKey.get(field.fieldKey), field))
  if (missing.length === 0) return 0
  const [{ object_id: objectId, table_name: table } = { object_id: '', table_name: '' }] = await tx.rows<{
    object_id: string
    table_name: string
  }>(sql`UPDATE portico.object_definition SET schema_revision = schema_revision + ${existing ? 1 : 0}
         WHERE app_id = ${before.appId} AND object_key = ${object.objectKey} RETURNING object_id, table_name`)
  const qualified = `"${schema}"."${table}"`
  let position = existing?.fields.length ?? 0
  let ordinal = existing?.fields.filter((field) => field.searchTag !== null).length ?? 0
  for (const document of missing) {
    const indexNow = existing === undefined
    const field = newField(document, document.searchable ? searchTag(ordinal++) : null, indexNow)
    const index = fieldIndex(qualified, field)
    await tx.rows(sql`
      INSERT INTO portico.field_definition (app_id, object_id, field_id, field_key, label, data_type, column_name, position,
        required, is_unique, indexed, index_state, searchable, search_tag, options, validation, reference_object_id)
      VALUES (${before.appId}, ${objectId}, ${field.fieldId}, ${field.fieldKey}, ${field.label}, ${field.dataType},
        ${field.column}, ${position++}, ${field.required}, ${field.unique}, ${field.indexed},
        ${index ? field.indexState : 'none'}, ${field.searchable}, ${field.searchTag},
        ${field.options && JSON.stringify(field.options)}, ${JSON.stringify(field.validation)},
        (SELECT object_id FROM portico.object_definition
          WHERE app_id = ${before.appId} AND object_key = ${document.references ?? null}))`)
    await ddl(tx, addColumns(qualified, field))
    // On a table that was made in this transaction nobody waits for the index; elsewhere it is built afterwards.
    if (index && indexNow) await ddl(tx, `CREATE ${index.unique ? 'UNIQUE ' : ''}INDEX ${index.definition}`)
    const target =
      field.dataType === 'user'
        ? 'portico.tenant_user'
        : document.references && `"${schema}"."${document.references.replaceAll('-', '_')}"`
    if (target) await ddl(tx, referenceConstraint(qualified, field, target))
  }
  return missing.length
}

function refuseOrSkip(existing: Field | undefined, document: FieldDocument): boolean {
  if (existing && existing.dataType !== document.dataType) {
    throw new ModelError(`${document.fieldKey} is of type ${existing.dataType} and cannot become ${document.dataType}.`)
  }
  return existing !== undefined
}

function newField(document: FieldDocument, tag: string | null, indexNow: boolean): Field {
  return {
    fieldId: uuidv7(Date.now()),
    fieldKey: document.fieldKey,
    label: document.label,
    dataType: document.dataType,
    column: columnName(document.fieldKey),
    required: document.required ?? false,
    unique: document.unique ?? false,
    indexed: document.indexed ?? false,
    indexState: indexNow ? 'ready' : 'building',
    searchable: document.searchable ?? false,
    searchTag: tag,
    options: document.options ?? null,
    validation: document.validation ?? {},
    referenceObjectId: null,
  }
}

async function setRoles(tx: Tx, model: ApplicationModel, roles: NonNullable<ModelDocument['roles']>): Promise<void> {
  for (const [templateKey, role] of Object.entries(roles)) {
    await tx.rows(sql`
      INSERT INTO portico.data_role_template (app_id, template_key, label) VALUES (${model.appId}, ${templateKey}, ${role.label})
      ON CONFLICT (app_id, template_key) DO UPDATE SET label = excluded.label`)
    for (const [objectKey, permission] of Object.entries(role.objects)) {
      const object = model.byKey.get(objectKey)
      if (!object) throw new ModelError(`Role ${templateKey} names the object ${objectKey}, which does not exist.`)
      const { read, create = false, update = false, archive = false, fields = {} } = permission
      await tx.rows(sql`DELETE FROM portico.field_permission
        WHERE app_id = ${model.appId} AND template_key = ${templateKey} AND object_id = ${object.objectId}`)
      await tx.rows(sql`
        INSERT INTO portico.object_permission (app_id, template_key, object_id, can_read, can_create, can_update, can_archive)
        VALUES (${model.appId}, ${templateKey}, ${object.objectId}, ${read}, ${create}, ${update}, ${archive})
        ON CONFLICT (app_id, template_key, object_id) DO UPDATE SET can_read = excluded.can_read,
          can_create = excluded.can_create, can_update = excluded.can_update, can_archive = excluded.can_archive`)
      for (const [fieldKey, rights] of Object.entries(fields)) {
        const field = object.fieldsByKey.get(fieldKey)
        if (!field) throw new ModelError(`Role ${templateKey} names ${objectKey}.${fieldKey}, which does not exist.`)
        await tx.rows(sql`
          INSERT INTO portico.field_permission (app_id, template_key, object_id, field_id, can_read, can_write)
          VALUES (${model.appId}, ${templateKey}, ${object.objectId}, ${field.fieldId}, ${rights.read}, ${rights.write})`)
      }
    }
  }
}

/**
 * Builds the indexes that fields on existing tables still wait for, without blocking writes, and reports how it went as
 * their `indexState`. Safe to run again: what a crash left invalid is dropped first, and what failed is tried again.
 */
export function buildIndexes(database: Database, appId: string): Promise<void> {
  return whenItIsTheirTurn(database, appId, () => buildUnfinished(database, appId))
}

async function buildUnfinished(database: Database, appId: string): Promise<void> {
  const model = await database.as('portico_owner', (tx) => readModel(tx, appId, ''))
  for (const object of model.objects) {
    for (const field of object.fields.filter(isUnfinished)) {
      const schema = object.table.split('.')[0]
      const index = fieldIndex(object.table, field)
      let state: Field['indexState'] = 'ready'
      if (index) {
        try {
          await database.alone(`DROP INDEX CONCURRENTLY IF EXISTS ${schema}."${index.name}"`)
          await database.alone(`CREATE ${index.unique ? 'UNIQUE ' : ''}INDEX CONCURRENTLY ${index.definition}`)
        } catch {
          state = 'failed'
        }
      }
      await database.as('portico_owner', async (tx) => {
        await tx.rows(sql`UPDATE portico.field_definition SET index_state = ${index ? state : 'none'}
          WHERE app_id = ${appId} AND object_id = ${object.objectId} AND field_id = ${field.fieldId}`)
        await tx.rows(sql`SELECT portico.bump_epoch(${appId})`)
      })
    }
  }
}

function isUnfinished({ indexState }: Field): boolean {
  return indexState === 'building' || indexState === 'failed'
}

async function ddl(tx: Tx, statement: string): Promise<void> {
  await tx.rows(sql`${raw(statement)}`)
}
