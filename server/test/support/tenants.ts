import { randomBytes } from 'node:crypto'
import { insertCredential, type NewCredential } from '../../src/features/credentials/store.ts'
import { nativeObjects } from '../../src/features/modules/native-objects.ts'
import { insertApplication } from '../../src/features/platform/applications/store.ts'
import { insertLocation, insertOrganization, insertUser } from '../../src/features/tenancy/store.ts'
import type { Caller } from '../../src/kernel/caller.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { uuidv7 } from '../../src/kernel/ids.ts'
import { allScopes } from '../../src/kernel/scopes.ts'
import type { Tx } from '../../src/kernel/transaction.ts'
import type { Database } from '../../src/shared/database/database.ts'
import { createAuthenticator } from '../../src/shared/identity/authenticate.ts'
import { createFailedCredentials } from '../../src/shared/identity/failed-credentials.ts'
import { hashSecret, makeToken } from '../../src/shared/identity/tokens.ts'
import { applyModel } from '../../src/shared/modelling/apply.ts'
import type { ModelDocument } from '../../src/shared/modelling/document.ts'
import type { NativeObjects } from '../../src/shared/modelling/native-objects.ts'
import { createAccount } from './accounts.ts'

/** What the secrets of all test credentials are hashed with. */
export const pepper = Buffer.from('the pepper of the tests')

/**
 * One application and the organisations in it, written by the product's own stores. Keys are the names that a test uses
 * afterwards: `tenant.organizations.northwind.users.sales.token`.
 */
export interface TenantPlan {
  readonly appKey?: string
  /** Whose application it is; an account of its own unless said otherwise. */
  readonly accountId?: string
  /** With the native modules? Without them, as most tests need it, an application is made ten times as fast. */
  readonly modules?: NativeObjects | boolean
  /** Keys of DataRole templates; every organisation gets a DataRole of each. */
  readonly dataRoles?: readonly string[]
  /** Objects, and roles that may do something with them. */
  readonly model?: ModelDocument
  readonly organizations: Readonly<Record<string, OrganizationPlan>>
}

export interface OrganizationPlan {
  /** The plan's key unless said otherwise. */
  readonly name?: string
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
  readonly displayName?: string
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
  /** Holds the tables of the model, none without one, and is owned by portico_owner. */
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
  const accountId = plan.accountId ?? (await createAccount(database)).accountId
  const appId = newId()
  const appKey = plan.appKey ?? `app-${randomBytes(4).toString('hex')}`
  const schemaName = `app_${randomBytes(6).toString('hex')}`
  await database.as('portico_owner', (tx) =>
    insertApplication(
      tx,
      { appId, accountId, appKey, name: `Application ${appKey}`, schemaName },
      plan.modules === true ? nativeObjects : plan.modules || null,
    ),
  )
  const bareRoles = (plan.dataRoles ?? []).map((key) => [key, { label: key, objects: {} }])
  const { objects = [], roles = {}, relationships = {} } = plan.model ?? {}
  const allRoles = { ...Object.fromEntries(bareRoles), ...roles }
  await applyModel(database, appId, { objects, roles: allRoles, relationships })
  const organizations: Record<string, TestOrganization> = {}
  for (const [name, organization] of Object.entries(plan.organizations)) {
    organizations[name] = await createOrganization(database, appId, name, organization)
  }
  return { appId, appKey, schemaName, organizations } as unknown as Tenant<P>
}

function createOrganization(
  database: Database,
  appId: string,
  key: string,
  plan: OrganizationPlan,
): Promise<TestOrganization> {
  const organizationId = newId()
  const { name = key, status = 'active' } = plan
  const slug = `${key.toLowerCase().replaceAll(/[^a-z0-9]/g, '')}-${randomBytes(3).toString('hex')}`
  const locations = Object.fromEntries((plan.locations ?? []).map((locationKey) => [locationKey, newId()]))
  return database.inOrganization(organizationId, async (tx) => {
    const dataRoles = await insertOrganization(tx, { organizationId, appId, name, slug, status })
    for (const [locationKey, locationId] of Object.entries(locations)) {
      await insertLocation(tx, { organizationId, locationId, locationKey, name: `Location ${locationKey}` })
    }
    const scope = { appId, organizationId, dataRoles, locations }
    const users: Record<string, TestUser> = {}
    for (const [userKey, user] of Object.entries(plan.users ?? {})) {
      users[userKey] = await createUser(tx, scope, userKey, user)
    }
    const credentials: Record<string, TestCredential> = {}
    for (const [credentialKey, credential] of Object.entries(plan.credentials ?? {})) {
      credentials[credentialKey] = await issueCredential(tx, scope, { displayName: credentialKey, ...credential })
    }
    return { organizationId, slug, dataRoles, locations, users, credentials }
  })
}

/** Where a credential belongs, and the names that its envelope may use. */
type Scope = Pick<TestOrganization, 'organizationId' | 'dataRoles' | 'locations'> & { readonly appId: string }

async function createUser(tx: Tx, scope: Scope, key: string, plan: UserPlan): Promise<TestUser> {
  const { organizationId } = scope
  const { displayName = `User ${key}`, status = 'active', owner = false, userTypeKey = 'member' } = plan
  const userId = newId()
  const email = `${key.toLowerCase()}@${organizationId.slice(-12)}.example`
  await insertUser(tx, {
    organizationId,
    userId,
    email,
    displayName,
    passwordHash: null,
    userTypeKey,
    status,
    isOwner: owner,
    dataRoleIds: idsOf(scope.dataRoles, plan.roles ?? []),
    locationIds: locationIdsOf(scope, plan.locations),
  })
  const inAnHour = new Date(Date.now() + 3_600_000)
  const { scopes, revoked, expiresAt = inAnHour } = plan
  const state = { ...(scopes && { scopes }), ...(revoked && { revoked }), expiresAt }
  return { userId, email, ...(await issueCredential(tx, scope, { kind: 'dat', displayName, userId, ...state })) }
}

/** One more credential, for tests that need a kind or a state that no plan names. */
export async function issueCredential(
  tx: Tx,
  scope: Scope,
  plan: Omit<CredentialPlan, 'kind'> & {
    readonly kind?: NewCredential['kind']
    readonly displayName: string
    readonly userId?: string
  },
): Promise<TestCredential> {
  const { kind = 'live', displayName, userId = null, envelope } = plan
  const token = makeToken(kind)
  await insertCredential(tx, {
    organizationId: scope.organizationId,
    appId: scope.appId,
    kind,
    keyId: token.keyId,
    secretHash: hashSecret(pepper, token.secret),
    displayName,
    scopes: plan.scopes ?? allScopes,
    userId,
    expiresAt: plan.expiresAt?.toISOString() ?? null,
    revokedAt: plan.revoked ? new Date().toISOString() : null,
    ...(envelope && {
      envelope: {
        dataRoleIds: idsOf(scope.dataRoles, envelope.roles ?? []),
        locationIds: locationIdsOf(scope, envelope.locations),
      },
    }),
  })
  return { keyId: token.keyId, token: token.text }
}

function locationIdsOf({ locations }: Scope, keys: 'all' | readonly string[] = []): 'all' | string[] {
  return keys === 'all' ? 'all' : idsOf(locations, keys)
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
  const failed = createFailedCredentials({ scale: 0 })
  const authenticator = createAuthenticator({ database, clock: systemClock, pepper, failed })
  return (await authenticator.authenticate(token, '')).caller
}
