import sql, { empty } from 'sql-template-tag'
import type { Tx } from '../../kernel/transaction.ts'
import type { MeasuredApplication, ResourceKey } from '../../shared/usage/resources.ts'
import type { Period } from './rules.ts'

/** Every SQL statement about plans, usage and entitlements of an account. They run bound to it. */
export async function findPlanKey(tx: Tx, accountId: string): Promise<string> {
  const [row] = await tx.rows<{ planKey: string }>(
    sql`SELECT plan_key AS "planKey" FROM portico.account WHERE account_id = ${accountId}`,
  )
  return row!.planKey
}

export async function findApplications(
  tx: Tx,
  accountId: string,
  saasAppId: string | undefined,
): Promise<MeasuredApplication[]> {
  return tx.rows(sql`SELECT app_id AS "saasAppId", schema_name AS "schemaName" FROM portico.application
    WHERE account_id = ${accountId} ${only(saasAppId)} ORDER BY app_id`)
}

export interface UsageRow {
  readonly saasAppId: string
  readonly day: string
  readonly resourceKey: ResourceKey
  readonly quantity: number
  readonly measuredAt: string
}

/** Newest day first. */
export async function findUsage(
  tx: Tx,
  accountId: string,
  { from, to }: Period,
  saasAppId: string | undefined,
): Promise<UsageRow[]> {
  return tx.rows(sql`SELECT app_id AS "saasAppId", day, resource AS "resourceKey", quantity, measured_at AS "measuredAt"
    FROM portico.usage_daily
    WHERE account_id = ${accountId} AND day BETWEEN ${from}::date AND ${to}::date ${only(saasAppId)}
    ORDER BY day DESC, app_id, resource`)
}

function only(saasAppId: string | undefined) {
  return saasAppId === undefined ? empty : sql`AND app_id = ${saasAppId}`
}

export interface EntitlementRow {
  readonly entitlementId: string
  readonly listingKey: string
  readonly listingName: string
  readonly grantedAt: string
  readonly expiresAt: string | null
}

const entitlement = sql`entitlement_id AS "entitlementId", listing_key AS "listingKey", listing_name AS "listingName",
  granted_at AS "grantedAt", expires_at AS "expiresAt"`

export async function findEntitlements(tx: Tx, accountId: string): Promise<EntitlementRow[]> {
  return tx.rows(sql`SELECT ${entitlement} FROM portico.entitlement WHERE account_id = ${accountId}
    ORDER BY listing_key`)
}

export interface AccountWithEntitlements {
  readonly accountId: string
  readonly name: string
  readonly entitlements: EntitlementRow[]
}

/** Every account, by name. As portico_owner, for the terminal. */
export async function findAccountsWithEntitlements(tx: Tx): Promise<AccountWithEntitlements[]> {
  const accounts = await tx.rows<Omit<AccountWithEntitlements, 'entitlements'>>(
    sql`SELECT account_id AS "accountId", name FROM portico.account ORDER BY name, account_id`,
  )
  const granted = await tx.rows<EntitlementRow & { accountId: string }>(
    sql`SELECT account_id AS "accountId", ${entitlement} FROM portico.entitlement ORDER BY listing_key`,
  )
  const byAccount = Map.groupBy(granted, ({ accountId }) => accountId)
  return accounts.map((account) => ({
    ...account,
    entitlements: (byAccount.get(account.accountId) ?? []).map(({ accountId: _, ...row }) => row),
  }))
}

/** As portico_owner: nobody grants itself anything. A listing that is granted again gets the new name and expiry. */
export async function grantEntitlement(
  tx: Tx,
  grant: {
    readonly accountId: string
    readonly entitlementId: string
    readonly listingKey: string
    readonly listingName: string
    readonly grantedAt: string
    readonly expiresAt: string | null
  },
): Promise<EntitlementRow> {
  const { accountId, entitlementId, listingKey, listingName, grantedAt, expiresAt } = grant
  const [row] = await tx.rows<EntitlementRow>(sql`INSERT INTO portico.entitlement
      (account_id, entitlement_id, listing_key, listing_name, granted_at, expires_at)
    VALUES (${accountId}, ${entitlementId}, ${listingKey}, ${listingName}, ${grantedAt}, ${expiresAt})
    ON CONFLICT (account_id, listing_key) DO UPDATE SET listing_name = EXCLUDED.listing_name,
      granted_at = EXCLUDED.granted_at, expires_at = EXCLUDED.expires_at
    RETURNING ${entitlement}`)
  return row!
}
