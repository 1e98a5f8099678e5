import { describe, expect, test } from 'vitest'
import { password, tokenOf } from '../../../test/support/tenant-host.ts'
import { type OrganizationKey, startTenantHosts } from './testing.ts'

const { clock, service, other, organization, ask, withPassword, signIn, sessionOf, statusOf, rows, auditOf } =
  startTenantHosts()

describe('changing a password', () => {
  const newPassword = 'tr0ub4dor and four'
  const change = (session: string, currentPassword: string, next = newPassword) =>
    ask()('POST', '/api/session/password', { session, body: { currentPassword, newPassword: next } })

  test('ends the other sessions, the delegated tokens, and is told to the user', async () => {
    const { email, userId, session } = await sessionOf('sales')
    const { token } = organization().users.sales
    const asDelegate = () => service().call('GET', `/v1/apps/${service().app.appId}/auth/context`, { token })
    expect((await asDelegate()).status).toBe(200)
    const others = [tokenOf(await signIn(email)), tokenOf(await signIn(email))]
    for (const one of others) expect(await statusOf(one, other())).toBe(200)
    const answer = await change(session, password)
    expect(answer).toMatchObject({ status: 200, json: { changed: true } })
    expect(await statusOf(session)).toBe(200)
    for (const client of [other(), service()]) {
      for (const one of others) expect(await statusOf(one, client)).toBe(401)
    }
    expect((await asDelegate()).json).toMatchObject({ code: 'credential_invalid' })
    expect((await signIn(email)).status).toBe(401)
    expect((await signIn(email, newPassword)).status).toBe(201)
    expect(service().mailbox.newestTo(email)).toMatchObject({ kind: 'password_changed', to: { address: email } })
    expect(await auditOf(userId)).toContain('user.password_changed by user')
  })

  test('takes the current password, and is as slow to guess as a sign-in', async () => {
    const { session, email } = await sessionOf('salesSouth')
    const refused = await change(session, 'not the password')
    expect(refused).toMatchObject({ status: 403, json: { code: 'password_wrong' } })
    expect(refused.json.details).toMatchObject([{ field: 'currentPassword' }])
    let last = refused
    for (let count = 0; count < 30 && last.status !== 429; count++) last = await change(session, `guess ${count}`)
    expect(last.json.code).toBe('sign_in_throttled')
    expect((await signIn(email)).status).toBe(429)
    clock.ms += 1000 * Number(last.headers['retry-after'])
    expect((await signIn(email)).status).toBe(201)
  })

  test('of two at once one takes place', async () => {
    const { session, email } = await sessionOf('clerk')
    const wanted = ['the first new password', 'the second new password']
    const answers = await Promise.all(wanted.map((next) => change(session, password, next)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 403])
    const taken = wanted[answers.findIndex(({ status }) => status === 200)]!
    expect((await signIn(email, taken)).status).toBe(201)
  })
})

describe('resetting a password', () => {
  const newPassword = 'a wholly new password'
  const request = (email: string, key?: OrganizationKey) =>
    ask(key)('POST', '/api/password-resets', { body: { email } })
  const complete = (token: string, key?: OrganizationKey, next = newPassword) =>
    ask(key)('POST', '/api/password-resets:complete', { body: { token, newPassword: next } })
  const mailsTo = (email: string) =>
    service().mailbox.received.filter(({ to, kind }) => to.address === email && kind === 'tenant_password_reset')
  function tokenOfMail(email: string): string {
    const { link } = mailsTo(email).at(-1)!.variables as { link: string }
    const url = new URL(link)
    expect(url.origin + url.pathname).toBe(`http://${organization().slug}.localhost:8080/reset-password`)
    expect(url.search).toBe('')
    return new URLSearchParams(url.hash.slice(1)).get('token')!
  }
  const refusal = { status: 400, json: { code: 'reset_token_invalid' } }

  test('a link in a mail gives a new password, once, and ends every session', async () => {
    const { email, userId, session } = await sessionOf('owner')
    expect(await request(email.toUpperCase())).toMatchObject({ status: 202, json: { accepted: true } })
    const token = tokenOfMail(email)
    expect(Buffer.from(token, 'base64url')).toHaveLength(32)
    const kept = await service().db.database.inOrganization(organization().organizationId, (tx) =>
      tx.rows<{ token_hash: Buffer }>({ text: 'SELECT token_hash FROM portico.password_reset', values: [] }),
    )
    expect(kept).toHaveLength(1)
    expect(kept[0]!.token_hash.equals(Buffer.from(token, 'base64url'))).toBe(false)
    expect(await statusOf(session, other())).toBe(200)
    expect(await complete(token, 'b')).toMatchObject(refusal)
    const taken = await Promise.all([complete(token), complete(token)])
    expect(taken.map(({ status }) => status).sort()).toEqual([200, 400])
    for (const client of [other(), service()]) expect(await statusOf(session, client)).toBe(401)
    expect(await complete(token)).toMatchObject(refusal)
    expect((await signIn(email)).status).toBe(401)
    expect((await signIn(email, newPassword)).status).toBe(201)
    expect(service().mailbox.newestTo(email).kind).toBe('password_changed')
    const audit = await auditOf(userId)
    expect(audit).toContain('user.password_reset_requested by visitor')
    expect(audit).toContain('user.password_reset by user')
    const written = await rows<{ text: string }>('SELECT a::text AS text FROM portico.audit_entry a')
    for (const line of [...service().logLines, ...written.map(({ text }) => text)]) {
      for (const secret of [token, newPassword, password]) expect(line).not.toContain(secret)
    }
  })

  test('nobody learns who has an account', async () => {
    const inactive = organization().users.inactive.email
    const before = service().mailbox.received.length
    const known = await request(organization().users.outsider.email)
    for (const email of ['nobody@portico.example', inactive, organization('b').users.sales.email]) {
      const answer = await request(email)
      expect([answer.status, answer.text]).toEqual([known.status, known.text])
    }
    expect(service().mailbox.received).toHaveLength(before + 1)
  })

  test('there are three links at a time, one mail a minute, and all end when one is used', async () => {
    const { email } = await withPassword('sales')
    clock.ms += 60_000
    const before = mailsTo(email).length
    await Promise.all([request(email), request(email), request(email)])
    expect(mailsTo(email)).toHaveLength(before + 1)
    const links = [tokenOfMail(email)]
    for (let count = 0; count < 4; count++) {
      clock.ms += 60_000
      await request(email)
      links.push(tokenOfMail(email))
    }
    // Somebody who asks in the user's name takes no link away.
    expect(mailsTo(email)).toHaveLength(before + 3)
    const [first, second, third] = links
    expect((await complete(first!)).status).toBe(200)
    for (const token of [first, second, third]) expect(await complete(token!)).toMatchObject(refusal)
    await request(email)
    expect(mailsTo(email)).toHaveLength(before + 4)
  })

  test('of two who use two links of one user at once one chooses the password', async () => {
    const { email } = await withPassword('clerk')
    await request(email)
    const first = tokenOfMail(email)
    clock.ms += 60_000
    await request(email)
    const answers = await Promise.all([complete(first), complete(tokenOfMail(email))])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
  })

  test('a link is good for an hour, and for a user who is active', async () => {
    const { email, userId } = await withPassword('support')
    await request(email)
    clock.ms += 3_600_000
    expect(await complete(tokenOfMail(email))).toMatchObject(refusal)
    await request(email)
    const token = tokenOfMail(email)
    const setStatus = (status: string) =>
      rows('UPDATE portico.tenant_user SET status = $1 WHERE user_id = $2', [status, userId])
    await setStatus('inactive')
    expect(await complete(token)).toMatchObject(refusal)
    await setStatus('active')
    expect((await complete(token)).status).toBe(200)
  })

  test('changing the password makes an outstanding link void', async () => {
    const { email, session } = await sessionOf('salesSouth')
    await request(email)
    const token = tokenOfMail(email)
    const body = { currentPassword: password, newPassword: 'yet another password' }
    expect((await ask()('POST', '/api/session/password', { session, body })).status).toBe(200)
    expect(await complete(token)).toMatchObject(refusal)
  })
})
