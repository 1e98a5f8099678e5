import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { urlOf } from '../test/support/database.ts'
import { type Platform, startPlatform } from '../test/support/platform.ts'
import { codeAt, type SignedInAnswer, signIn } from '../test/support/sign-in.ts'
import { pepper } from '../test/support/tenants.ts'
import { inviteFirstAccount } from './first-account.ts'

/** The command as an operator runs it: a process of its own beside a running service. */
let platform: Platform
let now = Date.parse('2031-05-06T07:08:09.000Z')
let dataDir: string
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'portico-account-'))
  platform = await startPlatform({ clock: { now: () => now } })
})
afterAll(async () => {
  await platform.stop()
  await rm(dataDir, { recursive: true })
})

async function run(args: readonly string[], input = ''): Promise<{ code: number; output: string }> {
  const env = { PATH: process.env['PATH'], DATABASE_URL: urlOf(platform.db.connection) }
  const child = spawn(process.execPath, [join(import.meta.dirname, 'account-command.ts'), ...args], { env })
  child.stdin.end(input)
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: code as number, output: out + err }
}

const baseUrl = 'https://portico.example'
const offer = () =>
  inviteFirstAccount({ database: platform.db.database, pepper, clock: { now: () => now }, dataDir, baseUrl })
/** The token that a start leaves for the operator. */
async function offeredToken(): Promise<string> {
  const line = await offer()
  const path = join(dataDir, 'setup-token')
  const token = (await readFile(path, 'utf8')).trim()
  expect(line).toContain(path)
  expect(line).toContain(`${baseUrl}/accept-invitation`)
  expect(line).not.toContain(token)
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  return token
}
const accept = (body: unknown) =>
  platform.call<SignedInAnswer>('POST', '/v1/platform/team/invitations:accept', { body })
const first = { displayName: 'Ada', email: 'ada@acme.example', password: 'correct horse battery staple' }

describe('the first account', () => {
  test('is made with the token that a start shows, once, within the hour, by one of several', async () => {
    expect((await run(['list'])).output).toBe('There is no account yet.\n')
    const earlier = await offeredToken()
    const late = await offeredToken()
    expect((await accept({ ...first, token: earlier })).json.code).toBe('invitation_not_found')
    now += 60 * 60_000
    expect((await accept({ ...first, token: late })).json.code).toBe('invitation_not_found')

    const token = await offeredToken()
    const { email: _, ...nobody } = first
    expect((await accept({ ...nobody, token })).json.details).toMatchObject([{ field: 'email', code: 'required' }])
    expect((await accept({ ...first, token, password: 'short' })).json.details).toMatchObject([{ field: 'password' }])
    const answers = await Promise.all(
      ['Acme', 'Other'].map((accountName) =>
        accept({ ...first, email: `${accountName}@acme.example`, accountName, token }),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 404])
    const made = answers.find(({ status }) => status === 201)!.json
    expect(made).toMatchObject({ role: 'owner', builder: { displayName: 'Ada' } })
    expect((await signIn(platform, made.builder.email)).json.account).toEqual(made.account)
    expect((await accept({ ...first, token })).json.code).toBe('invitation_not_found')
    expect(await offer()).toBeUndefined()
    await expect(readFile(join(dataDir, 'setup-token'))).rejects.toThrow('ENOENT')
    const entries = await platform.call<{ items: { action: string }[] }>('GET', '/v1/platform/audit', made)
    expect(entries.json.items.map(({ action }) => action)).toContain('account.created')
  })
})

describe('npm run account', () => {
  test('create makes an account whose owner signs in with the password that was piped in', async () => {
    const args = ['create', '--email', 'grace@acme.example', '--name', 'Grace', '--account', 'Navy', '--password-stdin']
    const { code, output } = await run(args, 'piped in from a file\n')
    expect([code, output]).toEqual([0, expect.stringContaining('Made the account Navy')])
    expect(output).not.toContain('piped in')
    const { json } = await signIn(platform, 'grace@acme.example', { password: 'piped in from a file' })
    expect(json).toMatchObject({ account: { name: 'Navy' }, builder: { displayName: 'Grace' }, role: 'owner' })
    const again = await run(args, 'piped in from a file\n')
    expect([again.code, again.output]).toEqual([
      1,
      expect.stringContaining('has the address grace@acme.example already'),
    ])
    expect((await run(['list'])).output).toContain(`${json.account.accountId}  Navy\n  grace@acme.example (owner)\n`)
  })

  test('reset-password ends every session, and turns the second factor off where that is asked for', async () => {
    const made = await run(['create', '--email', 'alan@acme.example', '--name', 'Alan', '--generate'])
    const password = /nowhere else: (\S{24})\n/.exec(made.output)![1]!
    const { token } = (await signIn(platform, 'alan@acme.example', { password })).json
    const enroll = await platform.call('POST', '/v1/platform/me/totp:enroll', { token, body: { password } })
    const code = codeAt(enroll.json['secret'] as string, now)
    await platform.call('POST', '/v1/platform/me/totp:confirm', { token, body: { code } })

    const reset = ['reset-password', '--email', 'ALAN@acme.example']
    expect((await run([...reset, '--password-stdin'], 'another password')).code).toBe(0)
    expect((await platform.call('GET', '/v1/platform/me', { token })).json.code).toBe('credential_invalid')
    const attempt = (chosen: string) => signIn(platform, 'alan@acme.example', { password: chosen })
    expect((await attempt(password)).json.code).toBe('sign_in_failed')
    expect((await attempt('another password')).json.code).toBe('totp_required')
    const lost = await run([...reset, '--remove-totp', '--generate'])
    const chosen = /nowhere else: (\S{24})\n/.exec(lost.output)![1]!
    const signedIn = await attempt(chosen)
    expect(signedIn.json).toMatchObject({ builder: { totpEnabled: false } })
    const { json } = await platform.call<{ items: { action: string; actor: unknown }[] }>(
      'GET',
      '/v1/platform/audit',
      signedIn.json,
    )
    const byTerminal = json.items.filter(({ actor }) => JSON.stringify(actor) === '{"kind":"system","id":"terminal"}')
    expect(byTerminal.map(({ action }) => action).sort()).toEqual([
      'account.created',
      'builder.password_reset',
      'builder.password_reset',
      'builder.totp_disabled',
    ])
  })

  test('what it cannot do it says in a sentence, and changes nothing', async () => {
    const create = (email: string, ...more: string[]) =>
      run(['create', '--email', email, '--name', 'N', ...more], 'short')
    expect(await create('new@acme.example', '--password-stdin')).toEqual({
      code: 1,
      output: expect.stringMatching(/^password: .*10/),
    })
    expect((await create('new@acme.example')).output).toContain('There is no terminal to ask for the password')
    expect((await create('nowhere', '--generate')).output).toMatch(/^--email: /)
    expect((await create('new@acme.example', '--generate', '--password-stdin')).output).toContain('exclude each other')
    expect((await run(['reset-password', '--email', 'new@acme.example', '--generate'])).output).toBe(
      'Nobody here has the address new@acme.example. `list` shows who is there.\n',
    )
    for (const args of [[], ['remove'], ['list', 'all'], ['list', '--nothing'], ['create', '--email', 'a@b.example']]) {
      const { code, output } = await run(args)
      expect([code, output]).toEqual([1, expect.stringContaining('Usage: npm run account')])
    }
    expect((await run(['list'])).output).not.toContain('new@acme.example')
  })
})
