import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { urlOf } from '../test/support/database.ts'
import { type Platform, startPlatform, type TestBuilder } from '../test/support/platform.ts'

/** The command as an operator runs it: a process of its own beside a running service. */
let platform: Platform
let builder: TestBuilder

beforeAll(async () => {
  platform = await startPlatform()
  builder = await platform.newAccount()
})
afterAll(() => platform.stop())

async function run(...args: string[]): Promise<{ code: number; output: string }> {
  const command = [join(import.meta.dirname, 'entitlements-command.ts'), ...args]
  const env = { PATH: process.env['PATH'], DATABASE_URL: urlOf(platform.db.connection) }
  return promisify(execFile)(process.execPath, command, { env }).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }) => ({ code, output: stdout + stderr }),
  )
}

async function get(path: string): Promise<readonly Record<string, unknown>[]> {
  const answer = await platform.call<{ items: Record<string, unknown>[] }>('GET', `/v1/platform/${path}`, builder)
  return answer.json.items
}

test('an account is entitled to a listing, for a time, and the audit log says who did it', async () => {
  const { accountId } = builder
  const order = ['grant', '--account', accountId, '--listing', 'invoice-reader', '--name', 'Invoice reader']
  expect(await run(...order)).toEqual({ code: 0, output: `${accountId} is entitled to invoice-reader.\n` })
  expect(await get('marketplace/entitlements')).toMatchObject([
    { listingKey: 'invoice-reader', listingName: 'Invoice reader', state: 'active', expiresAt: null },
  ])
  const until = '2026-01-01T00:00:00.000Z'
  expect((await run(...order, '--expires', '2026-01-01T00:00:00Z')).output).toContain(`until ${until}`)
  const entitlements = await get('marketplace/entitlements')
  expect(entitlements).toMatchObject([{ listingKey: 'invoice-reader', state: 'expired', expiresAt: until }])
  expect((await run('list')).output).toContain(
    `${accountId}  Test account\n  invoice-reader (Invoice reader), until ${until}\n`,
  )
  const { entitlementId } = entitlements[0]!
  expect(await get('audit?action=entitlement.granted')).toMatchObject([
    {
      actor: { kind: 'system', id: 'terminal' },
      target: { type: 'entitlement', id: entitlementId },
      before: { entitlementId, expiresAt: null },
      after: { entitlementId, expiresAt: until },
    },
    { before: null, after: { entitlementId } },
  ])
})

test('what it cannot do it says in a sentence', async () => {
  const unknown = '0199a1b2-0000-7000-8000-000000000001'
  const grant = (account: string, listing: string, ...more: string[]) =>
    run('grant', '--account', account, '--listing', listing, '--name', 'Name', ...more)
  expect(await grant(unknown, 'forms')).toEqual({
    code: 1,
    output: `There is no account ${unknown}. \`list\` shows those that there are.\n`,
  })
  expect((await grant('acme', 'forms')).output).toContain('--account takes the id of an account')
  expect((await grant(unknown, 'Forms')).output).toContain('--listing takes a key')
  expect((await grant(unknown, 'forms', '--expires', 'soon')).output).toContain('--expires takes a moment')
  for (const args of [[], ['grant'], ['take'], ['list', '--nothing']]) {
    const { code, output } = await run(...args)
    expect([code, output]).toEqual([1, expect.stringContaining('Usage: npm run entitlements')])
  }
})
