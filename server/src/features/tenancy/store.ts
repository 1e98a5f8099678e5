import sql from 'sql-template-tag'
import { uuidv7 } from '../../kernel/ids.ts'
import type { Tx } from '../../kernel/transaction.ts'
import type { ActiveState } from './rules.ts'

/** What makes organisations, locations and users, for the API and for the demo. It runs bound to the organisation. */
export interface NewOrganization {
  readonly organizationId: string
  readonly appId: string
  readonly name: string
  readonly slug: string
  readonly status?: ActiveState
  readonly billingEmail?: string | null
  readonly customDomain?: string | null
  readonly customDomainVerifiedAt?: string | null
}

/** The organisation, with a DataRole for each template of its application. Returns role ids by template key. */
export async function insertOrganization(tx: Tx, organization: NewOrganization): Promise<Record<string, string>> {
  await insertBareOrganization(tx, organization)
  return insertDataRoles(tx, organization)
}

/** The organisation alone. A builder's transaction is bound to it only after this (`bindOrganization`). */
export async function insertBareOrganization(tx: Tx, organization: NewOrganization): Promise<void> {
  const {
    organizationId,
    appId,
    name,
    slug,
    status = 'active',
    billingEmail = null,
    customDomain = null,
    customDomainVerifiedAt = null,
  } = organization
  await tx.rows(sql`INSERT INTO portico.organization (organization_id, app_id, name, slug, status, billing_email, custom_domain,
      custom_domain_verified_at)
    VALUES (${organizationId}, ${appId}, ${name}, ${slug}, ${status}, ${billingEmail}, ${customDomain},
      ${customDomainVerifiedAt})`)
}

/** A DataRole for each template of the application. Returns role ids by template key. */
export async function insertDataRoles(
  tx: Tx,
  { organizationId, appId }: Pick<NewOrganization, 'organizationId' | 'appId'>,
): Promise<Record<string, string>> {
  const templates = await tx.rows<{ key: string }>(sql`
    SELECT template_key AS key FROM portico.data_role_template WHERE app_id = ${appId} ORDER BY template_key`)
  const roles = templates.map(({ key }) => ({ key, id: uuidv7(Date.now()) }))
  await tx.rows(sql`INSERT INTO portico.data_role (organization_id, data_role_id, app_id, template_key)
    SELECT ${organizationId}, id, ${appId}, key
    FROM json_to_recordset(${JSON.stringify(roles)}::json) AS r (key text, id uuid)`)
  await bumpOrganization(tx, organizationId)
  return Object.fromEntries(roles.map((role) => [role.key, role.id]))
}

export async function existsOrganization(tx: Tx, organizationId: string): Promise<boolean> {
  return (await tx.rows(sql`SELECT FROM portico.organization WHERE organization_id = ${organizationId}`)).length > 0
}

/**
 * Binds a builder's transaction to an organisation that it has just made. The function of the door asks once more whose
 * it is.
 */
export async function bindOrganization(tx: Tx, accountId: string, organizationId: string): Promise<void> {
  await tx.rows(sql`SELECT portico.bind_builder(${accountId}, portico.current_builder(), NULL, ${organizationId})`)
}

/** Called in the transaction of every change to what somebody of the organisation may do. */
export async function bumpOrganization(tx: Tx, organizationId: string): Promise<void> {
  await tx.rows(sql`SELECT portico.bump_epoch(${organizationId})`)
}

export interface LocationRow {
  readonly locationId: string
  readonly locationKey: string
  readonly name: string
}

export async function insertLocation(
  tx: Tx,
  location: LocationRow & { readonly organizationId: string },
): Promise<void> {
  await tx.rows(sql`INSERT INTO portico.location (organization_id, location_id, location_key, name)
    VALUES (${location.organizationId}, ${location.locationId}, ${location.locationKey}, ${location.name})`)
}

export interface NewUser {
  readonly organizationId: string
  readonly userId: string
  readonly email: string
  readonly displayName: string
  readonly passwordHash: string | null
  readonly userTypeKey: string
  readonly status?: ActiveState
  readonly isOwner?: boolean
  readonly dataRoleIds?: readonly string[]
  readonly locationIds?: 'all' | readonly string[]
}

/** A user with its membership, roles and locations. */
export async function insertUser(tx: Tx, user: NewUser): Promise<void> {
  const { organizationId, userId, dataRoleIds = [], locationIds = [], isOwner = false, status = 'active' } = user
  await tx.rows(sql`INSERT INTO portico.tenant_user (organization_id, user_id, email, display_name, status, password_hash)
    VALUES (${organizationId}, ${userId}, ${user.email}, ${user.displayName}, ${status}, ${user.passwordHash})`)
  await tx.rows(sql`INSERT INTO portico.membership (organization_id, user_id, user_type_key, is_owner, all_locations)
    VALUES (${organizationId}, ${userId}, ${user.userTypeKey}, ${isOwner}, ${locationIds === 'all'})`)
  await insertRoles(tx, { organizationId, userId, dataRoleIds })
  await insertMemberLocations(tx, { organizationId, userId, locationIds })
  await bumpOrganization(tx, organizationId)
}

export async function insertRoles(
  tx: Tx,
  { organizationId, userId, dataRoleIds = [] }: Pick<NewUser, 'organizationId' | 'userId' | 'dataRoleIds'>,
): Promise<void> {
  await tx.rows(sql`INSERT INTO portico.membership_data_role (organization_id, user_id, data_role_id)
    SELECT ${organizationId}, ${userId}, unnest(${dataRoleIds as string[]}::uuid[])`)
}

export async function insertMemberLocations(
  tx: Tx,
  { organizationId, userId, locationIds = [] }: Pick<NewUser, 'organizationId' | 'userId' | 'locationIds'>,
): Promise<void> {
  if (locationIds === 'all') return
  await tx.rows(sql`INSERT INTO portico.membership_location (organization_id, user_id, location_id)
    SELECT ${organizationId}, ${userId}, unnest(${locationIds as string[]}::uuid[])`)
}
