import type { Operation } from '../../kernel/operation.ts'
import type { PlatformContext } from '../../shared/platform-context.ts'
import type { TenantVisitorContext } from '../../shared/tenant-context.ts'
import { acceptanceOperations } from './acceptance.ts'
import { domainOperations } from './domains.ts'
import { invitationOperations } from './invitations.ts'
import { locationOperations } from './locations.ts'
import { organizationOperations } from './organizations.ts'
import { userOperations } from './users.ts'

/** What builders do with the customer organizations of their applications, their users and invitations. */
export const tenancyOperations: readonly Operation<PlatformContext>[] = [
  ...organizationOperations,
  ...domainOperations,
  ...locationOperations,
  ...userOperations,
  ...invitationOperations,
]

/** What those do on the host of an organization who were invited to it. */
export const tenancyVisitorOperations: readonly Operation<TenantVisitorContext>[] = acceptanceOperations
