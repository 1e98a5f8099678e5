import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Platform, startPlatform } from '../../../test/support/platform.ts'
import { fail } from '../../kernel/errors.ts'
import { createFailedCredentials, failedCredentialsMax } from './failed-credentials.ts'
import { makeToken } from './tokens.ts'

const address = '192.0.2.7'
const good = async () => 'somebody'
const invented = async () => {
  throw fail('credential_invalid')
}
const code = (asked: Promise<unknown>) =>
  asked.then(
    (found) => found,
    (error) => error.code,
  )

async function spend(guard: ReturnType<typeof createFailedCredentials>['guard'], from = address): Promise<void> {
  for (let count = 0; count < failedCredentialsMax; count++) {
    expect(await code(guard(makeToken('live'), from, invented))).toBe('credential_invalid')
  }
}

test('invented tokens are looked up three hundred times a minute for each network, and no more', async () => {
  const { guard } = createFailedCredentials({ scale: 1 })
  await spend(guard)
  let looked = false
  const refused = guard(makeToken('live'), address, async () => {
    looked = true
  })
  await expect(refused).rejects.toMatchObject({ code: 'rate_limited', retryAfterSeconds: expect.any(Number) })
  expect(looked).toBe(false)
  expect(await code(guard(makeToken('live'), '192.0.2.8', good))).toBe('somebody')
  await spend(guard, '2001:db8:1:2::1')
  expect(await code(guard(makeToken('live'), '2001:db8:1:2:ffff::9', good))).toBe('rate_limited')
})

test('who has shown a good credential passes, until it holds no more; its key alone is none', async () => {
  const { guard } = createFailedCredentials({ scale: 1 })
  const known = makeToken('bld')
  expect(await code(guard(known, address, good))).toBe('somebody')
  await spend(guard)
  expect(await code(guard(known, address, good))).toBe('somebody')
  expect(await code(guard(makeToken('bld', known.keyId), address, good))).toBe('rate_limited')
  expect(await code(guard(makeToken('bld', known.keyId), '192.0.2.8', invented))).toBe('credential_invalid')
  expect(await code(guard(known, address, good))).toBe('somebody')
  expect(await code(guard(known, address, invented))).toBe('credential_invalid')
  expect(await code(guard(known, address, good))).toBe('rate_limited')
})

test('good credentials and faults of the database take nothing from the budget', async () => {
  const { guard } = createFailedCredentials({ scale: 1 / failedCredentialsMax })
  const fault = () => Promise.reject(fail('database_unavailable'))
  for (let count = 0; count < 3; count++) {
    expect(await code(guard(makeToken('live'), address, good))).toBe('somebody')
    expect(await code(guard(makeToken('live'), address, fault))).toBe('database_unavailable')
  }
  expect(await code(guard(makeToken('live'), address, invented))).toBe('credential_invalid')
  expect(await code(guard(makeToken('live'), address, good))).toBe('rate_limited')
})

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.stop())

test('the doors of the API keep to it', async () => {
  const { call } = await platform.startAnother({ rateLimitScale: 1 / failedCredentialsMax })
  const { token } = await platform.newAccount()
  const me = (shown: string) => call('GET', '/v1/platform/me', { token: shown })
  const context = (shown: string) => call('GET', `/v1/apps/${appId}/auth/context`, { token: shown })
  const appId = '0199a1b2-0000-7000-8000-00000000000a'
  expect((await me(token)).status).toBe(200)
  expect((await context(makeToken('live').text)).status).toBe(401)
  for (const answer of [await me(makeToken('bld').text), await context(makeToken('live').text)]) {
    expect([answer.status, answer.json.code]).toEqual([429, 'rate_limited'])
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
  }
  expect((await me(token)).status).toBe(200)
  // Malformed ones cost no look-up, and are told what they are.
  expect((await me('nonsense')).status).toBe(401)
})
