import sql, { empty } from 'sql-template-tag'
import { fail } from '../../kernel/errors.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { escapeLike } from '../../shared/search-text.ts'
import type { ActiveState, OrganizationFacts } from './rules.ts'
import { bumpOrganization, type LocationRow } from './store.ts'

/** SQL statements about organisations, their roles and locations that are there already. */

/**
 * Held until the organisation that is being made has committed. A release that adds a template refers to the application
 * (its foreign key), so it waits, and then finds the organisation; or this waits, and then finds the template.
 */
export async function lockApplication(
  tx: Tx,
  accountId: string,
  appId: string,
): Promise<{ readonly archived: boolean } | undefined> {
  const [row] = await tx.rows<{ archived: boolean }>(sql`SELECT archived_at IS NOT NULL AS archived
    FROM portico.application WHERE account_id = ${accountId} AND app_id = ${appId} FOR UPDATE`)
  return row
}

export interface OrganizationRow {
  readonly organizationId: string
  readonly appId: string
  readonly name: string
  readonly slug: string
  readonly billingEmail: string | null
  readonly status: ActiveState
  /** What it asks for. */
  readonly customDomain: string | null
  readonly customDomainVerifiedAt: string | null
  /** What it is served under. */
  readonly verifiedDomain: string | null
  readonly revision: number
  readonly createdAt: string
}

const organizationColumns = sql`o.organization_id AS "organizationId", o.app_id AS "appId", o.name, o.slug,
  o.billing_email AS "billingEmail", o.status, o.custom_domain AS "customDomain",
  o.custom_domain_verified_at AS "customDomainVerifiedAt",
  CASE WHEN o.custom_domain_verified_at IS NOT NULL THEN o.custom_domain END AS "verifiedDomain",
  o.revision, o.created_at AS "createdAt"`

/** One page of the organisations of an application, by name. `after` is where the page before ended. */
export async function findOrganizations(
  tx: Tx,
  wanted: {
    readonly accountId: string
    readonly appId: string
    readonly status?: ActiveState | undefined
    readonly search?: string | undefined
  },
  after: readonly string[] | null,
  limit: number,
): Promise<(OrganizationRow & { readonly sortName: string })[]> {
  const { accountId, appId, status, search } = wanted
  const pattern = search === undefined ? null : `%${escapeLike(search)}%`
  return tx.rows(sql`SELECT ${organizationColumns}, lower(o.name) AS "sortName"
    FROM portico.organization o JOIN portico.application a ON a.app_id = o.app_id
    WHERE o.app_id = ${appId} AND a.account_id = ${accountId}
      ${status === undefined ? empty : sql`AND o.status = ${status}`}
      ${pattern === null ? empty : sql`AND (o.name ILIKE ${pattern} OR o.slug ILIKE ${pattern})`}
      ${after === null ? empty : sql`AND (lower(o.name), o.organization_id) > (${after[0]}::text, ${after[1]}::uuid)`}
    ORDER BY lower(o.name), o.organization_id LIMIT ${limit}`)
}

export async function findOrganization(tx: Tx, organizationId: string): Promise<OrganizationRow | undefined> {
  const [row] = await tx.rows<OrganizationRow>(sql`SELECT ${organizationColumns} FROM portico.organization o
    WHERE o.organization_id = ${organizationId}`)
  return row
}

/**
 * The organisation, held until the transaction ends. Every change of it, its users and its invitations takes this lock
 * first, so that two changes which each leave an owner cannot together leave none. Foreign keys to it do not wait.
 * Throws `organization_not_found`.
 */
export async function lockOrganization(tx: Tx, organizationId: string): Promise<OrganizationRow> {
  const [row] = await tx.rows<OrganizationRow>(sql`SELECT ${organizationColumns} FROM portico.organization o
    WHERE o.organization_id = ${organizationId} FOR NO KEY UPDATE`)
  if (!row) throw fail('organization_not_found')
  return row
}

export async function updateOrganization(tx: Tx, organizationId: string, facts: OrganizationFacts): Promise<void> {
  await tx.rows(sql`UPDATE portico.organization SET name = ${facts.name}, billing_email = ${facts.billingEmail},
      status = ${facts.status}, custom_domain = ${facts.customDomain},
      custom_domain_verified_at = ${facts.customDomainVerifiedAt}, revision = revision + 1
    WHERE organization_id = ${organizationId}`)
  await bumpOrganization(tx, organizationId)
}

export interface DataRoleRow {
  readonly dataRoleId: string
  readonly key: string
  readonly label: string
}

export async function findDataRoles(tx: Tx, organizationId: string): Promise<DataRoleRow[]> {
  return tx.rows(sql`SELECT r.data_role_id AS "dataRoleId", r.template_key AS key, t.label
    FROM portico.data_role r JOIN portico.data_role_template t USING (app_id, template_key)
    WHERE r.organization_id = ${organizationId} ORDER BY r.template_key`)
}

export interface PeopleCounts {
  readonly activeUsers: number
  readonly inactiveUsers: number
  readonly openInvitations: number
}

export async function countPeople(tx: Tx, organizationId: string, now: number): Promise<PeopleCounts> {
  const [row] = await tx.rows<PeopleCounts>(sql`SELECT
    (SELECT count(*) FROM portico.tenant_user
      WHERE organization_id = ${organizationId} AND status = 'active') AS "activeUsers",
    (SELECT count(*) FROM portico.tenant_user
      WHERE organization_id = ${organizationId} AND status = 'inactive') AS "inactiveUsers",
    (SELECT count(*) FROM portico.invitation WHERE organization_id = ${organizationId}
      AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > ${new Date(now).toISOString()}) AS "openInvitations"`)
  return row!
}

export async function findLocations(tx: Tx, organizationId: string): Promise<LocationRow[]> {
  return tx.rows(sql`SELECT location_id AS "locationId", location_key AS "locationKey", name
    FROM portico.location WHERE organization_id = ${organizationId} ORDER BY location_key`)
}

export async function renameLocation(tx: Tx, organizationId: string, { locationId, name }: LocationRow): Promise<void> {
  await tx.rows(sql`UPDATE portico.location SET name = ${name}
    WHERE organization_id = ${organizationId} AND location_id = ${locationId}`)
}

export async function findLocationTemplates(tx: Tx, appId: string): Promise<{ key: string; label: string }[]> {
  return tx.rows(sql`SELECT template_key AS key, label FROM portico.location_template
    WHERE app_id = ${appId} ORDER BY template_key`)
}
