import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isUuid, uuidv7 } from '../src/kernel/ids.ts'
import { accountRows } from './support/account-rows.ts'
import { type Platform, startPlatform } from './support/platform.ts'
import {
  type Account,
  type GoodRequest,
  isOpen,
  openAccount,
  type PlatformOperation,
  parametersOf,
  platformOperations,
  send,
} from './support/platform-account.ts'
import { goodRequest } from './support/platform-requests.ts'

/**
 * Two accounts that have everything alike: whatever an operation makes, both have made it. Then `a` asks for what is
 * `b`'s, by every name that the API has for it. It must be answered as for what never was, `b`'s rows must stay as they
 * are, and nothing that `a` is told, that is logged of it or that is sent for it may hold a word or an id of `b`'s.
 *
 * Generated from the registries of `/v1/platform`; the requests are those of `platformRequests`.
 */
const foreignWord = 'zqxforeign'

let platform: Platform
let a: Account
let b: Account
/** What `a` was told before `b` had anything. */
let toldBefore: readonly string[]
/** Everything of `b`'s that has a name or an id. */
let foreign: readonly string[]
/** How many mails had been sent when `b` had everything. */
let mailsBefore: number

const cases = platformOperations.map((operation) => [operation.id, operation] as const)
const withParameters = cases.filter(([, operation]) => parametersOf(operation).length > 0)
const isReading = ({ method }: PlatformOperation) => method === 'GET'

beforeAll(async () => {
  platform = await startPlatform()
  a = await openAccount(platform, 'zqxown')
  b = await openAccount(platform, foreignWord)
  await doEverything(a)
  // Some of what is asked about is made by the first question.
  await everythingToldTo(a)
  toldBefore = await everythingToldTo(a)
  await doEverything(b)
  await everythingToldTo(b)
  const own = idsToldTo(a)
  foreign = [foreignWord, ...[...idsToldTo(b)].filter((id) => !own.has(id))]
  mailsBefore = platform.mailbox.received.length
}, 120_000)
afterAll(() => platform.stop())

/** Every change that the API knows, once. */
async function doEverything(account: Account): Promise<void> {
  for (const operation of platformOperations.filter((one) => !isReading(one))) {
    const answer = await send(account, operation, await goodRequest(operation, account))
    expect(answer.status, `${operation.id} ${answer.text}`).toBeLessThan(300)
  }
}

/** Every answer to a question, pages and all, without what differs from one time to the next. */
async function everythingToldTo(account: Account): Promise<string[]> {
  const told: string[] = []
  for (const operation of platformOperations.filter(isReading)) {
    const good = await goodRequest(operation, account)
    const takesPages = Object.hasOwn(
      (operation.query as { properties?: object } | undefined)?.properties ?? {},
      'pageSize',
    )
    for (const query of takesPages ? ['pageSize=200', 'pageSize=1', good.query] : [good.query]) {
      const answer = await send(account, operation, query === undefined ? good : { ...good, query })
      expect(answer.status, `${operation.id} ${answer.text}`).toBe(200)
      told.push(`${operation.id} ${query}: ${withoutTimes(answer.text)}`)
    }
  }
  return told
}

/** Uses are noted a little later, figures are of the moment, and cursors are sealed anew each time. */
function withoutTimes(text: string): string {
  return text
    .replaceAll(/"(correlationId|nextCursor)":"[^"]+"/g, '"$1":"…"')
    .replaceAll(/"(last\w*At|measuredAt)":(null|"[^"]+")/g, '"$1":"…"')
}

/** Ids and keys that were shown to an account. */
function idsToldTo({ told }: Account): Set<string> {
  const texts = told.filter(({ answer }) => answer.status < 300).map(({ answer }) => answer.text)
  const ids = texts.flatMap((text) => text.match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? [])
  const keys = texts.flatMap((text) => [...text.matchAll(/"(?:keyId|sessionId)":"(\w+)"/g)].map(([, key]) => key!))
  return new Set([...ids, ...keys])
}

/** A value of the same form that nobody has. */
function nobodys(value: string): string {
  const isId: boolean = isUuid(value)
  if (isId) return uuidv7(Date.now())
  if (/^\d+$/.test(value)) return '2000000000'
  if (value.includes(foreignWord)) return value.replaceAll(foreignWord, 'qzxnobodys')
  return randomBytes(32).toString('hex').slice(0, value.length)
}

/** What was answered, without what the two questions do not share. */
async function answerTo(asker: Account, operation: PlatformOperation, good: GoodRequest, values: readonly string[]) {
  const { status, text, headers } = await send(asker, operation, good)
  const { date: _, 'x-correlation-id': __, 'content-length': ___, etag: ____, ...rest } = headers
  let shown = `${text} ${JSON.stringify(rest)}`
  for (const value of values) shown = shown.replaceAll(value, 'value').replaceAll(encodeURIComponent(value), 'value')
  return {
    status,
    shown: shown
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/gi, 'id')
      .replaceAll(/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, 'time')
      .replaceAll(/"revision":\d+/g, '"revision":"…"')
      .replaceAll(/portico-verification=[\w-]+/g, 'proof')
      // What a request makes is called differently each time.
      .replaceAll(new RegExp(`${asker.word}[ _-]\\w+?[ _-]\\d+`, 'g'), 'name'),
  }
}

/** Asks with what is `b`'s and with what never was; by `a` unless said otherwise. */
async function expectSameAnswer(
  operation: PlatformOperation,
  requestWith: (choose: (theirs: string) => string) => GoodRequest | Promise<GoodRequest>,
  asker = a,
) {
  const theirs: string[] = []
  const nobodysValues: string[] = []
  const asTheirs = await requestWith((value) => {
    theirs.push(value)
    return value
  })
  const asNobodys = await requestWith((value) => {
    const other = nobodys(value)
    nobodysValues.push(other)
    return other
  })
  const unknown = await answerTo(asker, operation, asNobodys, nobodysValues)
  expect(await answerTo(asker, operation, asTheirs, theirs), `${operation.id} ${theirs.join()}`).toEqual(unknown)
  return unknown
}

/** Strings in a body that name something, ids unless said otherwise, with where they stand. */
function namesIn(
  value: unknown,
  isName: (value: string) => boolean = isUuid,
  at: readonly (string | number)[] = [],
): { at: readonly (string | number)[]; name: string }[] {
  if (typeof value === 'string') return isName(value) ? [{ at, name: value }] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) => namesIn(inner, isName, [...at, key]))
}

function withName(value: unknown, at: readonly (string | number)[], name: string): unknown {
  const [key, ...rest] = at
  if (key === undefined) return name
  if (Array.isArray(value))
    return value.map((inner, index) => (String(index) === key ? withName(inner, rest, name) : inner))
  const object = value as Readonly<Record<string, unknown>>
  return { ...object, [key]: withName(object[key], rest, name) }
}

/** Everything that came back to `a`, but for what it had sent itself. */
function expectSilence(since: number): void {
  const heard = a.told.slice(since)
  expect(heard.length).toBeGreaterThan(0)
  for (const { sent, answer } of heard) {
    const all = `${JSON.stringify(answer.headers)} ${answer.text}`.toLowerCase()
    const found = foreign.filter((word) => !sent.includes(word) && all.includes(word.toLowerCase()))
    expect(found, `${sent} was answered ${all}`).toEqual([])
  }
}

test('b has everything, and its word stands in all of it that people name', async () => {
  const rows = await accountRows(platform.db, b.accountId)
  const named = ['account', 'account_invitation', 'application', 'builder', 'credential', 'entitlement', 'invitation']
  for (const table of [...named, 'location', 'model_draft', 'model_release', 'object_definition', 'organization']) {
    // Native objects are named by the service, in every application alike.
    const ofPeople = (rows[table] ?? ['nothing']).filter((row) => !row.includes('"kind": "native"'))
    expect([table, ofPeople.filter((row) => !row.includes(foreignWord))]).toEqual([table, []])
  }
  expect(Object.keys(rows)).toEqual(expect.arrayContaining(['audit_entry', 'builder_session', 'outbox']))
  expect(foreign.length).toBeGreaterThan(100)
})

test("what an account is told and what it counts does not change with another account's", async () => {
  const since = a.told.length
  expect(await everythingToldTo(a)).toEqual(toldBefore)
  expectSilence(since)
  expect(toldBefore.join()).toContain('zqxown')
})

describe.each(withParameters)('%s', (_, operation) => {
  test("answers another account's ids as ids of nothing, and changes nothing of it", async () => {
    const since = a.told.length
    const theirs = (await goodRequest(operation, b)).params ?? {}
    const before = await accountRows(platform.db, b.accountId)
    const parameters = parametersOf(operation)
    const mine = (await goodRequest(operation, a)).params ?? {}
    for (const all of [...parameters.map((name) => [name]), parameters]) {
      // Numbers and words that both accounts have name something of `a`'s own.
      const chosen = all.filter((name) => theirs[name] !== mine[name])
      // So does a key under which something is put.
      if (chosen.length === 0 || (operation.method === 'PUT' && !chosen.some((name) => isUuid(theirs[name])))) continue
      const unknown = await expectSameAnswer(operation, async (choose) => {
        const good = await goodRequest(operation, a)
        const foreignParams = chosen.map((name) => [name, choose(theirs[name]!)])
        return { ...good, params: { ...good.params, ...Object.fromEntries(foreignParams) } }
      })
      if (chosen.some((name) => isUuid(theirs[name]))) expect(unknown.status).toBe(404)
    }
    expect(await accountRows(platform.db, b.accountId)).toEqual(before)
    expectSilence(since)
  })
})

const withMore = platformOperations.filter(({ body, query }) => body || query)

test("another account's ids in bodies and queries are ids of nothing, and nothing of it changes", async () => {
  const since = a.told.length
  const theirs = new Map<PlatformOperation, GoodRequest>()
  for (const operation of withMore) theirs.set(operation, await goodRequest(operation, b))
  const before = await accountRows(platform.db, b.accountId)
  const asked = new Set<string>()
  for (const [operation, { body, query = '' }] of theirs) {
    for (const { at, name } of namesIn(body)) {
      asked.add(operation.id)
      await expectSameAnswer(operation, async (choose) => {
        const good = await goodRequest(operation, a)
        return { ...good, body: withName(good.body, at, choose(name)) }
      })
    }
    for (const [name, value] of [...new URLSearchParams(query)].filter(([, one]) => isUuid(one))) {
      asked.add(operation.id)
      await expectSameAnswer(operation, async (choose) => ({
        ...(await goodRequest(operation, a)),
        query: `${name}=${choose(value)}`,
      }))
    }
  }
  expect([...asked]).toEqual(expect.arrayContaining(['developerPlatformUsersCreate', 'developerPlatformAuditList']))
  expect(await accountRows(platform.db, b.accountId)).toEqual(before)
  expectSilence(since)
}, 60_000)

test('nobody is told whether an address is known to another account', async () => {
  const { users } = await knownTo(b)
  const asked = new Set<string>()
  let askers = 0
  for (const operation of withMore.filter((one) => !isOpen(one))) {
    const { body } = await goodRequest(operation, a)
    for (const { at } of namesIn(body, (value) => value.includes('@'))) {
      asked.add(operation.id)
      // An account of its own for each: what one request made must not stand in the way of the next.
      const asker = await openAccount(platform, `zqxasker${++askers}`)
      for (const address of [b.email, ...users]) {
        const requestWith = async (choose: (theirs: string) => string) => {
          const good = await goodRequest(operation, asker)
          return { ...good, body: withName(good.body, at, choose(address)) }
        }
        const unknown = await expectSameAnswer(operation, requestWith, asker)
        expect(unknown.status, operation.id).toBeLessThan(300)
      }
    }
  }
  expect([...asked]).toEqual(expect.arrayContaining(['developerPlatformTeamInvitationsCreate']))
}, 60_000)

/** Addresses of users in the organisations of an account. */
async function knownTo(account: Account) {
  const list = platformOperations.find(({ id }) => id === 'developerPlatformUsersList')!
  const { json } = await send(account, list, await goodRequest(list, account))
  return { users: (json['items'] as { email: string }[]).map(({ email }) => email).slice(0, 1) }
}

test('a key that both accounts send with a request guards nothing of the other', async () => {
  const headers = { 'idempotency-key': 'of-both' }
  for (const operation of platformOperations.filter((one) => one.id.endsWith('ApplicationsCreate'))) {
    for (const account of [a, b]) {
      const answer = await send(account, operation, await goodRequest(operation, account), { headers })
      expect([answer.status, answer.headers['idempotency-replayed']]).toEqual([201, undefined])
    }
  }
})

test("nothing of another account's is logged or mailed for what an account did", () => {
  const caused = new Set(a.told.map(({ answer }) => answer.correlationId))
  const named = (line: string) => line.match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? []
  const lines = platform.logLines.filter((line) => named(line).some((id) => caused.has(id)))
  expect(lines.filter((line) => line.includes(foreignWord))).toEqual([])
  const mails = platform.mailbox.received.slice(mailsBefore).filter((mail) => !mail.to.address.includes(foreignWord))
  expect(mails.filter((mail) => JSON.stringify(mail).includes(foreignWord))).toEqual([])
})
