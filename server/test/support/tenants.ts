import { randomBytes } from 'node:crypto'
import sql from 'sql-template-tag'
import type { Caller } from '../../src/kernel/caller.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { uuidv7 } from '../../src/kernel/ids.ts'
import { allScopes } from '../../src/kernel/scopes.ts'
import type { Tx } from '../../src/kernel/transaction.ts'
import type { Database } from '../../src/shared/database/database.ts'
import { createAuthenticator } from '../../src/shared/identity/authenticate.ts'
import { hashSecret, makeToken } from '../../src/shared/identity/tokens.ts'

/** What the secrets of all test credentials are hashed with. */
export const pepper = Buffer.from('the pepper of the tests')

/**
 * One application and the organisations in it, written as rows, without any feature. Keys are the names that a test uses
 * afterwards: `tenant.organizations.northwind.users.sales.token`.
 */
export interface TenantPlan {
  readonly appKey?: string
  /** Keys of DataRole templates; every organisation gets a DataRole of each. */
  readonly dataRoles?: readonly string[]
  readonly organizations: Readonly<Record<string, OrganizationPlan>>
}

export interface OrganizationPlan {
  readonly status?: 'active' | 'inactive'
  readonly locations?: readonly string[]
  readonly users?: Readonly<Record<string, UserPlan>>
  /** Credentials without a user; kind `live` unless said otherwise. */
  readonly credentials?: Readonly<Record<string, CredentialPlan>>
}

export interface CredentialState {
  /** All scopes unless said otherwise. */
  readonly scopes?: readonly string[]
  readonly expiresAt?: Date | null
  readonly revoked?: boolean
}

/** A member, with a delegated credential of its own. */
export interface UserPlan extends CredentialState {
  readonly roles?: readonly string[]
  readonly locations?: 'all' | readonly string[]
  readonly owner?: boolean
  readonly status?: 'active' | 'inactive'
  readonly userTypeKey?: string
}

export interface CredentialPlan extends CredentialState {
  readonly kind?: 'live' | 'draft'
  /** Without one a live credential sees the whole organisation. */
  readonly envelope?: { readonly roles?: readonly string[]; readonly locations?: 'all' | readonly string[] }
}

export interface TestCredential {
  readonly keyId: string
  readonly token: string
}

export interface TestUser extends TestCredential {
  readonly userId: string
  readonly email: string
}

export interface Tenant<P extends TenantPlan = TenantPlan> {
  readonly appId: string
  readonly appKey: string
  /** Exists, empty, and is owned by portico_owner. */
  readonly schemaName: string
  readonly organizations: { readonly [K in keyof P['organizations']]: TestOrganization<P['organizations'][K]> }
}

export interface TestOrganization<O extends OrganizationPlan = OrganizationPlan> {
  readonly organizationId: string
  readonly slug: string
  /** Ids by template key. */
  readonly dataRoles: Readonly<Record<string, string>>
  /** Ids by location key. */
  readonly locations: Readonly<Record<string, string>>
  readonly users: { readonly [K in keyof NonNullable<O['users']>]: TestUser }
  readonly credentials: { readonly [K in keyof NonNullable<O['credentials']>]: TestCredential }
}

const newId = () => uuidv7(Date.now())

export async function createTenant<const P extends TenantPlan>(database: Database, plan: P): Promise<Tenant<P>> {
  return database.as('portico_owner', async (tx) => {
    const appId = newId()
    const appKey = plan.appKey ?? `app-${randomBytes(4).toString('hex')}`
    const schemaName = `app_${randomBytes(6).toString('hex')}`
    const roleKeys = plan.dataRoles ?? []
    await tx.rows(sql`INSERT INTO portico.application (app_id, app_key, name, schema_name)
      VALUES (${appId}, ${appKey}, ${`Application ${appKey}`}, ${schemaName})`)
    await tx.rows(sql`SELECT portico.bump_epoch(${appId})`)
    await tx.rows({ text: `CREATE SCHEMA ${schemaName}`, values: [] })
    await tx.rows({ text: `GRANT USAGE ON SCHEMA ${schemaName} TO portico_app`, values: [] })
    await tx.rows(sql`INSERT INTO portico.data_role_template (app_id, template_key, label)
      SELECT ${appId}, key, initcap(key) FROM unnest(${roleKeys}::text[]) AS key`)
    const organizations: Record<string, TestOrganization> = {}
    for (const [name, organization] of Object.entries(plan.organizations)) {
      organizations[name] = await createOrganization(tx, appId, name, roleKeys, organization)
    }
    return { appId, appKey, schemaName, organizations } as unknown as Tenant<P>
  })
}

async function createOrganization(
  tx: Tx,
  appId: string,
  name: string,
  roleKeys: readonly string[],
  plan: OrganizationPlan,
): Promise<TestOrganization> {
  const organizationId = newId()
  const slug = `${name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}-${randomBytes(3).toString('hex')}`
  const dataRoles = Object.fromEntries(roleKeys.map((key) => [key, newId()]))
  const locations = Object.fromEntries((plan.locations ?? []).map((key) => [key, newId()]))
  await tx.rows(sql`INSERT INTO portico.organization (organization_id, app_id, name, slug, status)
    VALUES (${organizationId}, ${appId}, ${name}, ${slug}, ${plan.status ?? 'active'})`)
  await tx.rows(sql`SELECT portico.bump_epoch(${organizationId})`)
  await tx.rows(sql`INSERT INTO portico.data_role (organization_id, data_role_id, app_id, template_key)
    SELECT ${organizationId}, id, ${appId}, key
    FROM unnest(${Object.values(dataRoles)}::uuid[], ${Object.keys(dataRoles)}::text[]) AS r (id, key)`)
  await tx.rows(sql`INSERT INTO portico.location (organization_id, location_id, location_key, name)
    SELECT ${organizationId}, id, key, initcap(key)
    FROM unnest(${Object.values(locations)}::uuid[], ${Object.keys(locations)}::text[]) AS l (id, key)`)

  const scope = { appId, organizationId, dataRoles, locations }
  const users: Record<string, TestUser> = {}
  for (const [key, user] of Object.entries(plan.users ?? {})) users[key] = await createUser(tx, scope, key, user)
  const credentials: Record<string, TestCredential> = {}
  for (const [key, credential] of Object.entries(plan.credentials ?? {})) {
    credentials[key] = await createCredential(tx, scope, key, credential)
  }
  return { organizationId, slug, dataRoles, locations, users, credentials }
}

interface Scope {
  readonly appId: string
  readonly organizationId: string
  readonly dataRoles: Readonly<Record<string, string>>
  readonly locations: Readonly<Record<string, string>>
}

async function createUser(tx: Tx, scope: Scope, key: string, plan: UserPlan): Promise<TestUser> {
  const { organizationId } = scope
  const userId = newId()
  const email = `${key.toLowerCase()}@${organizationId.slice(-12)}.example`
  const roleIds = idsOf(scope.dataRoles, plan.roles ?? [])
  const locationIds = plan.locations === 'all' ? [] : idsOf(scope.locations, plan.locations ?? [])
  await tx.rows(sql`INSERT INTO portico.tenant_user (organization_id, user_id, email, display_name, status)
    VALUES (${organizationId}, ${userId}, ${email}, ${`User ${key}`}, ${plan.status ?? 'active'})`)
  await tx.rows(sql`INSERT INTO portico.membership (organization_id, user_id, user_type_key, is_owner, all_locations)
    VALUES (${organizationId}, ${userId}, ${plan.userTypeKey ?? 'member'}, ${plan.owner ?? false}, ${plan.locations === 'all'})`)
  await tx.rows(sql`INSERT INTO portico.membership_data_role (organization_id, user_id, data_role_id)
    SELECT ${organizationId}, ${userId}, id FROM unnest(${roleIds}::uuid[]) AS id`)
  await tx.rows(sql`INSERT INTO portico.membership_location (organization_id, user_id, location_id)
    SELECT ${organizationId}, ${userId}, id FROM unnest(${locationIds}::uuid[]) AS id`)
  const inAnHour = new Date(Date.now() + 3_600_000)
  const state = { ...plan, expiresAt: plan.expiresAt === undefined ? inAnHour : plan.expiresAt }
  const credential = await insertCredential(tx, scope, { kind: 'dat', userId, name: `User ${key}`, state })
  return { userId, email, ...credential }
}

function createCredential(tx: Tx, scope: Scope, key: string, plan: CredentialPlan): Promise<TestCredential> {
  return insertCredential(tx, scope, { kind: plan.kind ?? 'live', name: key, state: plan, envelope: plan.envelope })
}

interface NewCredential {
  readonly kind: 'live' | 'draft' | 'dat'
  readonly name: string
  readonly userId?: string
  readonly state: CredentialState
  readonly envelope?: CredentialPlan['envelope']
}

async function insertCredential(tx: Tx, scope: Scope, credential: NewCredential): Promise<TestCredential> {
  const { kind, name, userId, state, envelope } = credential
  const token = makeToken(kind)
  const locations = envelope?.locations ?? []
  await tx.rows(sql`INSERT INTO portico.credential (key_id, organization_id, app_id, kind, user_id, display_name,
      secret_hash, scopes, has_envelope, envelope_data_role_ids, envelope_all_locations, envelope_location_ids,
      expires_at, revoked_at)
    VALUES (${token.keyId}, ${scope.organizationId}, ${scope.appId}, ${kind}, ${userId ?? null}, ${name},
      ${hashSecret(pepper, token.secret)}, ${state.scopes ?? allScopes}::text[], ${envelope !== undefined},
      ${idsOf(scope.dataRoles, envelope?.roles ?? [])}::uuid[], ${locations === 'all'},
      ${locations === 'all' ? [] : idsOf(scope.locations, locations)}::uuid[],
      ${state.expiresAt ?? null}, ${state.revoked ? new Date() : null})`)
  return { keyId: token.keyId, token: token.text }
}

function idsOf(ids: Readonly<Record<string, string>>, keys: readonly string[]): string[] {
  return keys.map((key) => {
    const id = ids[key]
    if (id === undefined) throw new Error(`The plan has no ${key}.`)
    return id
  })
}

/** The caller that a token stands for, read as the service reads it. */
export async function callerOf(database: Database, { token }: TestCredential): Promise<Caller> {
  const authenticator = createAuthenticator({ database, clock: systemClock, pepper })
  return (await authenticator.authenticate(token)).caller
}
