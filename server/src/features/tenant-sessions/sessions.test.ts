import { describe, expect, test } from 'vitest'
import type { Answer } from '../../../test/support/http-client.ts'
import type { Instance } from '../../../test/support/service.ts'
import { hostOf, onHost, openSession, password, tokenOf } from '../../../test/support/tenant-host.ts'
import { createSessionCookie } from '../../shared/session-cookie.ts'
import { domainKeptMs } from '../../shared/tenant-domains.ts'
import { startTenantHosts } from './testing.ts'

const { clock, service, other, organization, ask, withPassword, signIn, sessionOf, statusOf, rows, auditOf } =
  startTenantHosts()

describe('signing in', () => {
  test('a user signs in, is told who it is, and signs out at once in every process', async () => {
    const { email, userId } = await withPassword('sales')
    const { organizationId, slug, dataRoles, locations } = organization()
    const answer = await signIn(email.toUpperCase())
    expect(answer.status).toBe(201)
    expect(answer.json).toEqual({
      saasAppId: service().app.appId,
      organization: { organizationId, name: 'Organization a', slug },
      user: { userId, displayName: 'Organization a sales', email, userTypeKey: 'member', isOwner: false },
      dataRoles: [{ dataRoleId: dataRoles['sales'], key: 'sales' }],
      locations: [locations['north']],
      expiresAt: new Date(clock.ms + 14 * 24 * 3_600_000).toISOString(),
    })
    const session = tokenOf(answer)
    expect(answer.headers['set-cookie']).toEqual([
      `portico_session=${session}; Path=/; HttpOnly; SameSite=Lax; Max-Age=1209600`,
    ])
    expect(session).toMatch(/^ptc_ses_/)
    expect(answer.headers['cache-control']).toBe('no-store')
    const keyId = session.split('_')[2]!
    const kept = await rows('SELECT user_agent, address FROM portico.credential WHERE key_id = $1', [keyId])
    expect(kept).toEqual([{ user_agent: 'A browser', address: '127.0.0.1' }])

    for (const client of [service(), other()]) {
      const told = await ask('a', client)('GET', '/api/session', { session })
      expect(told.json).toEqual(answer.json)
      expect(told.headers['cache-control']).toBe('no-store')
    }
    const out = await ask()('DELETE', '/api/session', { session })
    expect(out).toMatchObject({ status: 200, json: { signedOut: true } })
    expect(out.headers['set-cookie']).toEqual(['portico_session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0'])
    for (const client of [other(), service()]) expect(await statusOf(session, client)).toBe(401)
    expect(await auditOf(keyId)).toEqual(['session.created by user', 'session.revoked by user'])
  })

  test('an owner is at home in every location', async () => {
    const { session } = await sessionOf('owner')
    const { json } = await ask()('GET', '/api/session', { session })
    expect(json).toMatchObject({ user: { isOwner: true }, locations: 'all' })
  })

  test('whatever is wrong with a sign-in, the answer is the same', async () => {
    const { email } = await withPassword('support')
    const elsewhere = await withPassword('support', 'b')
    const inactive = await withPassword('inactive')
    const answers = [
      await signIn(email, 'not the password'),
      await signIn(email, ` ${password}`),
      await signIn('nobody@portico.example'),
      await signIn(inactive.email),
      await signIn(organization().users.clerk.email), // has no password
      await signIn(elsewhere.email), // belongs to another organisation
    ]
    for (const { status, json, headers } of answers) {
      expect(status).toBe(401)
      expect({ ...json, correlationId: null }).toEqual({
        error: 'The email address or the password is wrong.',
        code: 'sign_in_failed',
        correlationId: null,
      })
      expect(headers['set-cookie']).toBeUndefined()
    }
  })

  test('guessing becomes slow, for the right password as well, and for one account alone', async () => {
    const { email } = await withPassword('owner', 'b')
    const guesses: Answer[] = []
    for (let count = 0; count < 30 && guesses.at(-1)?.status !== 429; count++) {
      guesses.push(await signIn(email, `guess ${count}`, 'b'))
    }
    expect(guesses.length).toBeGreaterThan(2)
    expect(guesses.at(-1)!.json.code).toBe('sign_in_throttled')
    expect((await signIn(email.toUpperCase(), password, 'b')).json.code).toBe('sign_in_throttled')
    clock.ms += 1000 * Number(guesses.at(-1)!.headers['retry-after'])
    expect((await signIn(email, password, 'b')).status).toBe(201)
  })

  test('a hash of other parameters is replaced when its password was right', async () => {
    const { email, userId } = await withPassword('clerk')
    const hash = async () =>
      (
        await rows<{ hash: string }>('SELECT password_hash AS hash FROM portico.tenant_user WHERE user_id = $1', [
          userId,
        ])
      )[0]!.hash
    const before = await hash()
    await signIn(email, 'not the password')
    expect(await hash()).toBe(before)
    expect((await signIn(email)).status).toBe(201)
    const after = await hash()
    expect(after).toContain('$argon2id$v=19$m=19456,t=2,p=1$')
    expect((await signIn(email)).status).toBe(201)
    expect(await hash()).toBe(after)
  })

  test('nobody signs in to an inactive organization or an archived application', async () => {
    const { email } = await withPassword('owner', 'dormant')
    expect((await signIn(email, password, 'dormant')).json.code).toBe('organization_inactive')
    const { organizations, appId } = service().otherApp
    const { email: owner } = organizations.c.users.owner
    await rows('UPDATE portico.application SET archived_at = now() WHERE app_id = $1', [appId])
    const answer = await onHost(service(), hostOf(organizations.c))('POST', '/api/session', {
      body: { email: owner, password },
    })
    expect(answer.json.code).toBe('application_archived')
  })

  test('a session ends after 14 days, whatever happens', async () => {
    const { session } = await sessionOf('salesSouth')
    clock.ms += 14 * 24 * 3_600_000 - 1000
    expect(await statusOf(session)).toBe(200)
    clock.ms += 1000
    const answer = await ask()('GET', '/api/session', { session })
    expect(answer).toMatchObject({ status: 401, json: { code: 'credential_expired' } })
  })

  test('of the sessions of a user the newest 50 are kept, and none that is over', async () => {
    const { email, userId } = await withPassword('outsider')
    const user = { userId }
    const open = (state = {}) => openSession(service().db, service().app, organization(), user, state)
    const inAnHour = { expiresAt: new Date(clock.ms + 3_600_000) }
    const oldest = await open({ ...inAnHour, createdAt: new Date(0) })
    await open({ revoked: true })
    await open({ expiresAt: new Date(0) })
    for (let count = 0; count < 49; count++) await open(inAnHour)
    for (const client of [service(), other()]) expect(await statusOf(oldest, client)).toBe(200)
    const newest = tokenOf(await signIn(email))
    const count = await rows(`SELECT count(*)::int AS n FROM portico.credential WHERE user_id = $1 AND kind = 'ses'`, [
      userId,
    ])
    expect(count).toEqual([{ n: 50 }])
    for (const client of [service(), other()]) expect(await statusOf(oldest, client)).toBe(401)
    expect(await statusOf(newest)).toBe(200)
  })
})

describe('a session', () => {
  test('holds on the host of its organisation and nowhere else', async () => {
    const { session } = await sessionOf('sales')
    const elsewhere = [hostOf(organization('b')), hostOf(service().otherApp.organizations.c)]
    for (const host of elsewhere) {
      const answer = await onHost(service(), host)('GET', '/api/session', { session })
      expect(answer, host).toMatchObject({ status: 401, json: { code: 'credential_invalid' } })
    }
  })

  test('is no bearer token, on no host', async () => {
    const { session } = await sessionOf('sales')
    const onApi = [`/v1/apps/${service().app.appId}/auth/context`, '/v1/platform/openapi.json']
    for (const path of onApi) {
      const answer = await service().call('GET', path, { token: session })
      expect(answer, path).toMatchObject({ status: 403, json: { code: 'credential_kind_not_allowed' } })
    }
    const answer = await ask()('GET', '/api/session', { token: session })
    expect(answer).toMatchObject({ status: 401, json: { code: 'credential_missing' } })
  })

  test('ends with its user, and follows the roles of the user, on the next request of every process', async () => {
    const { session, userId } = await sessionOf('support')
    const { organizationId, dataRoles } = organization()
    for (const client of [service(), other()]) expect(await statusOf(session, client)).toBe(200)
    const change = (text: string, values: readonly unknown[]) =>
      service().db.database.inOrganization(organizationId, async (tx) => {
        await tx.rows({ text, values })
        await tx.rows({ text: 'SELECT portico.bump_epoch($1)', values: [organizationId] })
      })
    await change(
      'UPDATE portico.membership_data_role SET data_role_id = $3 WHERE organization_id = $1 AND user_id = $2',
      [organizationId, userId, dataRoles['clerk']],
    )
    for (const client of [service(), other()]) {
      const { json } = await ask('a', client)('GET', '/api/session', { session })
      expect(json['dataRoles']).toEqual([{ dataRoleId: dataRoles['clerk'], key: 'clerk' }])
    }
    const setStatus = (status: string) =>
      change('UPDATE portico.tenant_user SET status = $3 WHERE organization_id = $1 AND user_id = $2', [
        organizationId,
        userId,
        status,
      ])
    await setStatus('inactive')
    for (const client of [service(), other()]) {
      const answer = await ask('a', client)('GET', '/api/session', { session })
      expect(answer.json.code).toBe('user_inactive')
    }
    await setStatus('active')
  })

  test('has a cookie that browsers keep to its host over https', () => {
    const cookie = createSessionCookie('https://portico.example')
    expect(cookie.name).toBe('__Host-portico_session')
    const attributes = 'Path=/; HttpOnly; SameSite=Lax; Secure'
    expect(cookie.keep('t', 60)).toBe(`__Host-portico_session=t; ${attributes}; Max-Age=60`)
    expect(cookie.drop()).toBe(`__Host-portico_session=; ${attributes}; Max-Age=0`)
  })
})

describe('a domain of an organisation', () => {
  const setDomain = (domain: string | null, verifiedAt = domain && new Date().toISOString()) =>
    rows(
      `UPDATE portico.organization SET custom_domain = $1, custom_domain_verified_at = $2
        WHERE organization_id = $3`,
      [domain, verifiedAt, organization().organizationId],
    )
  const apiPath = () => `/v1/apps/${service().app.appId}/auth/context`
  const live = () => ({ token: organization().credentials.live.token })

  test('is its host from soon after it was given until soon after it is taken away', async () => {
    const domain = 'portal.northwind-a.example'
    const onDomain = onHost(service(), `${domain.toUpperCase()}:443`)
    const { email, session } = await sessionOf('clerk')
    expect((await onDomain('GET', apiPath(), live())).status).toBe(200)
    expect((await onDomain('GET', '/api/session', { session })).json.code).toBe('route_not_found')

    await setDomain(domain, null)
    clock.ms += domainKeptMs
    expect((await onDomain('GET', apiPath(), live())).status).toBe(200)
    clock.ms += 60_000
    await onHost(service(), hostOf(organization()))('POST', '/api/password-resets', { body: { email } })
    const { link: linkBefore } = service().mailbox.newestTo(email).variables as { link: string }
    expect(linkBefore).toContain(`http://${hostOf(organization())}/reset-password#token=`)

    await setDomain(domain)
    clock.ms += domainKeptMs
    expect((await onDomain('GET', apiPath(), live())).json.code).toBe('route_not_found')
    expect((await onDomain('GET', '/docs')).status).toBe(404)
    expect((await onDomain('GET', '/healthz')).status).toBe(200)
    expect((await onDomain('PUT', '/api/session')).headers['allow']).toBe('DELETE, GET, HEAD, POST')
    const body = { email, password }
    const signedIn = await onDomain('POST', '/api/session', { body, headers: { origin: `https://${domain}` } })
    expect(signedIn.status).toBe(201)
    expect((await onDomain('GET', '/api/session', { session: tokenOf(signedIn) })).status).toBe(200)
    const foreign = await openSession(service().db, service().app, organization('b'), organization('b').users.sales, {
      expiresAt: new Date(clock.ms + 1000),
    })
    expect((await onDomain('GET', '/api/session', { session: foreign })).json.code).toBe('credential_invalid')

    clock.ms += 60_000
    await onDomain('POST', '/api/password-resets', { body: { email } })
    const { link } = service().mailbox.newestTo(email).variables as { link: string }
    expect(link).toContain(`https://${domain}/reset-password#token=`)

    await setDomain(null)
    clock.ms += domainKeptMs
    expect((await onDomain('GET', apiPath(), live())).status).toBe(200)
  })

  test('other names stay those of the API, and a slug without an organisation is nobody', async () => {
    for (const host of ['unknown.example', 'portico', '10.0.0.7:8080', '[::1]:8080', 'x'.repeat(300)]) {
      expect((await onHost(service(), host)('GET', apiPath(), live())).status, host).toBe(200)
    }
    const nobody = onHost(service(), 'no-such-organization.localhost')
    const body = { email: 'ada@northwind.example', password }
    expect((await nobody('POST', '/api/session', { body })).json.code).toBe('organization_not_found')
  })
})

describe('behind a proxy', () => {
  test('a trusted one says where a sign-in comes from, anybody else does not', async () => {
    const { email } = await withPassword('outsider')
    const proxied = await service().startAnother({ trustedProxies: ['127.0.0.0/8', '10.0.0.0/8'] })
    const addressFor = async (client: Instance, forwarded: string) => {
      const answer = await onHost(client, hostOf(organization()))('POST', '/api/session', {
        body: { email, password },
        headers: { 'x-forwarded-for': forwarded },
      })
      const [row] = await rows<{ address: string }>('SELECT address FROM portico.credential WHERE key_id = $1', [
        tokenOf(answer).split('_')[2],
      ])
      return row!.address
    }
    expect(await addressFor(proxied, '203.0.113.9, 198.51.100.7, 10.1.1.1')).toBe('198.51.100.7')
    const warnings = () => service().logLines.filter((line) => line.includes('PORTICO_TRUSTED_PROXIES'))
    expect(warnings()).toEqual([])
    expect(await addressFor(service(), '203.0.113.9, 198.51.100.7, 10.1.1.1')).toBe('127.0.0.1')
    expect(await addressFor(service(), '203.0.113.9')).toBe('127.0.0.1')
    expect(warnings()).toEqual([expect.stringMatching(/"level":"warn".*"peer":"127\.0\.0\.1"/)])
  })
})
