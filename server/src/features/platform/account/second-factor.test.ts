import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../../../../test/support/platform.ts'
import { codeAt, givePassword, password, signIn } from '../../../../test/support/sign-in.ts'
import { totpStepOf } from './rules.ts'

let platform: Platform
let now = Date.parse('2031-05-06T07:08:09.000Z')
const stepMs = 30_000
beforeAll(async () => {
  platform = await startPlatform({ clock: { now: () => now } })
})
afterAll(() => platform.stop())

const post = (token: string, path: string, body: unknown) =>
  platform.call('POST', `/v1/platform/me/totp${path}`, { token, body })

async function newPerson() {
  const person = await platform.newAccount()
  await givePassword(platform, person)
  return { ...person, token: (await signIn(platform, person.email)).json.token }
}

/** Somebody whose second factor is on. The step whose code turned it on is used. */
async function newSecured() {
  const person = await newPerson()
  const secret = (await post(person.token, ':enroll', { password })).json['secret'] as string
  const { json } = await post(person.token, ':confirm', { code: codeAt(secret, now) })
  return { ...person, secret, recoveryCodes: json['recoveryCodes'] as string[] }
}

/** RFC 6238 appendix B, its SHA-1 column, the last six of eight digits. */
test.each([
  [59, '287082'],
  [1111111109, '081804'],
  [1111111111, '050471'],
  [1234567890, '005924'],
  [2000000000, '279037'],
  [20000000000, '353130'],
])('at %i seconds the code of the RFC is %s', (seconds, code) => {
  // "12345678901234567890" in base32.
  const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ'
  const step = Math.floor(seconds / 30)
  const at = (steps: number) => totpStepOf(secret, code, null, (seconds + steps * 30) * 1000)
  expect([at(-2), at(-1), at(0), at(1), at(2)]).toEqual([undefined, step, step, step, undefined])
  expect(totpStepOf(secret, code, step - 1, seconds * 1000)).toBe(step)
  expect(totpStepOf(secret, code, step, seconds * 1000)).toBeUndefined()
})

describe('a second factor', () => {
  test('takes the password to begin with, and a first code to be on', async () => {
    const person = await newPerson()
    expect((await post(person.token, ':enroll', { password: 'wrong' })).json.code).toBe('password_wrong')
    expect((await post(person.token, ':confirm', { code: '000000' })).json.code).toBe('totp_not_enrolled')
    const first = await post(person.token, ':enroll', { password })
    const { json } = await post(person.token, ':enroll', { password })
    expect(json['secret']).toMatch(/^[A-Z2-7]{32}$/)
    expect(json['secret']).not.toBe(first.json['secret'])
    const uri = new URL(json['otpauthUri'] as string)
    expect(uri.host + decodeURIComponent(uri.pathname)).toBe(`totp/Portico:${person.email}`)
    expect(uri.searchParams.get('secret')).toBe(json['secret'])
    // Not asked for yet.
    expect((await signIn(platform, person.email)).status).toBe(201)

    const replaced = await post(person.token, ':confirm', { code: codeAt(first.json['secret'] as string, now) })
    expect(replaced.json.details).toMatchObject([{ field: 'code' }])
    const confirmed = await post(person.token, ':confirm', { code: codeAt(json['secret'] as string, now) })
    expect(confirmed.status).toBe(200)
    const codes = confirmed.json['recoveryCodes'] as string[]
    expect(new Set(codes).size).toBe(10)
    for (const code of codes) expect(code).toMatch(/^[0-9a-z]{5}-[0-9a-z]{5}$/)
    for (const path of [':enroll', ':confirm']) {
      const again = await post(person.token, path, path === ':enroll' ? { password } : { code: '000000' })
      expect(again.json.code).toBe('totp_already_enabled')
    }
    const me = await platform.call('GET', '/v1/platform/me', { token: person.token })
    expect(me.json).toMatchObject({ totpEnabled: true, builder: { totpEnabled: true } })
    const team = await platform.call('GET', '/v1/platform/team', { token: person.token })
    expect(team.json['members']).toMatchObject([{ totpEnabled: true }])
  })

  test('is asked for when the password is right, and is good within a step, once', async () => {
    const { email, secret } = await newSecured()
    const attempt = (more: object) => signIn(platform, email, { ...more })
    const codeOf = async (more: object) => (await attempt(more)).json.code

    expect(await codeOf({})).toBe('totp_required')
    expect(await codeOf({ password: 'wrong' })).toBe('sign_in_failed')
    const right = codeAt(secret, now)
    // Its step was used to turn the second factor on.
    expect(await codeOf({ totpCode: right })).toBe('sign_in_failed')
    now += 4 * stepMs
    expect(await codeOf({ totpCode: codeAt(secret, now - 2 * stepMs) })).toBe('sign_in_failed')
    expect(await codeOf({ totpCode: codeAt(secret, now + 2 * stepMs) })).toBe('sign_in_failed')
    expect(await codeOf({ totpCode: codeAt(secret, now), password: 'wrong' })).toBe('sign_in_failed')
    now += 20 * 60_000
    for (const offset of [-1, 0, 1]) {
      const totpCode = codeAt(secret, now + offset * stepMs)
      const { status, json } = await attempt({ totpCode })
      expect([status, json.builder?.totpEnabled]).toEqual([201, true])
      expect(await codeOf({ totpCode })).toBe('sign_in_failed')
    }
    // An earlier step than the last one used is as good as used.
    expect(await codeOf({ totpCode: codeAt(secret, now) })).toBe('sign_in_failed')
  })

  test('of several who send the same code at once one signs in', async () => {
    const { email, secret } = await newSecured()
    now += 4 * stepMs
    const other = await platform.startAnother()
    const totpCode = codeAt(secret, now)
    const answers = await Promise.all([0, 1, 2, 3].map((i) => signIn(i % 2 ? other : platform, email, { totpCode })))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 401, 401, 401])
  })

  test('a recovery code stands in for a code, once', async () => {
    const { email, recoveryCodes } = await newSecured()
    const [first, second] = recoveryCodes
    expect((await signIn(platform, email, { totpCode: first })).status).toBe(201)
    expect((await signIn(platform, email, { totpCode: first })).json.code).toBe('sign_in_failed')
    expect((await signIn(platform, email, { totpCode: 'aaaaa-aaaaa' })).json.code).toBe('sign_in_failed')
    expect((await signIn(platform, email, { totpCode: second })).status).toBe(201)
  })

  test('goes with the password and a code, and the recovery codes with it', async () => {
    const { email, token, secret, recoveryCodes } = await newSecured()
    const remove = (body: unknown) => platform.call('DELETE', '/v1/platform/me/totp', { token, body })
    now += 4 * stepMs
    const code = codeAt(secret, now)
    expect((await remove({ password: 'wrong', code })).json.code).toBe('password_wrong')
    expect((await remove({ password, code: 'aaaaa-aaaaa' })).json.code).toBe('password_wrong')
    expect((await remove({ password })).json.details).toMatchObject([{ field: 'code' }])
    expect((await remove({ password, code })).json).toMatchObject({ totpEnabled: false })
    expect((await remove({ password, code })).json.code).toBe('totp_not_enrolled')
    expect((await signIn(platform, email)).status).toBe(201)
    const left = await platform.db.database.as('portico_owner', (tx) =>
      tx.rows({
        text: `SELECT FROM portico.builder_recovery_code JOIN portico.builder USING (builder_id) WHERE email = $1`,
        values: [email],
      }),
    )
    expect(left).toEqual([])
    expect(recoveryCodes).toHaveLength(10)
  })

  test('is not guessed at by who shows a right password in between', async () => {
    const person = await newSecured()
    const remove = (code: string) =>
      platform.call('DELETE', '/v1/platform/me/totp', { token: person.token, body: { password, code } })
    for (const code of ['aaaaa-00000', 'aaaaa-00001', 'aaaaa-00002', 'aaaaa-00003', 'aaaaa-00004']) {
      expect((await remove(code)).json.code).toBe('password_wrong')
      expect((await post(person.token, ':enroll', { password })).json.code).toBe('totp_already_enabled')
    }
    expect((await remove('aaaaa-00005')).json.code).toBe('sign_in_throttled')
  })

  test('leaves no secret in the database, the audit log or the log', async () => {
    const { accountId, builderId, secret, recoveryCodes } = await newSecured()
    const rows = await platform.db.database.as('portico_owner', async (tx) => [
      ...(await tx.rows({
        text: "SELECT b.*, encode(totp_secret, 'escape') AS t FROM portico.builder b WHERE builder_id = $1",
        values: [builderId],
      })),
      ...(await tx.rows({
        text: "SELECT encode(code_hash, 'escape') AS t FROM portico.builder_recovery_code WHERE builder_id = $1",
        values: [builderId],
      })),
      ...(await tx.rows<{ action: string }>({
        text: 'SELECT * FROM portico.audit_entry WHERE account_id = $1',
        values: [accountId],
      })),
    ])
    const actions = rows.map((row) => (row as { action?: string }).action).filter((action) => action !== undefined)
    expect(actions).toEqual(expect.arrayContaining(['builder.totp_enrolled', 'builder.totp_enabled']))
    const told = JSON.stringify(rows) + platform.logLines.join('')
    for (const text of [secret, ...recoveryCodes]) expect(told).not.toContain(text)
  })
})
