import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'
import { givePassword, password, signIn } from '../../../../test/support/sign-in.ts'

let platform: Platform
/** So far from now that nothing of what is said here is due to the clock of the machine. */
let now = Date.parse('2031-05-06T07:08:09.000Z')
beforeAll(async () => {
  platform = await startPlatform({ clock: { now: () => now } })
})
afterAll(() => platform.stop())

async function newPerson(role?: Parameters<Platform['newAccount']>[0]) {
  const person = await platform.newAccount(role)
  await givePassword(platform, person)
  return person
}

describe('signing in', () => {
  test('gives a token for twelve hours, shown once, that says who it is for', async () => {
    const person = await newPerson('admin')
    const { status, json } = await signIn(platform, person.email.toUpperCase(), { label: 'laptop' })
    expect(status).toBe(201)
    expect(json.token).toMatch(/^ptc_bld_/)
    expect(json).toMatchObject({
      account: { accountId: person.accountId, name: 'Test account' },
      builder: { builderId: person.builderId, email: person.email, totpEnabled: false },
      role: 'admin',
      session: { label: 'laptop', expiresAt: new Date(now + 12 * 3_600_000).toISOString(), current: true },
      accounts: [{ accountId: person.accountId, role: 'admin' }],
    })
    const me = await platform.call('GET', '/v1/platform/me', { token: json.token })
    expect(me.json).toMatchObject({ builder: { email: person.email }, role: 'admin', totpEnabled: false })

    now += 12 * 3_600_000
    const late = await platform.call('GET', '/v1/platform/me', { token: json.token })
    expect(late.json.code).toBe('credential_expired')
  })

  test('an unknown address and a wrong password are answered alike', async () => {
    const person = await newPerson()
    const [wrong, unknown] = await Promise.all([
      signIn(platform, person.email, { password: 'not the password' }),
      signIn(platform, 'nobody@portico.example'),
    ])
    expect(wrong.status).toBe(401)
    expect(wrong.json.code).toBe('sign_in_failed')
    expect({ ...unknown.json, correlationId: '' }).toEqual({ ...wrong.json, correlationId: '' })
    expect({ ...unknown.headers, 'x-correlation-id': '' }).toMatchObject({
      ...wrong.headers,
      'x-correlation-id': '',
      date: expect.any(String),
    })
  })

  test('who is a member of several accounts names one, and none of others', async () => {
    const first = await newPerson()
    const second = await platform.newAccount()
    const stranger = await platform.newAccount()
    await platform.db.database.as('portico_owner', (tx) =>
      tx.rows({
        text: `INSERT INTO portico.account_member (account_id, builder_id, role, created_at)
          VALUES ($1, $2, 'billing', now() + interval '1 day')`,
        values: [second.accountId, first.builderId],
      }),
    )
    const home = await signIn(platform, first.email)
    expect(home.json.account.accountId).toBe(first.accountId)
    expect(home.json.accounts.map(({ accountId, role }) => [accountId, role])).toEqual([
      [first.accountId, 'owner'],
      [second.accountId, 'billing'],
    ])
    const other = await signIn(platform, first.email, { accountId: second.accountId.toUpperCase() })
    expect(other.json).toMatchObject({ account: { accountId: second.accountId }, role: 'billing' })
    const refused = await signIn(platform, first.email, { accountId: stranger.accountId })
    expect([refused.status, refused.json.code]).toEqual([404, 'account_not_found'])
    const guessed = await signIn(platform, first.email, { accountId: stranger.accountId, password: 'not the password' })
    expect(guessed.json.code).toBe('sign_in_failed')
  })

  test('is in the audit log, without the token; failures are not', async () => {
    const person = await newPerson()
    await signIn(platform, person.email, { password: 'not the password' })
    const { json } = await signIn(platform, person.email)
    const entries = await platform.db.database.as('portico_owner', (tx) =>
      tx.rows<{ action: string; actor_id: string; target_id: string; after: object }>({
        text: 'SELECT action, actor_id, target_id, after FROM portico.audit_entry WHERE account_id = $1',
        values: [person.accountId],
      }),
    )
    expect(entries).toEqual([
      {
        action: 'session.created',
        actor_id: person.builderId,
        target_id: json.session.sessionId,
        after: { ...json.session },
      },
    ])
    expect(entries[0]!.after).toMatchObject({ address: '127.0.0.1' })
  })

  test('neither passwords nor tokens are in the log', async () => {
    const person = await newPerson()
    const { json } = await signIn(platform, person.email)
    await signIn(platform, person.email, { password: 'not the password' })
    const log = platform.logLines.join('\n')
    for (const secret of [json.token, password, 'not the password']) expect(log).not.toContain(secret)
  })

  test('a password that was hashed with other parameters is hashed anew', async () => {
    const person = await newPerson()
    const hashOf = () =>
      platform.db.database.as('portico_owner', async (tx) => {
        const [row] = await tx.rows<{ hash: string }>({
          text: 'SELECT password_hash AS hash FROM portico.builder WHERE builder_id = $1',
          values: [person.builderId],
        })
        return row!.hash
      })
    // argon2id of the same password with one pass over 8 MiB.
    const { hash } = await import('@node-rs/argon2')
    const old = await hash(password, { memoryCost: 8192, timeCost: 1, parallelism: 1 })
    await platform.db.database.as('portico_owner', (tx) =>
      tx.rows({
        text: 'UPDATE portico.builder SET password_hash = $1 WHERE builder_id = $2',
        values: [old, person.builderId],
      }),
    )
    expect((await signIn(platform, person.email)).status).toBe(201)
    expect(await hashOf()).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect((await signIn(platform, person.email)).status).toBe(201)
  })
})

describe('guessing', () => {
  test('is slowed down in every process at once, for the one account from the one address', async () => {
    const person = await newPerson()
    const other = await platform.startAnother()
    const guess = (i: number) => signIn(i % 2 ? other : platform, person.email, { password: `guess ${i}` })
    const answers = await Promise.all(Array.from({ length: 16 }, (_, i) => guess(i)))
    expect(answers.filter(({ json }) => json.code === 'sign_in_failed')).toHaveLength(5)
    const refused = answers.filter(({ json }) => json.code === 'sign_in_throttled')
    expect(refused.map(({ status, headers }) => [status, headers['retry-after']])).toEqual(Array(11).fill([429, '30']))

    // The right password is not looked at either; a session that holds goes on.
    expect((await signIn(other, person.email)).json.code).toBe('sign_in_throttled')
    const unknown = await Promise.all(Array.from({ length: 6 }, () => signIn(platform, 'nobody-2@portico.example')))
    expect(unknown.map(({ status }) => status).sort()).toEqual([401, 401, 401, 401, 401, 429])
    now += 30_000
    expect((await signIn(other, person.email)).status).toBe(201)
    expect((await signIn(platform, person.email, { password: 'guess' })).status).toBe(401)
  })

  test('a session does not help to guess the password behind it', async () => {
    const person = await newPerson()
    const { token } = (await signIn(platform, person.email)).json
    const change = (currentPassword: string) =>
      platform.call('POST', '/v1/platform/me/password', { token, body: { currentPassword, newPassword: password } })
    for (let i = 0; i < 5; i++) expect((await change(`guess ${i}`)).json.code).toBe('password_wrong')
    const refused = await Promise.all([
      change(password),
      platform.call('POST', '/v1/platform/me/totp:enroll', { token, body: { password } }),
      signIn(platform, person.email),
    ])
    expect(refused.map(({ json }) => json.code)).toEqual(Array(3).fill('sign_in_throttled'))
  })
})

describe('sessions', () => {
  interface Page {
    readonly items: { sessionId: string; current: boolean; label: string; builderId: string }[]
    readonly nextCursor: string | null
  }
  const list = (token: string, query = '') => platform.call<Page>('GET', `/v1/platform/sessions${query}`, { token })

  test('are listed newest first, page by page, and only those that hold', async () => {
    const person = await newPerson()
    for (const label of ['first', 'second', 'third']) {
      now += 1000
      await signIn(platform, person.email, { label })
    }
    now += 1000
    const { token } = (await signIn(platform, person.email, { label: 'fourth' })).json
    const labels: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const query: string = cursor === '' ? '?pageSize=2' : `?pageSize=2&cursor=${cursor}`
      const { json }: { json: Page } = await list(token, query)
      expect(json.items.length).toBeLessThanOrEqual(2)
      labels.push(...json.items.map(({ label }) => label))
      cursor = json.nextCursor
    }
    // The session that the test began with ran out long before the time of this clock.
    expect(labels).toEqual(['fourth', 'third', 'second', 'first'])
    const { json } = await list(token)
    expect(json.items.filter(({ current }) => current).map(({ label }) => label)).toEqual(['fourth'])
  })

  test('members see and end their own; owners and admins those of the account; nobody those of another', async () => {
    const owner = await newPerson()
    const developer = await platform.newMember(owner.accountId, 'developer')
    await givePassword(platform, developer)
    const stranger = await newPerson()
    const [own, theirs, others] = await Promise.all(
      [owner, developer, stranger].map(async ({ email }) => (await signIn(platform, email)).json),
    )
    const end = (token: string, sessionId: string) =>
      platform.call('DELETE', `/v1/platform/sessions/${sessionId}`, { token })

    expect((await list(theirs!.token)).json.items.map(({ builderId }) => builderId)).toEqual([developer.builderId])
    expect((await list(theirs!.token, '?scope=account')).json.code).toBe('permission_denied')
    const all = (await list(own!.token, '?scope=account')).json.items
    expect(all.map(({ builderId }) => builderId).sort()).toEqual([owner.builderId, developer.builderId].sort())

    expect((await end(theirs!.token, own!.session.sessionId)).json.code).toBe('session_not_found')
    expect((await end(own!.token, others!.session.sessionId)).json.code).toBe('session_not_found')
    expect((await list(others!.token)).status).toBe(200)

    const ended = await end(own!.token, theirs!.session.sessionId)
    expect([ended.status, ended.json]).toEqual([200, { signedOut: true }])
    expect((await list(theirs!.token)).json.code).toBe('credential_invalid')
    expect((await end(own!.token, theirs!.session.sessionId)).json.code).toBe('session_not_found')
  })

  test('of more than fifty those that would end first give way', async () => {
    const person = await newPerson()
    const lasting = await platform.newSession(person, new Date(now + 365 * 86_400_000))
    const first = (await signIn(platform, person.email)).json.token
    for (let count = 0; count < 48; count++) {
      now += 1000
      await signIn(platform, person.email)
    }
    expect((await list(first)).status).toBe(200)
    now += 1000
    const { token } = (await signIn(platform, person.email)).json
    expect((await list(token, '?pageSize=200')).json.items).toHaveLength(50)
    expect((await list(first)).json.code).toBe('credential_invalid')
    expect((await list(lasting)).status).toBe(200)
  })

  test('signing out ends the session in every process', async () => {
    const person = await newPerson()
    const { token } = (await signIn(platform, person.email)).json
    const other = await platform.startAnother()
    expect((await other.call('GET', '/v1/platform/me', { token })).status).toBe(200)
    const { status, json } = await platform.call('DELETE', '/v1/platform/sessions/current', { token })
    expect([status, json]).toEqual([200, { signedOut: true }])
    expect((await other.call('GET', '/v1/platform/me', { token })).json.code).toBe('credential_invalid')
  })
})
