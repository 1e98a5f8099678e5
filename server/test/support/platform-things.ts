import { Secret, TOTP } from 'otpauth'
import sql from 'sql-template-tag'
import { uuidv7 } from '../../src/kernel/ids.ts'
import type { TestBuilder } from './platform.ts'
import { type Account, type Freshness, made, password } from './platform-account.ts'
import { application } from './platform-models.ts'

/** Organisations, people and credentials that the good requests of an account are about. */
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
  readonly domainVerification: { readonly recordName: string; readonly recordValue: string } | null
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

/** An organisation whose domain can be verified: its record is in the DNS. */
export async function verifiableParams(account: Account) {
  const path = `/v1/platform/applications/${await application(account)}/organizations`
  const made = await account.call<Organization>('POST', path, organizationBody(account))
  const { recordName, recordValue } = made.domainVerification!
  account.platform.dns.publish(recordName, recordValue)
  return { organizationId: made.organizationId }
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

/** One more session of whoever asks. */
export async function sessionId(account: Account): Promise<string> {
  return (await account.platform.newSession(account)).split('_')[2]!
}

/** The secret of a link that was mailed. */
function linkSecret(account: Account, address: string): string {
  const { variables } = account.platform.mailbox.newestTo(address)
  return /#token=([\w-]+)/.exec(JSON.stringify(variables))![1]!
}

export async function passwordResetBody(account: Account) {
  const { email } = await account.freshMember()
  await account.call('POST', '/v1/platform/password-resets', { email })
  return { token: linkSecret(account, email), newPassword: password }
}

/** Somebody else in the team, who is no owner. */
export function colleagueId(account: Account, freshness: Freshness = 'once'): Promise<string> {
  return made(account, 'colleague', freshness, async () => (await account.freshMember('developer')).builderId)
}

export async function teamInvitationId(account: Account): Promise<string> {
  const body = { email: account.mail('colleague'), role: 'developer' }
  const invitation = await account.call<{ invitationId: string }>('POST', '/v1/platform/team/invitations', body)
  return invitation.invitationId
}

export async function acceptanceBody(account: Account) {
  const email = account.mail('colleague')
  await account.call('POST', '/v1/platform/team/invitations', { email, role: 'developer' })
  return { token: linkSecret(account, email), displayName: account.name('colleague'), password }
}

interface Enrolled {
  readonly member: TestBuilder
  readonly code: string
}

/** Somebody who has begun with a second factor, and the code that the authenticator shows. */
export async function enrolled(account: Account): Promise<Enrolled> {
  const member = await account.freshMember()
  const sent = { token: member.token, body: { password } }
  const { json } = await account.ask('POST', '/v1/platform/me/totp:enroll', sent)
  return { member, code: new TOTP({ secret: Secret.fromBase32(json['secret'] as string) }).generate() }
}

/** Somebody with a second factor, and a recovery code. */
export async function secured(account: Account): Promise<Enrolled> {
  const { member, code } = await enrolled(account)
  const sent = { token: member.token, body: { code } }
  const { json } = await account.ask('POST', '/v1/platform/me/totp:confirm', sent)
  return { member, code: (json['recoveryCodes'] as string[])[0]! }
}
