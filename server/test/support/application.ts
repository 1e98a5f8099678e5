import { applyModel } from '../../src/shared/modelling/apply.ts'
import type { ModelDocument } from '../../src/shared/modelling/document.ts'
import { type RecordClient, type RecordService, startRecordService } from './record-service.ts'
import { createTenant, type Tenant, type TenantPlan, type TestCredential } from './tenants.ts'

/** A service with one application: tenants by plan, objects by document. */
export interface Application<P extends TenantPlan> extends Tenant<P> {
  readonly running: RecordService
  records(credential: TestCredential, objectKey: string): RecordClient
  close(): Promise<void>
}

export async function startApplication<const P extends TenantPlan>(
  plan: P,
  document: ModelDocument,
  options: Parameters<typeof startRecordService>[0] = {},
): Promise<Application<P>> {
  const running = await startRecordService(options)
  const tenant = await createTenant(running.db.database, plan)
  await applyModel(running.db.database, tenant.appId, document)
  return {
    ...tenant,
    running,
    records: (credential, objectKey) => running.records(tenant.appId, credential, objectKey),
    close: () => running.close(),
  }
}

type ObjectDocument = ModelDocument['objects'][number]
type FieldDocument = ObjectDocument['fields'][number]

/** An object of fields told in a line each; the first one names its records unless said otherwise. */
export function objectOf(
  objectKey: string,
  fields: readonly (Omit<FieldDocument, 'label'> & { readonly label?: string })[],
  nameField = fields[0]!.fieldKey,
): ObjectDocument {
  return {
    objectKey,
    label: objectKey,
    pluralLabel: `${objectKey}s`,
    nameField,
    fields: fields.map((field) => ({ label: field.fieldKey, ...field })),
  }
}
