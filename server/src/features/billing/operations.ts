import { fail } from '../../kernel/errors.ts'
import type { Operation } from '../../kernel/operation.ts'
import { Strict } from '../../kernel/schemas.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { type PlatformContext, platformOperation } from '../../shared/platform-context.ts'
import { measureApplication } from '../../shared/usage/measure.ts'
import { type MeasuredApplication, measuredKeys, resourceKeys, resourceOf } from '../../shared/usage/resources.ts'
import { dayOf } from '../../shared/usage/snapshots.ts'
import { periodOf } from './rules.ts'
import * as schema from './schema.ts'
import * as store from './store.ts'

const reading = {
  method: 'GET',
  credentials: ['bld'],
  scope: 'billing.read',
  rateClass: 'read',
  transaction: 'read',
  mcp: false,
} as const

const getCatalog = platformOperation({
  ...reading,
  id: 'developerPlatformBillingGetCatalog',
  path: '/v1/platform/billing/catalog',
  area: 'Billing',
  summary: 'Read the plans on offer and what applications are metered by.',
  description: `The plans are configuration of the service (\`PORTICO_BILLING_CATALOG_FILE\`). They are shown, and enforced
nowhere: the service does not stop an application that uses more than its plan includes.`,
  params: Strict({}),
  responses: { 200: schema.Catalog },
  errors: [],

  async handler({ tx, caller, billing }) {
    return {
      status: 200,
      body: {
        currentPlanKey: await store.findPlanKey(tx, caller.accountId),
        plans: billing.catalog.plans,
        resources: resourceKeys.map((resourceKey) => {
          const { label, unit, description, measure } = resourceOf(resourceKey)
          return { resourceKey, label, unit, description, measured: measure !== null }
        }),
      },
    }
  },
})

/** What a request for figures may spend on measuring, and how much of it on one figure. */
const liveWithinMs = 5_000
const figureWithinMs = 2_000

const getResources = platformOperation({
  ...reading,
  id: 'developerPlatformBillingGetResources',
  path: '/v1/platform/billing/resources',
  area: 'Billing',
  summary: 'Read what the applications of the account use, day by day.',
  description: `For each application, day (UTC) and resource the figure of the last measure of that day, at most an hour
before its end. Figures of today are measured now, exactly, as far as that can be done in ${liveWithinMs / 1000} seconds; where it
cannot, the last measure of today stands, and \`measuredAt\` says of when it is. A figure that was never made is absent.
Resources with \`measured: false\` have no source in this release.`,
  rateClass: 'search',
  params: Strict({}),
  query: schema.UsageQuery,
  responses: { 200: schema.Usage },
  errors: ['application_not_found'],

  async handler({ tx, caller: { accountId }, now }, { query }) {
    const period = periodOf(query, now)
    const today = dayOf(now)
    const [applications, kept] = await Promise.all([
      store.findApplications(tx, accountId, query.saasAppId),
      store.findUsage(tx, accountId, period, query.saasAppId),
    ])
    if (query.saasAppId !== undefined && applications.length === 0) {
      throw fail('application_not_found')
    }
    const includesToday = period.from <= today && today <= period.to
    const live = includesToday ? await measureNow(tx, applications, now) : []
    const keyOf = ({ day, saasAppId, resourceKey }: store.UsageRow) => `${day} ${saasAppId} ${resourceKey}`
    const measuredAgain = new Set(live.map(keyOf))
    return {
      status: 200,
      body: {
        ...period,
        resources: resourceKeys.map((resourceKey) => ({ resourceKey, measured: measuredKeys.includes(resourceKey) })),
        items: [...live, ...kept.filter((row) => !measuredAgain.has(keyOf(row)))],
      },
    }
  },
})

/** Figures of this moment, as far as they can be made in time. */
async function measureNow(
  tx: Tx,
  applications: readonly MeasuredApplication[],
  now: number,
): Promise<store.UsageRow[]> {
  const until = performance.now() + liveWithinMs
  const withinMs = () => Math.min(figureWithinMs, until - performance.now())
  const rows: store.UsageRow[] = []
  for (const application of applications) {
    const { saasAppId } = application
    for (const { resourceKey, quantity } of await measureApplication(tx, application, dayOf(now), withinMs)) {
      rows.push({ saasAppId, day: dayOf(now), resourceKey, quantity, measuredAt: new Date(now).toISOString() })
    }
  }
  return rows
}

const listEntitlements = platformOperation({
  ...reading,
  id: 'developerPlatformMarketplaceListEntitlements',
  path: '/v1/platform/marketplace/entitlements',
  area: 'Marketplace',
  summary: 'List the marketplace listings that the account is entitled to.',
  description: 'Granted by the operator of the service. An entitlement that has ended stays in the list as `expired`.',
  params: Strict({}),
  responses: { 200: schema.Entitlements },
  errors: [],

  async handler({ tx, caller, now }) {
    const rows = await store.findEntitlements(tx, caller.accountId)
    const items = rows.map((row) => {
      const expired = row.expiresAt !== null && Date.parse(row.expiresAt) <= now
      return { ...row, state: expired ? 'expired' : 'active' }
    })
    return { status: 200, body: { items, nextCursor: null } }
  },
})

export const billingOperations: readonly Operation<PlatformContext>[] = [getCatalog, getResources, listEntitlements]
