import sql from 'sql-template-tag'
import { applyModel } from '../../src/shared/modelling/apply.ts'
import type { FieldDocument } from '../../src/shared/modelling/document.ts'
import { objectOf } from './application.ts'
import type { RecordService } from './record-service.ts'
import { createTenant } from './tenants.ts'

/** Applications whose model a test changes: an object `note` with a title, and what a document adds. */
export const text = (fieldKey: string, more: Partial<FieldDocument> = {}): FieldDocument => ({
  fieldKey,
  label: fieldKey,
  dataType: 'text',
  ...more,
})
export const note = (...fields: readonly FieldDocument[]) =>
  objectOf('note', [text('title', { searchable: true }), ...fields])

interface FieldState {
  readonly fieldKey: string
  readonly dataType: string
  readonly indexState: string
  readonly searchable: boolean
}

/** An application of its own, with somebody who may do everything and somebody who reads what a role lets him. */
export async function newApplication(running: RecordService) {
  const { database } = running.db
  const tenant = await createTenant(database, {
    dataRoles: ['reader'],
    organizations: { a: { users: { owner: { owner: true }, reader: { roles: ['reader'] } } } },
  })
  const { owner, reader } = tenant.organizations.a.users
  const saasAppId = tenant.appId
  const schemaOf = async (objectKey: string) => {
    const { body } = await running.send<{ schemaRevision: number; fields: readonly FieldState[] }>(
      'developerObjectsGetSchema',
      owner,
      { params: { saasAppId, objectKey } },
    )
    return body
  }
  return {
    ...tenant,
    schemaOf,
    apply: (document: unknown) => applyModel(database, tenant.appId, document),
    owner: (objectKey = 'note') => running.records(saasAppId, owner, objectKey),
    reader: (objectKey = 'note') => running.records(saasAppId, reader, objectKey),
    stateOf: async (fieldKey: string) =>
      (await schemaOf('note')).fields.find((field) => field.fieldKey === fieldKey)?.indexState,
    /** Everything that the service keeps of the model, to compare. */
    definitions: () =>
      database.as('portico_owner', (tx) =>
        Promise.all([
          tx.rows(sql`SELECT * FROM portico.object_definition WHERE app_id = ${saasAppId} ORDER BY object_id`),
          tx.rows(sql`SELECT * FROM portico.field_definition WHERE app_id = ${saasAppId} ORDER BY field_id`),
          tx.rows(
            sql`SELECT * FROM portico.object_permission WHERE app_id = ${saasAppId} ORDER BY object_id, template_key`,
          ),
          tx.rows(
            sql`SELECT * FROM portico.field_permission WHERE app_id = ${saasAppId} ORDER BY field_id, template_key`,
          ),
          tx.rows(sql`SELECT table_name, column_name, data_type FROM information_schema.columns
            WHERE table_schema = ${tenant.schemaName} ORDER BY 1, 2`),
          tx.rows(sql`SELECT indexrelid::regclass::text AS name, indisvalid AS valid, indisunique AS "unique" FROM pg_index
            JOIN pg_class c ON c.oid = indrelid WHERE c.relnamespace = ${tenant.schemaName}::regnamespace ORDER BY 1`),
        ]),
      ),
  }
}

export type ModelledApplication = Awaited<ReturnType<typeof newApplication>>
