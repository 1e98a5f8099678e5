import sql from 'sql-template-tag'
import type { Caller } from '../../kernel/caller.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { type Behaviours, noBehaviours, type ObjectBehaviour } from './behaviour.ts'
import type { Field } from './field.ts'
import { type RelationshipDefinition, readRelationships } from './relationships.ts'

/**
 * The objects of an application as its callers work with them: definitions, physical tables, permissions of its role
 * templates. Read once for each state of the application (its epoch) and then shared by all requests.
 */
export interface ObjectDefinition {
  readonly objectId: string
  readonly objectKey: string
  readonly label: string
  readonly pluralLabel: string
  readonly kind: 'custom' | 'native'
  /** Quoted and qualified, ready for SQL. */
  readonly table: string
  readonly nameField: Field
  readonly schemaRevision: number
  /** Do the search documents of its records follow its fields, or are they still being written anew? */
  readonly searchState: 'building' | 'ready'
  readonly fields: readonly Field[]
  readonly fieldsByKey: ReadonlyMap<string, Field>
  /** Of a native object. */
  readonly behaviour?: ObjectBehaviour | undefined
}

export interface ObjectPermission {
  readonly read: boolean
  readonly create: boolean
  readonly update: boolean
  readonly archive: boolean
  readonly fields: ReadonlyMap<string, { readonly read: boolean; readonly write: boolean }>
}

export interface ApplicationModel {
  readonly appId: string
  readonly epoch: string
  readonly objects: readonly ObjectDefinition[]
  readonly byKey: ReadonlyMap<string, ObjectDefinition>
  readonly byId: ReadonlyMap<string, ObjectDefinition>
  /** By key. */
  readonly relationships: ReadonlyMap<string, RelationshipDefinition>
  /** By role template key, then by object id. */
  readonly permissions: ReadonlyMap<string, ReadonlyMap<string, ObjectPermission>>
}

export interface Catalogue {
  /**
   * The model of the caller's application. Returns at once, without a promise, when it is known: the first statement of a
   * request then leaves in the same write as BEGIN.
   */
  modelFor(tx: Tx, caller: Caller): ApplicationModel | Promise<ApplicationModel>
}

export function createCatalogue({ behaviours }: { readonly behaviours: Behaviours }): Catalogue {
  const models = new Map<string, ApplicationModel>()
  return {
    modelFor(tx, caller) {
      const known = models.get(caller.appId)
      if (known?.epoch === caller.epochs.application) return known
      return readModel(tx, caller.appId, caller.epochs.application, behaviours).then((model) => {
        models.set(caller.appId, model)
        return model
      })
    },
  }
}

interface ObjectRow extends Omit<ObjectDefinition, 'table' | 'nameField' | 'fields' | 'fieldsByKey' | 'behaviour'> {
  readonly schemaName: string
  readonly tableName: string
  readonly nameFieldKey: string
}
type FieldRow = Field & { readonly objectId: string }
interface PermissionRow {
  readonly templateKey: string
  readonly objectId: string
  readonly read: boolean
  readonly create: boolean
  readonly update: boolean
  readonly archive: boolean
  readonly fields: Record<string, { read: boolean; write: boolean }>
}

/** Reads the model of one application as it stands in this transaction. What is archived is left out: it does not exist. */
export async function readModel(
  tx: Tx,
  appId: string,
  epoch: string,
  behaviours: Behaviours = noBehaviours,
): Promise<ApplicationModel> {
  const [objectRows, fieldRows, permissionRows, relationships] = await Promise.all([
    tx.rows<ObjectRow>(sql`
      SELECT o.object_id AS "objectId", o.object_key AS "objectKey", o.label, o.plural_label AS "pluralLabel", o.kind,
        a.schema_name AS "schemaName", o.table_name AS "tableName", o.name_field_key AS "nameFieldKey",
        o.schema_revision AS "schemaRevision", o.search_state AS "searchState"
      FROM portico.object_definition o JOIN portico.application a USING (app_id)
      WHERE app_id = ${appId} AND o.archived_at IS NULL ORDER BY o.object_key`),
    tx.rows<FieldRow>(sql`
      SELECT object_id AS "objectId", field_id AS "fieldId", field_key AS "fieldKey", label, data_type AS "dataType",
        column_name AS "column", required, read_only AS "readOnly", is_unique AS "unique", indexed, index_state AS "indexState", searchable,
        search_tag AS "searchTag", options, validation, reference_object_id AS "referenceObjectId"
      FROM portico.field_definition WHERE app_id = ${appId} AND archived_at IS NULL ORDER BY object_id, position`),
    tx.rows<PermissionRow>(sql`
      SELECT p.template_key AS "templateKey", p.object_id AS "objectId", p.can_read AS "read", p.can_create AS "create",
        p.can_update AS "update", p.can_archive AS "archive",
        coalesce((SELECT json_object_agg(f.field_id, json_build_object('read', f.can_read, 'write', f.can_write))
                    FROM portico.field_permission f
                   WHERE f.app_id = p.app_id AND f.template_key = p.template_key AND f.object_id = p.object_id), '{}') AS fields
      FROM portico.object_permission p WHERE p.app_id = ${appId}`),
    readRelationships(tx, appId),
  ])
  const objects = objectRows.map((row) => {
    const behaviour = row.kind === 'native' ? behaviours.get(row.objectKey) : undefined
    const fields = fieldRows
      .filter((field) => field.objectId === row.objectId)
      .map((field) => ({ ...field, behaviour: behaviour?.fields.get(field.fieldKey) }))
    const fieldsByKey = new Map(fields.map((field) => [field.fieldKey, field]))
    const { schemaName, tableName, nameFieldKey, ...rest } = row
    const nameField = fieldsByKey.get(nameFieldKey)
    if (!nameField) throw new Error(`Object ${row.objectKey} has no name field.`)
    return { ...rest, table: `"${schemaName}"."${tableName}"`, nameField, fields, fieldsByKey, behaviour }
  })
  const permissions = new Map<string, Map<string, ObjectPermission>>()
  for (const { templateKey, objectId, fields, ...permission } of permissionRows) {
    const ofRole = permissions.get(templateKey) ?? new Map<string, ObjectPermission>()
    permissions.set(templateKey, ofRole.set(objectId, { ...permission, fields: new Map(Object.entries(fields)) }))
  }
  return {
    appId,
    epoch,
    objects,
    byKey: new Map(objects.map((object) => [object.objectKey, object])),
    byId: new Map(objects.map((object) => [object.objectId, object])),
    relationships,
    permissions,
  }
}
