import { randomBytes } from 'node:crypto'
import sql from 'sql-template-tag'
import { insertApplication } from '../../src/features/platform/applications/store.ts'
import { uuidv7 } from '../../src/kernel/ids.ts'
import { applyModel } from '../../src/shared/modelling/apply.ts'
import type { Account } from './platform-account.ts'

/** What the good requests of an account are about: made once where it only has to be there, `new` where it is used up. */
type Freshness = 'once' | 'new'

function made<T>(account: Account, name: string, freshness: Freshness, make: () => Promise<T>): Promise<T> {
  return freshness === 'new' ? make() : account.once(name, make)
}

/** The application that everything else is in, with a model of one object, a DataRole template and a location template. */
export function application(account: Account): Promise<string> {
  return account.once('application', async () => {
    const { database } = account.platform.db
    const appId = uuidv7(Date.now())
    const schemaName = `app_${randomBytes(6).toString('hex')}`
    const { accountId } = account
    await database.as('portico_owner', (tx) =>
      insertApplication(tx, { appId, accountId, appKey: account.key('app'), name: account.name('app'), schemaName }),
    )
    await applyModel(database, appId, { objects: [], roles: { sales: { label: account.name('role'), objects: {} } } })
    return appId
  })
}

export function organizationBody(account: Account) {
  return {
    name: account.name('organization'),
    slug: account.key('org'),
    billingEmail: account.mail('billing'),
    customDomain: `${account.key('domain')}.example`,
    locations: [{ locationKey: account.key('place'), name: account.name('location') }],
    owner: { email: account.mail('owner'), displayName: account.name('owner') },
  }
}

interface Organization {
  readonly organizationId: string
  readonly slug: string
  readonly dataRoles: readonly { readonly dataRoleId: string }[]
  readonly locations: readonly { readonly locationId: string }[]
}

export function organization(account: Account): Promise<Organization> {
  return account.once('organization', async () => {
    const saasAppId = await application(account)
    const path = `/v1/platform/applications/${saasAppId}/organizations`
    return account.call<Organization>('POST', path, organizationBody(account))
  })
}

export async function organizationParams(account: Account) {
  const { organizationId } = await organization(account)
  return { organizationId }
}

/** Rights that name a DataRole and a location of the organisation. */
export async function membership(account: Account) {
  const { dataRoles, locations } = await organization(account)
  return {
    userTypeKey: 'staff',
    isOwner: false,
    dataRoleIds: dataRoles.map(({ dataRoleId }) => dataRoleId),
    locations: locations.map(({ locationId }) => locationId),
  }
}

export async function userParams(account: Account, freshness: Freshness = 'once') {
  const params = await organizationParams(account)
  const body = { email: account.mail('user'), displayName: account.name('user'), ...(await membership(account)) }
  return made(account, 'user', freshness, async () => {
    const path = `/v1/platform/organizations/${params.organizationId}/users`
    const { userId } = await account.call<{ userId: string }>('POST', path, body)
    return { ...params, userId }
  })
}

export async function invitationParams(account: Account, freshness: Freshness = 'once') {
  const params = await organizationParams(account)
  const body = { email: account.mail('guest'), displayName: account.name('guest'), ...(await membership(account)) }
  return made(account, 'invitation', freshness, async () => {
    const path = `/v1/platform/organizations/${params.organizationId}/invitations`
    const { invitationId } = await account.call<{ invitationId: string }>('POST', path, body)
    return { ...params, invitationId }
  })
}

export async function credentialBody(account: Account) {
  const { dataRoleIds, locations } = await membership(account)
  return {
    kind: 'live',
    displayName: account.name('credential'),
    scopes: ['records.read'],
    envelope: { dataRoleIds, locations },
    expiresAt: '2099-01-01T00:00:00.000Z',
  }
}

export async function credentialParams(account: Account, freshness: Freshness = 'once') {
  const params = await organizationParams(account)
  const body = await credentialBody(account)
  return made(account, 'credential', freshness, async () => {
    const path = `/v1/platform/organizations/${params.organizationId}/credentials`
    const { keyId } = await account.call<{ keyId: string }>('POST', path, body)
    return { ...params, keyId }
  })
}

/** Operators grant them from the terminal. */
export function entitlement(account: Account): Promise<void> {
  return account.once('entitlement', async () => {
    await account.platform.db.database.as('portico_owner', (tx) =>
      tx.rows(sql`INSERT INTO portico.entitlement (account_id, entitlement_id, listing_key, listing_name, granted_at)
        VALUES (${account.accountId}, ${uuidv7(Date.now())}, ${account.key('listing')}, ${account.name('listing')}, now())`),
    )
  })
}
