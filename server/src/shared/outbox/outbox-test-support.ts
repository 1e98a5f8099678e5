import type { Database } from '../database/database.ts'
import { emitLifecycle } from './lifecycle.ts'

/** Writes that an organisation was changed, as whoever changes it does. */
export function lifecycleOf(database: Database, saasAppId: string, organizationId: string, name = 'Acme') {
  const data = {
    organizationId,
    name,
    slug: 'acme',
    billingEmail: null,
    status: 'active',
    customDomain: null,
    customDomainVerifiedAt: null,
  } as const
  return database.inOrganization(organizationId, (tx) =>
    emitLifecycle(
      { tx, actor: { kind: 'system', id: 'test' }, now: Date.now() },
      { eventKey: 'organization.updated', saasAppId, data },
    ),
  )
}
