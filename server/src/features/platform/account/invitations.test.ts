import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { uuidv7 } from '../../../../src/kernel/ids.ts'
import { type Platform, startPlatform, type TestBuilder } from '../../../../test/support/platform.ts'
import {
  codeAt,
  givePassword,
  linkTokenOf,
  password,
  type SignedInAnswer,
  signIn,
} from '../../../../test/support/sign-in.ts'

let platform: Platform
let now = Date.parse('2031-05-06T07:08:09.000Z')
beforeAll(async () => {
  platform = await startPlatform({ clock: { now: () => now } })
})
afterAll(() => platform.stop())

const newAddress = () => `guest-${uuidv7(Date.now()).slice(-12)}@portico.example`
async function newOwner(): Promise<TestBuilder> {
  const owner = await platform.newAccount()
  await givePassword(platform, owner)
  return { ...owner, token: (await signIn(platform, owner.email)).json.token }
}
const invite = (by: TestBuilder, email: string, role = 'developer') =>
  platform.call('POST', '/v1/platform/team/invitations', { token: by.token, body: { email, role } })
const accept = (body: unknown) =>
  platform.call<SignedInAnswer>('POST', '/v1/platform/team/invitations:accept', { body })
const teamOf = async (by: TestBuilder) =>
  (await platform.call('GET', '/v1/platform/team', { token: by.token })).json as unknown as {
    members: { email: string; role: string }[]
    invitations: { invitationId: string; email: string; role: string; expiresAt: string }[]
  }

describe('an invitation', () => {
  test('lets somebody new in, with a password of their own, once', async () => {
    const owner = await newOwner()
    const email = newAddress()
    const { status, json } = await invite(owner, email, 'admin')
    expect(status).toBe(201)
    expect(json).toMatchObject({ email, role: 'admin', expiresAt: new Date(now + 7 * 86_400_000).toISOString() })
    expect((await teamOf(owner)).invitations).toEqual([json])
    const token = linkTokenOf(platform, email)
    const { subject, text } = platform.mailbox.newestTo(email)
    expect(subject).toBe('Test builder invites you to the team of Test account')
    expect(text).toContain('POST http://127.0.0.1:8080/v1/platform/team/invitations:accept')
    expect(text).toContain(`{"token": "${token}", "displayName": "…", "password": "…"}`)

    expect((await accept({ token, password })).json.details).toMatchObject([{ field: 'displayName', code: 'required' }])
    const short = await accept({ token, displayName: 'Grace', password: 'short' })
    expect(short.json.details).toMatchObject([{ field: 'password' }])
    const joined = await accept({ token, displayName: 'Grace', password })
    expect(joined.status).toBe(201)
    expect(joined.json).toMatchObject({
      account: { accountId: owner.accountId },
      builder: { email, displayName: 'Grace', totpEnabled: false },
      role: 'admin',
      accounts: [{ accountId: owner.accountId, role: 'admin' }],
    })
    expect((await teamOf({ ...owner, token: joined.json.token })).invitations).toEqual([])
    expect((await signIn(platform, email)).status).toBe(201)
    expect((await accept({ token, displayName: 'Grace', password })).json.code).toBe('invitation_not_found')
  })

  test('lets somebody in who is known, with the password and the code that they have', async () => {
    const owner = await newOwner()
    const guest = await newOwner()
    const enroll = { token: guest.token, body: { password } }
    const secret = (await platform.call('POST', '/v1/platform/me/totp:enroll', enroll)).json['secret'] as string
    const code = { token: guest.token, body: { code: codeAt(secret, now) } }
    await platform.call('POST', '/v1/platform/me/totp:confirm', code)
    await invite(owner, guest.email.toUpperCase(), 'billing')
    const token = linkTokenOf(platform, guest.email.toUpperCase())

    expect((await accept({ token, password: 'wrong' })).json.code).toBe('sign_in_failed')
    expect((await accept({ token, password })).json.code).toBe('totp_required')
    expect((await accept({ token, password, totpCode: 'aaaaa-aaaaa' })).json.code).toBe('sign_in_failed')
    expect((await teamOf(owner)).members).toHaveLength(1)
    now += 120_000
    const joined = await accept({ token, password, totpCode: codeAt(secret, now), displayName: 'Not asked for' })
    expect(joined.json).toMatchObject({
      account: { accountId: owner.accountId },
      builder: { builderId: guest.builderId, displayName: 'Test builder', totpEnabled: true },
      role: 'billing',
    })
    expect(joined.json.accounts.map(({ accountId }) => accountId)).toEqual([guest.accountId, owner.accountId])
    const me = await platform.call('GET', '/v1/platform/me', { token: joined.json.token })
    expect(me.json).toMatchObject({ account: { accountId: owner.accountId }, role: 'billing' })
  })

  test('wrong recovery codes are counted like wrong passwords', async () => {
    const owner = await newOwner()
    const guest = await newOwner()
    const enroll = { token: guest.token, body: { password } }
    const secret = (await platform.call('POST', '/v1/platform/me/totp:enroll', enroll)).json['secret'] as string
    const code = { token: guest.token, body: { code: codeAt(secret, now) } }
    await platform.call('POST', '/v1/platform/me/totp:confirm', code)
    await invite(owner, guest.email)
    const token = linkTokenOf(platform, guest.email)
    const codes: (string | undefined)[] = []
    for (let count = 0; count < 6; count++) {
      codes.push((await accept({ token, password, totpCode: `aaaaa-aaaa${count}` })).json.code)
    }
    expect(codes).toEqual([...Array(5).fill('sign_in_failed'), 'sign_in_throttled'])
  })

  test('used, revoked, late and invented links are answered alike', async () => {
    const owner = await newOwner()
    const [revoked, late] = [newAddress(), newAddress()]
    const { json } = await invite(owner, revoked)
    const tokens = ['invented', linkTokenOf(platform, revoked)]
    const path = `/v1/platform/team/invitations/${json['invitationId']}`
    expect((await platform.call('DELETE', path, { token: owner.token })).json).toEqual(json)
    expect((await platform.call('DELETE', path, { token: owner.token })).json.code).toBe('invitation_not_found')
    expect((await invite(owner, revoked.toUpperCase(), 'billing')).status).toBe(201)
    await invite(owner, late)
    tokens.push(linkTokenOf(platform, late))
    now += 7 * 86_400_000
    const answers = await Promise.all(tokens.map((token) => accept({ token, displayName: 'Grace', password })))
    for (const { status, json } of answers) {
      expect([status, { ...json, correlationId: '' }]).toEqual([404, { ...answers[0]!.json, correlationId: '' }])
    }
    const token = (await signIn(platform, owner.email)).json.token
    expect((await teamOf({ ...owner, token })).invitations).toEqual([])
  })

  test('of two who use a link at once one comes in', async () => {
    const owner = await newOwner()
    const email = newAddress()
    await invite(owner, email)
    const token = linkTokenOf(platform, email)
    const answers = await Promise.all([1, 2, 3].map((i) => accept({ token, displayName: `Grace ${i}`, password })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 404, 404])
    expect((await teamOf(owner)).members.filter((member) => member.email === email)).toHaveLength(1)
  })

  test('is not sent to who is in the team, nor by an admin to an owner-to-be', async () => {
    const owner = await newOwner()
    expect((await invite(owner, owner.email.toUpperCase())).json.code).toBe('email_taken')
    const ownerToBe = newAddress()
    const { json } = await invite(owner, ownerToBe, 'owner')
    const email = newAddress()
    await invite(owner, email, 'admin')
    const admin = {
      ...owner,
      token: (await accept({ token: linkTokenOf(platform, email), displayName: 'A', password })).json.token,
    }
    expect((await invite(admin, newAddress(), 'owner')).json.code).toBe('permission_denied')
    const path = `/v1/platform/team/invitations/${json['invitationId']}`
    const revoke = (by: TestBuilder) => platform.call('DELETE', path, { token: by.token })
    expect((await revoke(admin)).json.code).toBe('permission_denied')
    expect((await invite(admin, ownerToBe.toUpperCase(), 'billing')).json.code).toBe('permission_denied')
    const again = await invite(owner, ownerToBe.toUpperCase(), 'billing')
    expect([again.status, again.json.code, again.json.details?.[0]?.field]).toEqual([
      409,
      'invitation_pending',
      'email',
    ])
    expect((await teamOf(owner)).invitations).toContainEqual(
      expect.objectContaining({ email: ownerToBe, role: 'owner' }),
    )
    expect((await revoke(owner)).status).toBe(200)
  })

  test.each([
    ['is removed', 'DELETE', undefined, []],
    ['becomes a developer', 'PATCH', { role: 'developer' }, []],
    ['becomes an admin', 'PATCH', { role: 'admin' }, ['admin']],
    ['stays an owner', 'PATCH', { role: 'owner' }, ['admin', 'owner']],
  ])('ends with the right to send it, when whoever sent it %s', async (_what, method, body, left) => {
    const owner = await newOwner()
    const sender = await platform.newMember(owner.accountId, 'owner')
    const kept = await invite(owner, newAddress(), 'owner')
    const links: Record<string, string> = {}
    for (const role of ['owner', 'admin']) {
      const email = newAddress()
      await invite({ ...sender, token: await platform.newSession(sender, new Date('2100-01-01')) }, email, role)
      links[role] = linkTokenOf(platform, email)
    }
    const path = `/v1/platform/team/${sender.builderId}`
    const change = await platform.call(method, path, { token: owner.token, ...(body && { body }) })
    expect(change.status, change.text).toBe(200)
    const { invitations } = await teamOf(owner)
    expect(invitations.map(({ role }) => role).sort()).toEqual([...left, 'owner'].sort())
    expect(invitations).toContainEqual(kept.json)
    for (const [role, token] of Object.entries(links)) {
      const { status } = await accept({ token, displayName: 'Guest', password })
      expect([role, status]).toEqual([role, left.some((one) => one === role) ? 201 : 404])
    }
    const audit = await platform.call('GET', '/v1/platform/audit?action=team_invitation.revoked', {
      token: owner.token,
    })
    expect(audit.json['items']).toHaveLength(2 - left.length)
  })

  test('is one of at most 200 members and invitations', async () => {
    const owner = await newOwner()
    await platform.db.database.as('portico_owner', (tx) =>
      tx.rows({
        text: `INSERT INTO portico.account_invitation (account_id, invitation_id, email, role, token_hash, expires_at)
          SELECT $1::uuid, gen_random_uuid(), i || '@portico.example', 'billing', sha256(i::text::bytea), '2032-01-01'
          FROM generate_series(1, 199) AS i`,
        values: [owner.accountId],
      }),
    )
    expect((await invite(owner, newAddress())).json.code).toBe('team_limit_reached')
    expect((await invite(owner, '7@portico.example')).json.code).toBe('invitation_pending')
  })

  test('its link is in no log and no row', async () => {
    const owner = await newOwner()
    const email = newAddress()
    await invite(owner, email)
    const token = linkTokenOf(platform, email)
    await accept({ token, displayName: 'Grace', password })
    const rows = await platform.db.database.as('portico_owner', async (tx) => [
      ...(await tx.rows<{ action: string }>({
        text: 'SELECT * FROM portico.audit_entry WHERE account_id = $1 ORDER BY entry_id',
        values: [owner.accountId],
      })),
      ...(await tx.rows({
        text: `SELECT i.*, encode(token_hash, 'escape') FROM portico.account_invitation i WHERE account_id = $1`,
        values: [owner.accountId],
      })),
    ])
    const actions = rows.map((row) => (row as { action?: string }).action).filter((action) => action !== undefined)
    expect(actions.sort()).toEqual([
      'session.created',
      'session.created',
      'team_invitation.accepted',
      'team_invitation.created',
    ])
    const told = JSON.stringify(rows) + platform.logLines.join('')
    for (const text of [token, password]) expect(told).not.toContain(text)
  })
})
