import sql from 'sql-template-tag'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { password, refusal, startTenancy, type Tenancy, type TestOrganization, unknownId } from './testing.ts'

let now = Date.now()
let tenancy: Tenancy
let organization: TestOrganization
let invitations: string
beforeAll(async () => {
  tenancy = await startTenancy({ now: () => now })
  organization = await tenancy.newOrganization()
  invitations = `/organizations/${organization.organizationId}/invitations`
})
afterAll(() => tenancy.platform.stop())

const day = 24 * 60 * 60 * 1000
let count = 0
const newAddress = () => `guest-${++count}@northwind.example`

async function invite(body: object = {}) {
  const invitation = await tenancy.done('POST', invitations, { email: newAddress(), displayName: 'Guest', ...body })
  return { invitation, token: tenancy.tokenFor(invitation.email) }
}

const accept = (token: string, body: object = {}) => tenancy.accept(organization.slug, { token, password, ...body })
const expectNotFound = async (token: string) => {
  expect(refusal(await accept(token))).toEqual([404, 'invitation_not_found'])
}

describe('inviting', () => {
  test('sends a link to the host of the organization, and shows the token nowhere else', async () => {
    const { invitation, token } = await invite({ userTypeKey: 'staff', dataRoleKeys: ['audit'], locations: 'all' })
    expect(invitation).toMatchObject({
      displayName: 'Guest',
      userTypeKey: 'staff',
      isOwner: false,
      dataRoles: [expect.objectContaining({ key: 'audit' })],
      locations: 'all',
      status: 'pending',
      expiresAt: new Date(now + 7 * day).toISOString(),
      acceptedAt: null,
      acceptedUserId: null,
      revokedAt: null,
    })
    const mail = tenancy.platform.mailbox.newestTo(invitation.email)
    expect(mail.to.name).toBe('Guest')
    expect(mail.text).toContain(`http://${organization.slug}.localhost:8080/accept-invitation#token=${token}`)
    expect(Buffer.from(token, 'base64url')).toHaveLength(32)
    const kept = await tenancy.platform.db.database.inOrganization(organization.organizationId, (tx) =>
      tx.rows<{ row: string }>(sql`SELECT i::text AS row FROM portico.invitation i
        WHERE organization_id = ${organization.organizationId}
        UNION ALL SELECT e::text FROM portico.outbox e WHERE organization_id = ${organization.organizationId}`),
    )
    const traces = JSON.stringify([kept, invitation, await tenancy.audit(invitation.invitationId)])
    expect(kept.length).toBeGreaterThan(0)
    for (const secret of [token, Buffer.from(token).toString('hex')]) {
      expect(traces).not.toContain(secret)
      expect(tenancy.platform.logLines.join('')).not.toContain(secret)
    }
  })

  test('an address with a pending invitation is not invited again, one with an expired invitation is', async () => {
    const first = await invite({ isOwner: true })
    const email = first.invitation.email.toUpperCase()
    const sent = tenancy.platform.mailbox.received.length
    const again = await tenancy.ask('POST', invitations, { body: { email } })
    expect(refusal(again)).toEqual([409, 'invitation_pending', 'email'])
    expect(tenancy.platform.mailbox.received).toHaveLength(sent)
    now += 8 * day
    const second = await invite({ email })
    await expectNotFound(first.token)
    const { items } = await tenancy.done('GET', `${invitations}?status=pending&pageSize=200`)
    const open = items.filter(({ email }: { email: string }) => email.toLowerCase() === first.invitation.email)
    expect(open).toEqual([second.invitation])
    const actions = (await tenancy.audit(first.invitation.invitationId)).map(({ action }) => action)
    expect(actions).toEqual(['invitation.created', 'invitation.revoked'])
    expect((await accept(second.token)).status).toBe(201)
  })

  test('an address whose invitation was revoked is invited again', async () => {
    const { invitation } = await invite()
    await tenancy.done('POST', `${invitations}/${invitation.invitationId}:revoke`)
    expect((await tenancy.ask('POST', invitations, { body: { email: invitation.email } })).status).toBe(201)
  })

  test('of many invitations of an address at one time one is made', async () => {
    const body = { email: newAddress() }
    const answers = await Promise.all(Array.from({ length: 6 }, () => tenancy.ask('POST', invitations, { body })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409, 409, 409, 409, 409])
    const { items } = await tenancy.done('GET', `${invitations}?status=pending&pageSize=200`)
    expect(items.filter(({ email }: { email: string }) => email === body.email)).toHaveLength(1)
  })

  test('who is a user already is not invited, and nothing is sent', async () => {
    const { email } = await tenancy.newUser(organization.organizationId)
    const sent = tenancy.platform.mailbox.received.length
    const body = { email: email.toUpperCase() }
    expect(refusal(await tenancy.ask('POST', invitations, { body }))).toEqual([409, 'email_taken', 'email'])
    const wrong = { email: newAddress(), dataRoleIds: [unknownId] }
    expect(refusal(await tenancy.ask('POST', invitations, { body: wrong }))).toEqual([
      400,
      'reference_not_found',
      'dataRoleIds[0]',
    ])
    expect(tenancy.platform.mailbox.received).toHaveLength(sent)
  })

  test('lists go from the newest, page by page, by status', async () => {
    const { organizationId } = await tenancy.newOrganization()
    const path = `/organizations/${organizationId}/invitations`
    const made: string[] = []
    for (let n = 0; n < 3; n++) {
      now += 10
      made.unshift((await tenancy.done('POST', path, { email: newAddress() })).invitationId)
    }
    await tenancy.done('POST', `${path}/${made[1]}:revoke`)
    const ids = (page: { items: { invitationId: string }[] }) => page.items.map(({ invitationId }) => invitationId)
    const first = await tenancy.done('GET', `${path}?pageSize=2`)
    const second = await tenancy.done('GET', `${path}?pageSize=2&cursor=${first.nextCursor}`)
    expect([ids(first), ids(second), second.nextCursor]).toEqual([made.slice(0, 2), made.slice(2), null])
    const by = async (status: string) => ids(await tenancy.done('GET', `${path}?status=${status}`))
    expect(await by('pending')).toEqual([made[0], made[2]])
    expect(await by('revoked')).toEqual([made[1]])
    expect((await tenancy.done('GET', `/organizations/${organizationId}`)).counts.openInvitations).toBe(2)
    now += 8 * day
    expect(await by('expired')).toEqual([made[0], made[2]])
    expect((await tenancy.done('GET', `/organizations/${organizationId}`)).counts.openInvitations).toBe(0)
  })
})

describe('sending again and revoking', () => {
  test('the link before opens nothing, the new one works for seven days', async () => {
    const { invitation, token } = await invite()
    now += 8 * day
    const again = await tenancy.done('POST', `${invitations}/${invitation.invitationId}:resend`)
    expect(again).toMatchObject({ status: 'pending', expiresAt: new Date(now + 7 * day).toISOString() })
    const renewed = tenancy.tokenFor(invitation.email)
    expect(renewed).not.toBe(token)
    await expectNotFound(token)
    expect((await accept(renewed)).status).toBe(201)
    const actions = (await tenancy.audit(invitation.invitationId)).map(({ action }) => action)
    expect(actions).toEqual(['invitation.created', 'invitation.resent', 'invitation.accepted'])
  })

  test('what is revoked stays revoked, what is accepted stays accepted', async () => {
    const revoked = await invite()
    const path = `${invitations}/${revoked.invitation.invitationId}`
    const first = await tenancy.done('POST', `${path}:revoke`)
    expect(first).toMatchObject({ status: 'revoked', revokedAt: new Date(now).toISOString() })
    now += 1000
    expect(await tenancy.done('POST', `${path}:revoke`)).toEqual(first)
    expect(refusal(await tenancy.ask('POST', `${path}:resend`))).toEqual([409, 'invitation_closed'])
    const accepted = await invite()
    await accept(accepted.token)
    for (const action of ['resend', 'revoke']) {
      const answer = await tenancy.ask('POST', `${invitations}/${accepted.invitation.invitationId}:${action}`)
      expect(refusal(answer)).toEqual([409, 'invitation_closed'])
    }
  })

  test('an invitation of another organization is not found here', async () => {
    const other = await tenancy.newOrganization()
    const path = `/organizations/${other.organizationId}/invitations`
    const { invitationId } = await tenancy.done('POST', path, { email: newAddress() })
    for (const id of [invitationId, unknownId]) {
      for (const action of ['resend', 'revoke']) {
        const answer = await tenancy.ask('POST', `${invitations}/${id}:${action}`)
        expect(refusal(answer)).toEqual([404, 'invitation_not_found'])
      }
    }
  })
})

describe('accepting', () => {
  test('makes the user that the invitation says, with a password of its own', async () => {
    const { invitation, token } = await invite({ dataRoleKeys: ['audit'], isOwner: true, userTypeKey: 'boss' })
    const answer = await accept(token, { displayName: 'My own name' })
    expect(answer.status, answer.text).toBe(201)
    const { userId } = answer.json
    expect(answer.json).toMatchObject({
      email: invitation.email,
      displayName: 'My own name',
      status: 'active',
      userTypeKey: 'boss',
      isOwner: true,
      dataRoles: [expect.objectContaining({ key: 'audit' })],
    })
    expect(await tenancy.done('GET', `/organizations/${organization.organizationId}/users/${userId}`)).toEqual(
      answer.json,
    )
    const host = `${organization.slug}.localhost:8080`
    const signIn = { headers: { host }, body: { email: invitation.email, password } }
    expect((await tenancy.platform.call('POST', '/api/session', signIn)).status).toBeLessThan(300)
    const { items } = await tenancy.done('GET', `${invitations}?status=accepted&pageSize=200`)
    const at = new Date(now).toISOString()
    expect(items).toContainEqual({ ...invitation, status: 'accepted', acceptedAt: at, acceptedUserId: userId })
    const byUser = { actorKind: 'user', actorId: userId, organizationId: organization.organizationId }
    expect(await tenancy.audit(userId)).toEqual([expect.objectContaining({ action: 'user.created', ...byUser })])
    expect((await tenancy.audit(invitation.invitationId)).at(-1)).toMatchObject({
      action: 'invitation.accepted',
      ...byUser,
      before: { status: 'pending' },
      after: { status: 'accepted', acceptedUserId: userId },
    })
  })

  test('a token that is wrong, spent, revoked, expired or of another host is all the same', async () => {
    const spent = await invite()
    expect((await accept(spent.token)).status).toBe(201)
    const revoked = await invite()
    await tenancy.done('POST', `${invitations}/${revoked.invitation.invitationId}:revoke`)
    const elsewhere = await invite()
    const other = await tenancy.newOrganization()
    const answers = [await accept('wrong'), await accept(spent.token), await accept(revoked.token)]
    answers.push(await tenancy.accept(other.slug, { token: elsewhere.token, password }))
    const expired = await invite()
    now += 7 * day
    answers.push(await accept(expired.token))
    const told = answers.map(({ status, json: { correlationId: _, ...body } }) => ({ status, body }))
    expect(new Set(told.map((one) => JSON.stringify(one))).size).toBe(1)
    expect(refusal(answers[0]!)).toEqual([404, 'invitation_not_found'])
  })

  test('a link works for seven days and not for longer', async () => {
    const { token } = await invite()
    now += 7 * day - 1
    expect((await accept(token)).status).toBe(201)
  })

  test('of many who accept at one time one becomes a user', async () => {
    const { invitation, token } = await invite()
    const answers = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        tenancy.accept(organization.slug, { token, password }, n % 2 ? tenancy.another : tenancy.platform),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 404, 404, 404, 404, 404])
    const found = await tenancy.done(
      'GET',
      `/organizations/${organization.organizationId}/users?search=${invitation.email}`,
    )
    expect(found.items).toHaveLength(1)
  })

  test('an address that somebody has got meanwhile is refused, and the invitation stays open', async () => {
    const { invitation, token } = await invite()
    const { email } = invitation
    const user = await tenancy.newUser(organization.organizationId, { email })
    expect(refusal(await accept(token))).toEqual([409, 'email_taken', 'email'])
    const change = { email: newAddress() }
    await tenancy.done('PATCH', `/organizations/${organization.organizationId}/users/${user.userId}`, change)
    expect((await accept(token)).status).toBe(201)
  })

  test('somebody has to say a name, and a password that is long enough', async () => {
    const { token } = await invite({ displayName: undefined })
    expect(refusal(await accept(token))).toEqual([400, 'validation_failed', 'displayName'])
    expect(refusal(await accept(token, { password: 'short' }))).toEqual([400, 'validation_failed', 'password'])
    expect((await accept(token, { displayName: 'Named' })).json.displayName).toBe('Named')
  })

  test('a page of another site cannot accept', async () => {
    const { token } = await invite()
    const headers = { host: `${organization.slug}.localhost:8080`, 'sec-fetch-site': 'cross-site' }
    const answer = await tenancy.platform.call('POST', '/api/invitations:accept', {
      headers,
      body: { token, password },
    })
    expect(refusal(answer)).toEqual([403, 'cross_site_request'])
  })
})
