import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'
import { givePassword, linkTokenOf, password, signIn } from '../../../../test/support/sign-in.ts'

let platform: Platform
let now = Date.parse('2031-05-06T07:08:09.000Z')
const minutes = (count: number) => count * 60_000
const newPassword = 'a staple for the battery horse'
beforeAll(async () => {
  platform = await startPlatform({ clock: { now: () => now } })
})
afterAll(() => platform.stop())

async function newPerson() {
  const person = await platform.newAccount()
  await givePassword(platform, person)
  return person
}
const tokenOf = async (email: string) => (await signIn(platform, email)).json.token
const holds = async (token: string) => (await platform.call('GET', '/v1/platform/me', { token })).status === 200
const ask = (email: string) => platform.call('POST', '/v1/platform/password-resets', { body: { email } })
const complete = (token: string, chosen = newPassword) =>
  platform.call('POST', '/v1/platform/password-resets:complete', { body: { token, newPassword: chosen } })
const mailsTo = (email: string) => platform.mailbox.received.filter(({ to }) => to.address === email)

describe('changing the password', () => {
  test('takes the current one, and ends every other session in every process', async () => {
    const person = await newPerson()
    const [here, there] = [await tokenOf(person.email), await tokenOf(person.email)]
    const other = await platform.startAnother()
    const change = (currentPassword: string, chosen = newPassword) =>
      platform.call('POST', '/v1/platform/me/password', { token: here, body: { currentPassword, newPassword: chosen } })

    expect((await change('wrong')).json.code).toBe('password_wrong')
    expect((await change(password, 'short')).json.details).toMatchObject([{ field: 'newPassword' }])
    expect(await holds(there)).toBe(true)
    const { status, json } = await change(password)
    expect([status, json['builder']]).toEqual([200, expect.objectContaining({ email: person.email })])
    expect(await holds(here)).toBe(true)
    expect((await other.call('GET', '/v1/platform/me', { token: there })).json.code).toBe('credential_invalid')
    expect((await signIn(platform, person.email)).json.code).toBe('sign_in_failed')
    expect((await signIn(platform, person.email, { password: newPassword })).status).toBe(201)
    expect(platform.mailbox.newestTo(person.email).kind).toBe('password_changed')
  })

  test('ends the links that were asked for before: somebody may have the mailbox', async () => {
    const person = await newPerson()
    await ask(person.email)
    const link = linkTokenOf(platform, person.email)
    const { status } = await platform.call('POST', '/v1/platform/me/password', {
      token: await tokenOf(person.email),
      body: { currentPassword: password, newPassword },
    })
    expect(status).toBe(200)
    expect((await complete(link, 'the battery of another horse')).json.code).toBe('reset_token_invalid')
    expect((await signIn(platform, person.email, { password: newPassword })).status).toBe(201)
  })
})

test('sessions, links and invitations are removed 30 days after they were of use', async () => {
  const person = await newPerson()
  const token = await tokenOf(person.email)
  await ask(person.email)
  await platform.call('POST', '/v1/platform/team/invitations', {
    token,
    body: { email: 'late@portico.example', role: 'billing' },
  })
  const left = () =>
    platform.db.database.as('portico_owner', async (tx) => {
      const [row] = await tx.rows<{ left: number[] }>({
        text: `SELECT ARRAY[(SELECT count(*) FROM portico.builder_session WHERE builder_id = $1 AND expires_at > $2),
          (SELECT count(*) FROM portico.builder_password_reset WHERE builder_id = $1),
          (SELECT count(*) FROM portico.account_invitation WHERE account_id = $3)]::int[] AS left`,
        values: [person.builderId, new Date(now).toISOString(), person.accountId],
      })
      return row!.left
    })
  const removeAt = (time: number) =>
    platform.db.database.as('portico_owner', (tx) =>
      tx.rows({ text: 'SELECT portico.remove_spent_sign_ins($1)', values: [new Date(time).toISOString()] }),
    )
  await removeAt(now + minutes(60 * 24 * 30))
  expect(await left()).toEqual([1, 1, 1])
  await removeAt(now + minutes(60 * 24 * 31))
  expect(await left()).toEqual([0, 0, 1])
  await removeAt(now + minutes(60 * 24 * 38))
  expect(await left()).toEqual([0, 0, 0])
})

describe('a forgotten password', () => {
  test('is replaced with the link from the mail, once, and every session ends', async () => {
    const person = await newPerson()
    const session = await tokenOf(person.email)
    const asked = await ask(person.email.toUpperCase())
    const unknown = await ask('nobody@portico.example')
    expect([asked.status, asked.json, unknown.json]).toEqual([202, { accepted: true }, { accepted: true }])
    expect(mailsTo('nobody@portico.example')).toEqual([])
    const mail = platform.mailbox.newestTo(person.email)
    const token = linkTokenOf(platform, person.email)
    expect(mail.text).toContain(`{"token": "${token}", "newPassword": "…"}`)
    expect(mail.text).toContain('POST http://127.0.0.1:8080/v1/platform/password-resets:complete')

    expect((await complete(token, 'short')).json.details).toMatchObject([{ field: 'newPassword' }])
    expect((await complete(token)).json).toEqual({ changed: true })
    expect(await holds(session)).toBe(false)
    expect((await signIn(platform, person.email)).json.code).toBe('sign_in_failed')
    expect((await signIn(platform, person.email, { password: newPassword })).status).toBe(201)
    expect((await complete(token, 'yet another password')).json.code).toBe('reset_token_invalid')
    expect(platform.mailbox.newestTo(person.email).kind).toBe('password_changed')
  })

  test('used, late and invented links are answered alike; an older link goes with a newer one', async () => {
    const person = await newPerson()
    await ask(person.email)
    const older = linkTokenOf(platform, person.email)
    await ask(person.email)
    const newer = linkTokenOf(platform, person.email)
    expect((await complete(newer)).status).toBe(200)
    await ask(person.email)
    const late = linkTokenOf(platform, person.email)
    now += minutes(60)
    const answers = await Promise.all([older, newer, late, 'invented'].map((token) => complete(token)))
    for (const { status, json } of answers) {
      expect([status, { ...json, correlationId: '' }]).toEqual([400, { ...answers[0]!.json, correlationId: '' }])
      expect(json.code).toBe('reset_token_invalid')
    }
  })

  test('of two who use a link at once one chooses the password', async () => {
    const person = await newPerson()
    await ask(person.email)
    const token = linkTokenOf(platform, person.email)
    const other = await platform.startAnother()
    const answers = await Promise.all(
      [platform, other].map(({ call }, i) =>
        call('POST', '/v1/platform/password-resets:complete', { body: { token, newPassword: `${newPassword} ${i}` } }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400])
  })

  test('is good for three mails an hour', async () => {
    const person = await newPerson()
    for (let count = 0; count < 5; count++) await ask(person.email)
    expect(mailsTo(person.email)).toHaveLength(3)
    now += minutes(60)
    await ask(person.email)
    expect(mailsTo(person.email)).toHaveLength(4)
  })

  test('neither link nor password is in the log, the audit log or the database', async () => {
    const person = await newPerson()
    await ask(person.email)
    const token = linkTokenOf(platform, person.email)
    await complete(token)
    const rows = await platform.db.database.as('portico_owner', async (tx) => [
      ...(await tx.rows<{ action: string; actor_id: string }>({
        text: 'SELECT * FROM portico.audit_entry WHERE account_id = $1',
        values: [person.accountId],
      })),
      ...(await tx.rows({
        text: `SELECT encode(token_hash, 'escape') FROM portico.builder_password_reset WHERE builder_id = $1`,
        values: [person.builderId],
      })),
    ])
    expect(rows[0]).toMatchObject({ action: 'builder.password_reset', actor_id: person.builderId })
    const told = JSON.stringify(rows) + platform.logLines.join('')
    for (const text of [token, newPassword]) expect(told).not.toContain(text)
  })
})
