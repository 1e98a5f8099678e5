import sql from 'sql-template-tag'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isUuid } from '../src/kernel/ids.ts'
import type { Answer } from './support/http-client.ts'
import { type Platform, startPlatform } from './support/platform.ts'
import {
  type Account,
  type GoodRequest,
  isOpen,
  openAccount,
  type PlatformOperation,
  password,
  platformOperations,
  send,
} from './support/platform-account.ts'
import { platformRequests } from './support/platform-requests.ts'

/**
 * Every change of `/v1/platform` leaves its trace in the audit log, generated from the registries: an operation that may
 * write is covered by being in one of them. It needs a line in `platformRequests`, and fails here by name without it.
 */
const untold: Readonly<Record<string, string>> = {
  developerPlatformPasswordResetsCreate: 'changes nothing but mail, and belongs to a person, not to an account',
}
const writing = platformOperations.filter(
  ({ id, transaction, method }) => transaction !== 'read' && method !== 'GET' && !Object.hasOwn(untold, id),
)

let platform: Platform
let account: Account

beforeAll(async () => {
  platform = await startPlatform()
  account = await openAccount(platform, 'audited')
})
afterAll(() => platform.stop())

interface Entry {
  readonly accountId: string
  readonly actorKind: string
  readonly actorId: string
  readonly action: string
  readonly targetType: string
  readonly targetId: string
  readonly saasAppId: string | null
  readonly organizationId: string | null
  readonly before: object | null
  readonly after: object | null
}

/** What the request left, in whatever account. */
function entriesOf({ correlationId }: Answer): Promise<Entry[]> {
  return platform.db.database.as('portico_owner', (tx) =>
    tx.rows<Entry>(sql`SELECT account_id AS "accountId", actor_kind AS "actorKind", actor_id AS "actorId", action,
        target_type AS "targetType", target_id AS "targetId", app_id AS "saasAppId",
        target_organization_id AS "organizationId", before, after
      FROM portico.audit_entry WHERE correlation_id = ${correlationId} ORDER BY entry_id`),
  )
}

async function goodRequest({ id }: PlatformOperation): Promise<GoodRequest> {
  const request = platformRequests[id]
  if (!request) throw new Error(`${id} has no good request in test/support/platform-requests.ts.`)
  return request(account)
}

/** Texts of the request and the answer that open something, or could: they must be in no entry. */
function secretsIn(value: unknown, name = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => secretsIn(item, name))
  if (typeof value === 'object' && value !== null) {
    return Object.entries(value).flatMap(([key, inner]) => secretsIn(inner, key))
  }
  const isSecret = typeof value === 'string' && (/token$|password|secret|code/i.test(name) || value.startsWith('ptc_'))
  return isSecret && value.length >= 6 ? [value] : []
}

test('what leaves no entry is an operation, with a reason', () => {
  const ids = platformOperations.map(({ id }) => id)
  for (const [id, reason] of Object.entries(untold)) expect([ids.includes(id), reason !== '']).toEqual([true, true])
  expect(writing.length).toBeGreaterThan(10)
})

describe.each(writing.map((operation) => [operation.id, operation] as const))('%s', (_, operation) => {
  test('leaves an entry that says who did what to what', async () => {
    const good = await goodRequest(operation)
    const answer = await send(account, operation, good)
    expect(answer.status, answer.text).toBeLessThan(300)
    const entries = await entriesOf(answer)
    expect(entries.map(({ action }) => action)).not.toEqual([])
    const { saasAppId, organizationId } = good.params ?? {}
    for (const entry of entries) {
      const { accountId, actorKind, actorId, action, targetType, targetId } = entry
      expect(accountId).toBe(account.accountId)
      expect(isOpen(operation) ? ['visitor', 'builder'] : ['builder']).toContain(actorKind)
      if (actorKind === 'builder') expect(isUuid(actorId)).toBe(true)
      expect([action, targetType]).toEqual([
        expect.stringMatching(/^[a-z]+([_-][a-z]+)*(\.[a-z]+([_-][a-z]+)*)+$/),
        expect.stringMatching(/^[a-z]/),
      ])
      expect(targetId).not.toBe('')
      if (saasAppId !== undefined) expect(entry.saasAppId).toBe(saasAppId)
      if (organizationId !== undefined) expect(entry.organizationId).toBe(organizationId)
    }
    if (!isOpen(operation) && good.token === undefined) {
      expect(new Set(entries.map(({ actorId }) => actorId))).toEqual(new Set([account.builderId]))
    }
    const targets = entries.map(({ targetId }) => targetId)
    const own = /\{(\w+Id)\}(:\w+)?$/.exec(operation.path)?.[1]
    if (own !== undefined) expect(targets).toContain(good.params![own])
    expectNoSecrets(entries, good, answer)
  })

  test.runIf(operation.transaction === 'write')('leaves it once, however often the request is repeated', async () => {
    const good = await goodRequest(operation)
    const headers = { 'idempotency-key': `audit-${operation.id}` }
    const first = await send(account, operation, good, { headers })
    const again = await send(account, operation, good, { headers })
    expect([again.status, again.headers['idempotency-replayed']]).toEqual([first.status, 'true'])
    expect(await entriesOf(again)).toEqual([])
  })
})

function expectNoSecrets(entries: readonly Entry[], good: GoodRequest, answer: Answer): void {
  const told = JSON.stringify(entries)
  for (const secret of [password, ...secretsIn(good.body), ...secretsIn(answer.json)])
    expect(told).not.toContain(secret)
  expect(told).not.toMatch(/\$argon2|ptc_[a-z]+_[0-9A-Za-z]{12}_[0-9A-Za-z]/)
}

test('nothing else leaves an entry', async () => {
  for (const operation of platformOperations.filter((one) => !writing.includes(one))) {
    const answer = await send(account, operation, await goodRequest(operation))
    expect([operation.id, await entriesOf(answer)]).toEqual([operation.id, []])
  }
})
