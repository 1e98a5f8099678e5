import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAccount } from '../../../test/support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { openTestSecrets } from '../../../test/support/secrets.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import { createMailQueue, type MailQueue, type NewMail } from './queue.ts'
import { removeOldMail } from './store.ts'

let db: TestDatabase
/** Two processes: they share nothing but the database. */
let queues: readonly MailQueue[]
let organizationId: string
let accountId: string
let otherAccountId: string
let now = Date.UTC(2026, 10, 20)
const minuteMs = 60_000
const hourMs = 60 * minuteMs

beforeAll(async () => {
  db = await createTestDatabase()
  const secrets = await openTestSecrets(db.database)
  queues = [0, 1].map(() => createMailQueue({ secrets, wake: () => {} }))
  accountId = (await createAccount(db.database)).accountId
  otherAccountId = (await createAccount(db.database)).accountId
  organizationId = (await createTenant(db.database, { accountId, organizations: { one: {} } })).organizations.one
    .organizationId
})
afterAll(() => db.drop())

const link = 'https://northwind.portico.example/somewhere#token=secret'
const texts = { organizationName: 'Northwind', inviterName: 'Ann', link, expiresAt: '2030-01-01T00:00:00.000Z' }
const to = (address: string) => ({ to: { name: '', address } })
const tenantInvitation = (address: string): NewMail => ({
  ...{ organizationId, ...to(address), kind: 'tenant_invitation', variables: texts },
})
const builderInvitation = (address: string, by = accountId): NewMail => ({
  ...{ accountId: by, ...to(address), kind: 'builder_invitation' },
  variables: { ...texts, accountName: 'Northwind', role: 'developer' },
})
const reset = (address: string, by = accountId): NewMail => ({
  ...{ accountId: by, ...to(address), kind: 'builder_password_reset', variables: texts },
})
const notice = (address: string): NewMail => ({
  ...{ accountId, ...to(address), kind: 'password_changed' },
  variables: { organizationName: null, changedAt: '2026-11-20T08:26:11.123Z' },
})

/** `sent`, `left out`, or after how many seconds there is room again. */
async function send(mail: NewMail, queue = queues[0]!) {
  try {
    const id = await db.database.as('portico_app', (tx) => queue.enqueue({ tx, now, afterCommit: () => {} }, mail))
    return id === undefined ? 'left out' : 'sent'
  } catch (error) {
    const { code, retryAfterSeconds } = error as { code: string; retryAfterSeconds: number }
    if (code !== 'mail_limit_reached') throw error
    return retryAfterSeconds
  }
}
const times = async (count: number, mail: NewMail) => {
  const outcomes: unknown[] = []
  for (let n = 0; n < count; n++) outcomes.push(await send(mail, queues[n % 2]))
  return outcomes
}
const sent = (count: number) => Array(count).fill('sent')

test('somebody is invited five times an hour and twenty times a day, whoever invites', async () => {
  const address = 'stranger@example.com'
  for (let hour = 0; hour < 4; hour++) {
    const [first, ...more] = [tenantInvitation(address), builderInvitation(address.toUpperCase())]
    expect(await times(2, first!)).toEqual(sent(2))
    now += minuteMs
    expect(await times(2, more[0]!)).toEqual(sent(2))
    expect(await send(builderInvitation(address, otherAccountId))).toBe('sent')
    now += 9 * minuteMs
    if (hour < 3) {
      // When the first of the five is an hour old.
      expect(await send(builderInvitation(address, otherAccountId))).toBe(50 * 60)
      now += hourMs
    }
  }
  now += hourMs
  const aDayAfterTheFirst = 24 * 3600 - (3 * 70 + 10 + 60) * 60
  expect(await send(tenantInvitation(address))).toBe(aDayAfterTheFirst)
  expect(await send(tenantInvitation('somebody.else@example.com'))).toBe('sent')
  now += aDayAfterTheFirst * 1000
  expect(await send(tenantInvitation(address))).toBe('sent')
})

test('of many invitations at once no more go out than one after the other', async () => {
  const all = Array.from({ length: 16 }, (_, n) => send(builderInvitation('crowd@example.com'), queues[n % 2]))
  expect((await Promise.all(all)).filter((outcome) => outcome === 'sent')).toHaveLength(5)
})

test('who is invited too often still gets links for a password, five an hour from each account', async () => {
  const address = 'forgetful@example.com'
  expect(await times(6, builderInvitation(address))).toEqual([...sent(5), 3600])
  expect(await times(6, reset(address))).toEqual([...sent(5), 3600])
  expect(await send(reset(address, otherAccountId))).toBe('sent')
})

test('notices beyond theirs are left out: what they tell of is done', async () => {
  expect(await times(6, notice('busy@example.com'))).toEqual([...sent(5), 'left out'])
})

test('an account invites five hundred times an hour, with all of its organizations', async () => {
  now += hourMs
  const addresses = Array.from({ length: 500 }, (_, n) => `guest-${n}@example.com`)
  for (let n = 0; n < 500; n += 10) {
    const mails = addresses.slice(n, n + 10).map((one, i) => (i % 2 ? tenantInvitation(one) : builderInvitation(one)))
    expect(await Promise.all(mails.map((mail) => send(mail)))).toEqual(sent(10))
  }
  expect(await send(tenantInvitation('one.more@example.com'))).toBe(3600)
  expect(await send(builderInvitation('one.more@example.com'))).toBe(3600)
  expect(await send(builderInvitation('one.more@example.com', otherAccountId))).toBe('sent')
  expect(await send(reset('one.more@example.com'))).toBe('sent')
})

test('what is counted names nobody, and is gone after a day', async () => {
  const counted = () =>
    db.database.as('portico_system', (tx) =>
      tx.rows({ text: `SELECT c::text, encode(counter_key, 'escape') FROM portico.mail_count c`, values: [] }),
    )
  expect(JSON.stringify(await counted())).not.toContain('example.com')
  now += 24 * hourMs
  await send(tenantInvitation('newest@example.com'))
  await removeOldMail(db.database, now + 1)
  expect(await counted()).toHaveLength(2)
})
