import { auditOperations } from './features/audit/operations.ts'
import { billingOperations } from './features/billing/operations.ts'
import { credentialOperations } from './features/credentials/operations.ts'
import { diagnosticsOperations } from './features/diagnostics/operations.ts'
import { discoveryOperations } from './features/discovery/operations.ts'
import { globalSearchOperations, globalSearchTenantOperations } from './features/global-search/operations.ts'
import { moduleOperations } from './features/modules/operations.ts'
import { moduleTenantOperations } from './features/modules/tenant-operations.ts'
import { objectOperations } from './features/objects/operations.ts'
import { longOperations } from './features/operations-status/operations.ts'
import { accountOperations, accountVisitorOperations } from './features/platform/account/operations.ts'
import { applicationOperations } from './features/platform/applications/operations.ts'
import { platformContractOperations } from './features/platform/contract/operations.ts'
import { modellingOperations } from './features/platform/modelling/operations.ts'
import { recordOperations } from './features/records/operations.ts'
import { relationshipOperations } from './features/relationships/operations.ts'
import { tenancyOperations, tenancyVisitorOperations } from './features/tenancy/operations.ts'
import { tenantSessionOperations, tenantSessionVisitorOperations } from './features/tenant-sessions/operations.ts'
import { webhookOperations } from './features/webhooks/operations.ts'
import { createRegistry } from './kernel/registry.ts'
import type { Context } from './shared/context.ts'
import type { PlatformContext, VisitorContext } from './shared/platform-context.ts'
import type { TenantContext, TenantVisitorContext } from './shared/tenant-context.ts'

/** Every operation of the service. What is not in this list does not exist. */
export const registry = createRegistry<Context>([
  ...discoveryOperations,
  ...objectOperations,
  ...recordOperations,
  ...relationshipOperations,
  ...moduleOperations,
  ...globalSearchOperations,
  ...webhookOperations,
  ...longOperations,
  ...diagnosticsOperations,
])

/** What members of builder accounts can do, under `/v1/platform`. */
export const platformRegistry = createRegistry<PlatformContext>([
  ...accountOperations,
  ...platformContractOperations,
  ...applicationOperations,
  ...modellingOperations,
  ...credentialOperations,
  ...billingOperations,
  ...auditOperations,
  ...tenancyOperations,
])

/** What anybody can do under `/v1/platform`: sign in, accept an invitation to a team, ask for a new password. */
export const visitorRegistry = createRegistry<VisitorContext>([...accountVisitorOperations])

/** What users can do on the host of their organisation with a session, under `/api`. */
export const tenantRegistry = createRegistry<TenantContext>([
  ...tenantSessionOperations,
  ...moduleTenantOperations,
  ...globalSearchTenantOperations,
])

/** What anybody can do on the host of an organisation: sign in, accept an invitation, ask for a new password. */
export const tenantVisitorRegistry = createRegistry<TenantVisitorContext>([
  ...tenantSessionVisitorOperations,
  ...tenancyVisitorOperations,
])
