import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { credentialKinds } from '../src/kernel/caller.ts'
import { builderRoles, scopesOfRole } from '../src/kernel/scopes.ts'
import { validatorOf } from '../src/kernel/validation.ts'
import { makeToken } from '../src/shared/identity/tokens.ts'
import { asAdministrator } from './support/administrator.ts'
import {
  brokenBodies,
  brokenIdempotencyKeys,
  brokenJson,
  brokenParameters,
  brokenQueries,
  brokenRevisions,
} from './support/broken-input.ts'
import { authorizationsThatNobodyIssued } from './support/forged-tokens.ts'
import type { HttpClient } from './support/http-client.ts'
import { type Platform, startPlatform } from './support/platform.ts'
import {
  type Account,
  isOpen,
  openAccount,
  type PlatformOperation,
  parametersOf,
  pathOf,
  platformOperations,
  send,
} from './support/platform-account.ts'
import { goodRequest, platformRequests } from './support/platform-requests.ts'
import { expectNamed, expectRefusal } from './support/refusals.ts'

/**
 * What the contract promises of every operation of `/v1/platform`, generated from its registries. A new operation is
 * covered by being in one of them; it needs a line in `platformRequests`, and fails without it.
 */
let platform: Platform
/** Grants one request of each class in a minute. */
let limited: HttpClient
let account: Account
let revoked: string
let expired: string

beforeAll(async () => {
  platform = await startPlatform()
  limited = await platform.startAnother({ rateLimitScale: 1e-9 })
  account = await openAccount(platform, 'zqxown')
  expired = await platform.newSession(account, new Date(0))
  revoked = await platform.newSession(account)
  await platform.db.database.as('portico_owner', (tx) =>
    tx.rows({
      text: 'UPDATE portico.builder_session SET revoked_at = now() WHERE key_id = $1',
      values: [revoked.split('_')[2]!],
    }),
  )
})
afterAll(() => platform.stop())

test('every operation has a good request', () => {
  expect(Object.keys(platformRequests).sort()).toEqual(platformOperations.map(({ id }) => id).sort())
})

const cases = platformOperations.map((operation) => [operation.id, operation] as const)

describe.each(cases)('%s', (_, operation) => {
  test('answers a good request as it declares', async () => {
    const good = await goodRequest(operation, account)
    expect(Object.keys(good.params ?? {}).sort()).toEqual(parametersOf(operation).sort())
    const { status: expected = 200 } = good
    const answer = await send(account, operation, good)
    expect(answer.status, answer.text).toBe(expected)
    // Secrets and what is about people lie in nobody's cache.
    expect(answer.headers['cache-control']).toMatch(/\bno-store\b/)
    if (expected !== 204) expect(validatorOf(operation.responses[expected]!).Errors(answer.json)).toEqual([])
    for (const name of Object.keys(operation.responseHeaders ?? {})) {
      const isOfCreation = name === 'Location' && expected !== 201
      if (!isOfCreation) expect(answer.headers[name.toLowerCase()], name).toBeTruthy()
    }
    if (operation.method !== 'GET') return
    const head = await account.ask('HEAD', pathOf(operation, good.params), { token: good.token ?? account.token })
    expect([head.status, head.text]).toEqual([expected, ''])
    expect(head.headers['content-type']).toBe(answer.headers['content-type'])
    const { etag } = answer.headers
    if (etag === undefined) return
    const again = await send(account, operation, good, { headers: { 'if-none-match': etag } })
    expect([again.status, again.text]).toEqual([304, ''])
  })

  test.runIf(isOpen(operation))('looks at no credential', async () => {
    for (const authorization of ['Bearer', 'Bearer nonsense', `Bearer ${expired}`]) {
      const good = await goodRequest(operation, account)
      const answer = await send(account, operation, good, { headers: { authorization } })
      expect(answer.status, answer.text).toBe(good.status ?? 200)
    }
  })

  test.skipIf(isOpen(operation))('asks for a session, and for one that is still good', async () => {
    const path = pathOf(operation, (await goodRequest(operation, account)).params)
    const { token } = account
    for (const [authorization, code] of [
      [undefined, 'credential_missing'],
      ...authorizationsThatNobodyIssued(token, ['bld']).map((text) => [text, 'credential_invalid'] as const),
      [`Bearer ${revoked}`, 'credential_invalid'],
      [`Bearer ${expired}`, 'credential_expired'],
    ] as const) {
      const answer = await account.ask(operation.method, path, { headers: { authorization } })
      expectRefusal(operation, answer, code, authorization)
      expect(answer.headers['www-authenticate']).toMatch(/^Bearer/)
    }
    const authorization = [`Bearer ${token}`, `Bearer ${token}`]
    const twice = await account.ask(operation.method, path, { headers: { authorization } })
    expectRefusal(operation, twice, 'credential_invalid')
    const inQuery = await account.ask(operation.method, `${path}?access_token=${token}&token=${token}`)
    expectRefusal(operation, inQuery, 'credential_missing')
  })

  test.skipIf(isOpen(operation))('refuses credentials of every other kind', async () => {
    const good = await goodRequest(operation, account)
    for (const kind of credentialKinds.filter((one) => one !== 'bld')) {
      const { text: token } = makeToken(kind)
      expectRefusal(operation, await send(account, operation, good, { token }), 'credential_kind_not_allowed', kind)
    }
  })

  test.skipIf(isOpen(operation)).each(builderRoles)(
    'answers members of the role %s as its scope says',
    async (role) => {
      const { scope } = operation
      const member = await account.as(role)
      const good = await goodRequest(operation, member)
      const answer = await send(member, operation, good)
      if (scope !== null && !scopesOfRole[role].some((one) => one === scope)) {
        expectRefusal(operation, answer, 'scope_missing')
        expect(answer.json.error).toMatch(new RegExp(`${scope}\\. These roles have it: owner`))
        expect(answer.headers['www-authenticate']).toBe(`Bearer error="insufficient_scope", scope="${scope}"`)
      } else {
        expect(answer.status, answer.text).toBe(good.status ?? 200)
      }
    },
  )

  test('refuses what is beyond its budget, before it looks at the request', async () => {
    const good = await goodRequest(operation, account)
    const ask = () => send(account, operation, good, { query: 'surprise=1', raw: '{"broken', client: limited })
    await ask()
    const answer = await ask()
    expectRefusal(operation, answer, 'rate_limited')
    expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/)
    expect(answer.headers['ratelimit']).toBe(`"${operation.rateClass}";r=0;t=${answer.headers['retry-after']}`)
    expect(answer.headers['ratelimit-policy']).toBe(`"${operation.rateClass}";q=1;w=60`)
  })

  test('names what is wrong with the path, the query and the headers', async () => {
    const good = await goodRequest(operation, account)
    for (const [name, value] of Object.entries(good.params ?? {})) {
      for (const broken of brokenParameters(operation.params, name, value)) {
        expectNamed(await send(account, operation, good, { params: { [name]: broken } }), name, `${name}=${broken}`)
      }
    }
    for (const { query, field } of brokenQueries(operation.query)) {
      const answer = await send(account, operation, good, { query })
      expectNamed(answer, field, query)
      expectRefusal(operation, answer, answer.json.code!)
    }
    for (const value of operation.ifMatch ? brokenRevisions : []) {
      expectNamed(await send(account, operation, good, { headers: { 'if-match': value } }), 'If-Match', value)
    }
    for (const key of operation.transaction === 'write' ? brokenIdempotencyKeys : []) {
      const answer = await send(account, operation, good, { headers: { 'idempotency-key': key } })
      expectNamed(answer, 'Idempotency-Key', key)
      expectRefusal(operation, answer, 'idempotency_key_invalid')
    }
  })

  const { body: bodySchema } = operation
  test.runIf(bodySchema)('names what is wrong with the body', async () => {
    const good = await goodRequest(operation, account)
    for (const { label, value, field } of brokenBodies(bodySchema!, good.body)) {
      const answer = await send(account, operation, good, { body: value })
      expectNamed(answer, field, label)
      expectRefusal(operation, answer, answer.json.code!, label)
    }
  })

  test.runIf(bodySchema)('refuses bodies that are no JSON of bounded size', async () => {
    const good = await goodRequest(operation, account)
    for (const [change, code] of brokenJson(operation)) {
      const answer = await send(account, operation, good, change)
      expectRefusal(operation, answer, code, String(change.raw).slice(0, 30))
    }
  })

  test.runIf(operation.transaction === 'write')('repeats its answer for an idempotency key', async () => {
    const good = await goodRequest(operation, account)
    const headers = { 'idempotency-key': `repeated-${operation.id}` }
    const first = await send(account, operation, good, { headers })
    const second = await send(account, operation, good, { headers })
    expect([second.status, second.text]).toEqual([first.status, first.text])
    expect([first.status, first.headers['idempotency-replayed']]).toEqual([good.status ?? 200, undefined])
    expect(second.headers['idempotency-replayed']).toBe('true')
    const probe = platformOperations.find(({ id, transaction }) => transaction === 'write' && id !== operation.id)!
    const reused = await send(
      account,
      probe,
      { ...(await goodRequest(probe, account)), token: good.token ?? account.token },
      { headers },
    )
    expectRefusal(probe, reused, 'idempotency_key_reused')
    await expectKept(headers['idempotency-key'], operation, first.text)
  })
})

/** An answer with a secret in it is kept sealed: the secret stands in no column of no table. */
async function expectKept(key: string, operation: PlatformOperation, text: string): Promise<void> {
  const { rows } = await asAdministrator(platform.db.connection, (admin) =>
    admin.query<{ payload: string; sealed: Buffer | null }>(
      'SELECT payload, sealed FROM portico.idempotency_key WHERE key = $1',
      [key],
    ),
  )
  expect(rows).toHaveLength(1)
  expect(rows[0]!.payload).toBe(operation.confidential ? '' : text)
  expect(rows[0]!.sealed !== null).toBe(operation.confidential === true)
  // Whatever shows a token is confidential, whether the operation says so or not.
  if (!operation.confidential) expect(text).not.toMatch(/ptc_[a-z]+_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}/)
}
