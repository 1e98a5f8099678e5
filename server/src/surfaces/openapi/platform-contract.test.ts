import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lintProblems, unexplained, violations } from '../../../test/contract-checks.ts'
import { type Platform, startPlatform, type TestBuilder } from '../../../test/support/platform.ts'
import { type Shown, shownIn } from '../../../test/support/shown-requests.ts'
import { builderRoles, scopesOfRole } from '../../kernel/scopes.ts'
import { platformRegistry, visitorRegistry } from '../../operations.ts'
import { areaDescriptions } from './areas.ts'

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.stop())

const address = '/v1/platform/openapi.json'
const contractOf = async ({ token }: Pick<TestBuilder, 'token'>) => {
  const answer = await platform.call('GET', address, { token })
  expect(answer.status).toBe(200)
  return answer
}

describe.each(builderRoles)('the contract of the role %s', (role) => {
  test('is valid OpenAPI, clean for a linter, and explains everything that it shows', async () => {
    const { json, text } = await contractOf(await platform.newAccount(role))
    expect(json).toMatchObject({
      openapi: '3.1.1',
      info: { title: 'Portico platform', version: '1.0.0-developer-platform' },
    })
    expect(await violations(json)).toEqual([])
    expect(await lintProblems(text)).toEqual([])
    expect(unexplained(json)).toEqual([])
  })

  test('holds what needs no credential, and what the role could ever invoke', async () => {
    const { json } = await contractOf(await platform.newAccount(role))
    const granted = new Set<string | null>([null, ...scopesOfRole[role]])
    const open = visitorRegistry.operations.map(({ id }) => id)
    const own = platformRegistry.operations.filter(({ scope }) => granted.has(scope)).map(({ id }) => id)
    const shown = shownIn(json)
    expect([...shown.keys()].sort()).toEqual([...open, ...own].sort())
    for (const id of open) expect(shown.get(id)!.security).toEqual([])
    for (const id of own) expect(shown.get(id)!.security).toEqual(['BuilderSession'])
    const { securitySchemes } = json['components'] as { securitySchemes: object }
    expect(Object.keys(securitySchemes)).toEqual(['BuilderSession'])
  })

  test('shows requests that are answered as it says, whatever they come to', async () => {
    const member = await platform.newAccount(role)
    const shown = shownIn((await contractOf(member)).json)
    for (const one of shown.values()) {
      // A fresh session for each: some requests end the one that they are sent with.
      const token = one.security.length > 0 ? { token: await platform.newSession(member) } : {}
      const answer = await platform.call(one.method, one.address, {
        ...token,
        ...(one.body !== undefined && { body: one.body }),
      })
      expectDocumented(one, answer.status, answer.json.code, answer.text)
    }
  })
})

/** A documented example is never refused for its form. */
function expectDocumented({ id, refusals }: Shown, status: number, code: string | undefined, text: string): void {
  const context = `${id}: ${status} ${text}`
  expect(Object.keys(refusals), context).toContain(String(status))
  if (status < 400) return
  expect(refusals[status], context).toContain(code)
  expect(['validation_failed', 'unknown_field', 'invalid_json'], context).not.toContain(code)
}

test('the fingerprint is that of the bytes; who holds it is told that nothing changed', async () => {
  const owner = await platform.newAccount()
  const { text, headers } = await contractOf(owner)
  const sha256 = createHash('sha256').update(text).digest('hex')
  expect(headers).toMatchObject({
    'x-service-contract-sha256': sha256,
    etag: `"${sha256}"`,
    'cache-control': 'private, no-store',
  })
  const again = await platform.call('GET', address, {
    token: owner.token,
    headers: { 'if-none-match': `"${sha256}"` },
  })
  expect([again.status, again.text]).toEqual([304, ''])
})

test('every account and every process reads the same document, and nothing of an account stands in it', async () => {
  const [one, other] = [await platform.newAccount('developer'), await platform.newAccount('developer')]
  const { text } = await contractOf(one)
  expect((await contractOf(other)).text).toBe(text)
  const elsewhere = await (await platform.startAnother()).call('GET', address, { token: one.token })
  expect(elsewhere.text).toBe(text)
  for (const own of [one.accountId, one.builderId, one.email]) expect(text).not.toContain(own)
})

test('every resource family is described', () => {
  const areas = [...visitorRegistry.operations, ...platformRegistry.operations].map(({ area }) => area)
  expect(areas.filter((area) => !areaDescriptions[area])).toEqual([])
})
