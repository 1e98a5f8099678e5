import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { createAccount } from '../../../test/support/accounts.ts'
import { createTestDatabase, type TestDatabase } from '../../../test/support/database.ts'
import { createTenant } from '../../../test/support/tenants.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Tx } from '../../kernel/transaction.ts'
import { keysOfEnvironment } from '../../ports/key-management/environment.ts'
import type { Mailer } from '../../ports/mail/port.ts'
import { createSmtpMailer } from '../../ports/mail/smtp.ts'
import { type MailServer, readMail, startMailServer } from '../../ports/mail/testing.ts'
import { createLog } from '../log.ts'
import { openSecrets, type Secrets } from '../secrets.ts'
import { createMailQueue, type NewMail } from './queue.ts'
import { removeOldMail } from './store.ts'
import { attemptsMax, createMailWorker, leaseMs, type MailWorker } from './worker.ts'

const from = { name: 'Portico', address: 'no-reply@portico.example' }
const token = 'a-one-time-token-that-nobody-else-may-read'
const minuteMs = 60_000
const dayMs = 24 * 60 * minuteMs

let test: TestDatabase
let admin: pg.Client
let secrets: Secrets
let northwind: string
let contoso: string
let accountId: string
let server: MailServer
let mailer: Mailer
let now = Date.UTC(2026, 10, 20)
const clock: Clock = { now: () => now }
const logLines: string[] = []
const log = createLog({ level: 'trace', pretty: false, destination: { write: (line) => void logLines.push(line) } })
const workers: MailWorker[] = []

beforeAll(async () => {
  test = await createTestDatabase()
  admin = new pg.Client(test.connection)
  await admin.connect()
  const masterKeys = { current: randomBytes(32), previous: [] }
  secrets = await openSecrets({ database: test.database, keyManagement: [keysOfEnvironment(masterKeys)], clock, log })
  const tenant = await createTenant(test.database, { organizations: { northwind: {}, contoso: {} } })
  northwind = tenant.organizations.northwind.organizationId
  contoso = tenant.organizations.contoso.organizationId
  accountId = (await createAccount(test.database)).accountId
})

afterAll(async () => {
  await admin.end()
  await test.drop()
})

beforeEach(async () => {
  server = await startMailServer()
  mailer = createSmtpMailer({ url: server.url, from })
  logLines.length = 0
})

afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.close()
  await mailer.close()
  await server.close()
  await admin.query('TRUNCATE portico.mail_message, portico.mail_count')
})

function startWorker(sends: Mailer = mailer): MailWorker {
  const worker = createMailWorker({ database: test.database, mailer: sends, secrets, clock, log })
  workers.push(worker)
  return worker
}

const variables = {
  organizationName: 'Northwind',
  inviterName: 'Ann Example',
  link: `https://northwind.portico.example/invitations/accept?token=${token}`,
  expiresAt: '2026-11-27T08:26:11.123Z',
}
const invitation = (address = 'bob@example.com', expiresAt = variables.expiresAt): NewMail => ({
  organizationId: northwind,
  to: { name: 'Bob', address },
  kind: 'tenant_invitation',
  variables: { ...variables, expiresAt },
})

const passwordReset = (address: string): NewMail => ({
  organizationId: northwind,
  to: { name: 'Ann', address },
  kind: 'tenant_password_reset',
  variables: { organizationName: 'Northwind', link: variables.link, expiresAt: '2026-11-27T08:26:11.123Z' },
})

type Within = <T>(work: (tx: Tx) => Promise<T>) => Promise<T>
const inNorthwind: Within = (work) => test.database.inOrganization(northwind, work)

/** Enqueues in a transaction as a handler would; `wake` is what is told after the commit. */
async function enqueue(mail = invitation(), wake = () => {}, within = inNorthwind): Promise<string> {
  const afterCommit: (() => void)[] = []
  const queue = createMailQueue({ secrets, wake })
  const id = await within((tx) => queue.enqueue({ tx, now, afterCommit: (work) => afterCommit.push(work) }, mail))
  for (const work of afterCommit) work()
  return id!
}

async function rowOf(id: string) {
  const { rows } = await admin.query('SELECT * FROM portico.mail_message WHERE mail_id = $1', [id])
  return rows[0]
}

const messageIds = () => server.received.map((one) => readMail(one).headers.get('message-id'))

it('a message is sent when the change that causes it has committed, and its content is erased', async () => {
  const worker = startWorker()
  let woken: Promise<void> | undefined
  const id = await enqueue(invitation(), () => {
    woken = worker.wake()
  })
  await woken
  expect(server.received).toHaveLength(1)
  const { headers, text, html } = readMail(server.received[0]!)
  expect(headers.get('to')).toBe('Bob <bob@example.com>')
  expect(headers.get('from')).toBe('Portico <no-reply@portico.example>')
  expect(headers.get('subject')).toBe('Ann Example invites you to Northwind')
  expect(headers.get('message-id')).toBe(`<${id}@portico.example>`)
  expect(text).toContain(variables.link)
  expect(html).toContain(variables.link)
  expect(await rowOf(id)).toMatchObject({ state: 'sent', sealed: null, attempts: 1, last_error: null })
})

it('what a message says is not to be read in the database, nor in the log', async () => {
  const id = await enqueue()
  const row = await rowOf(id)
  expect(row).toMatchObject({ state: 'queued', organization_id: northwind, recipient: 'bob@example.com' })
  expect(row.sealed).toBeInstanceOf(Buffer)
  const seen = `${JSON.stringify(row)} ${row.sealed.toString('latin1')}`
  server.refuse(451, `4.7.0 why do you send ${variables.link}`)
  await startWorker().wake()
  for (const secret of [token, 'Ann Example']) {
    expect(seen).not.toContain(secret)
    expect(JSON.stringify(await rowOf(id)) + logLines.join('')).not.toContain(secret)
  }
  expect(await rowOf(id)).toMatchObject({ last_error: 'SMTP DATA: 451 4.7.0' })
  expect(logLines.join('')).toContain(id)
})

it('a change that is rolled back sends nothing', async () => {
  const queue = createMailQueue({ secrets, wake: () => {} })
  const change = test.database.inOrganization(northwind, async (tx) => {
    await queue.enqueue({ tx, now, afterCommit: () => {} }, invitation())
    throw new Error('changed my mind')
  })
  await expect(change).rejects.toThrow('changed my mind')
  await startWorker().wake()
  expect(server.offered()).toBe(0)
})

it('a message whose worker died is sent by another one, under the same Message-ID, when the lease is over', async () => {
  const id = await enqueue()
  let revive = () => {}
  const dead = startWorker({
    async send(message) {
      await mailer.send(message)
      await new Promise<void>((resolve) => {
        revive = resolve
      })
    },
    close: async () => {},
  })
  const dying = dead.wake()
  await expect.poll(() => server.received.length).toBe(1)

  const other = startWorker()
  now += leaseMs - 1
  await other.wake()
  expect(server.received).toHaveLength(1)
  expect(await rowOf(id)).toMatchObject({ state: 'sending', attempts: 1 })
  now += 1
  await other.wake()
  expect(messageIds()).toEqual([`<${id}@portico.example>`, `<${id}@portico.example>`])
  expect(new Set(server.received.map((one) => readMail(one).headers.get('date'))).size).toBe(1)
  const sent = await rowOf(id)
  expect(sent).toMatchObject({ state: 'sent', attempts: 2 })
  // What a worker says that was thought dead changes nothing any more.
  revive()
  await dying
  expect(await rowOf(id)).toEqual(sent)
})

it('a worker whose lease is over cannot put back what another one has', async () => {
  const id = await enqueue()
  const refusals: (() => void)[] = []
  const slow: Mailer = {
    send: () => new Promise((_, reject) => refusals.push(() => reject(new Error('too late')))),
    close: async () => {},
  }
  const first = startWorker(slow).wake()
  await expect.poll(() => refusals.length).toBe(1)
  now += leaseMs
  const second = startWorker(slow).wake()
  await expect.poll(() => refusals.length).toBe(2)
  refusals[0]!()
  await first
  expect(await rowOf(id)).toMatchObject({ state: 'sending', attempts: 2, last_error: null })
  refusals[1]!()
  await second
  // The words of an error that is not the mailer's own may hold anything.
  expect(await rowOf(id)).toMatchObject({ state: 'queued', last_error: expect.not.stringContaining('too late') })
})

it('several workers send each message once', async () => {
  const ids: string[] = []
  for (let n = 0; n < 60; n++) ids.push(await enqueue(invitation(`bob${n}@example.com`)))
  const three = [startWorker(), startWorker(), startWorker()]
  await Promise.all(three.flatMap((worker) => [worker.wake(), worker.wake()]))
  expect(messageIds().sort()).toEqual(ids.map((id) => `<${id}@portico.example>`).sort())
})

it('a message that comes while another one hangs is not held up by it', async () => {
  let release = () => {}
  const worker = startWorker({
    async send(message) {
      if (message.to.address === 'slow@example.com')
        await new Promise<void>((resolve) => {
          release = resolve
        })
      await mailer.send(message)
    },
    close: async () => {},
  })
  await enqueue(invitation('slow@example.com'))
  const slow = worker.wake()
  await expect
    .poll(async () => (await admin.query(`SELECT FROM portico.mail_message WHERE state = 'sending'`)).rowCount)
    .toBe(1)
  await enqueue(invitation('fast@example.com'), () => void worker.wake())
  await expect.poll(() => server.received.length).toBe(1)
  expect(server.received[0]).toContain('fast@example.com')
  release()
  await slow
  expect(server.received).toHaveLength(2)
})

it('a server that says 4xx is asked again, later and later, and given up after ten attempts', async () => {
  server.refuse(451)
  const id = await enqueue()
  const worker = startWorker()
  await worker.wake()
  for (const minutes of [1, 5, 30, 120, 360, 360, 360, 360, 360]) {
    const before = server.offered()
    expect(await rowOf(id)).toMatchObject({ state: 'queued', attempts: before, last_error: 'SMTP DATA: 451' })
    now += minutes * minuteMs - 1
    await worker.wake()
    expect(server.offered()).toBe(before)
    now += 1
    await worker.wake()
    expect(server.offered()).toBe(before + 1)
  }
  expect(await rowOf(id)).toMatchObject({ state: 'failed', attempts: attemptsMax, sealed: null })
  now += dayMs
  await worker.wake()
  expect(server.offered()).toBe(attemptsMax)
})

it('it is sent when the server has thought better of it', async () => {
  server.refuse(451)
  const id = await enqueue()
  const worker = startWorker()
  await worker.wake()
  server.refuse(null)
  now += minuteMs
  await worker.wake()
  expect(messageIds()).toEqual([`<${id}@portico.example>`])
  expect(await rowOf(id)).toMatchObject({ state: 'sent', attempts: 2, last_error: null })
})

it('a server that says 5xx is not asked again', async () => {
  server.refuse(554)
  const id = await enqueue()
  const worker = startWorker()
  await worker.wake()
  expect(await rowOf(id)).toMatchObject({ state: 'failed', attempts: 1, sealed: null, last_error: 'SMTP DATA: 554' })
  now += dayMs
  await worker.wake()
  expect(server.offered()).toBe(1)
})

it('a message that ends its worker each time is given up too', async () => {
  const id = await enqueue()
  await admin.query(`UPDATE portico.mail_message SET state = 'sending', attempts = $1`, [attemptsMax])
  await startWorker().wake()
  expect(server.offered()).toBe(0)
  expect(await rowOf(id)).toMatchObject({ state: 'failed', sealed: null, attempts: attemptsMax })
})

it('a message is not sent any more when its link works no more', async () => {
  server.refuse(451)
  const id = await enqueue(invitation('bob@example.com', new Date(now + 1).toISOString()))
  const worker = startWorker()
  await worker.wake()
  expect(await rowOf(id)).toMatchObject({ state: 'queued', attempts: 1 })
  server.refuse(null)
  now += minuteMs
  await worker.wake()
  expect(server.received).toEqual([])
  expect(await rowOf(id)).toMatchObject({ state: 'failed', sealed: null, last_error: 'The link in it works no more.' })
  expect(logLines.join('')).toContain('A message was given up.')
})

it('who waits for a password does not wait for those who are invited', async () => {
  for (let n = 0; n < 20; n++) await enqueue(invitation(`bob${n}@example.com`))
  now += 1
  const reset = await enqueue(passwordReset('ann@example.com'))
  const order: string[] = []
  await startWorker({
    async send({ id }) {
      order.push(id)
    },
    close: async () => {},
  }).wake()
  expect(order).toHaveLength(21)
  // As many as a worker sends at once.
  expect(order.slice(0, 5)).toContain(reset)
})

it('a sealed content opens in its own row only', async () => {
  const [one, other] = [await enqueue(), await enqueue(invitation('eve@example.com'))]
  await admin.query(
    'UPDATE portico.mail_message SET sealed = (SELECT sealed FROM portico.mail_message WHERE mail_id = $1) WHERE mail_id = $2',
    [one, other],
  )
  await startWorker().wake()
  expect(messageIds()).toEqual([`<${one}@portico.example>`])
  expect(await rowOf(other)).toMatchObject({ state: 'queued', attempts: 1 })
})

it('an address that no mail can be sent to is refused by name', async () => {
  for (const address of ['bob', 'bob@example.com\r\nBcc: eve@example.com', 'bob@example.com, eve@example.com', '']) {
    await expect(enqueue(invitation(address))).rejects.toMatchObject({
      code: 'validation_failed',
      details: [{ field: 'email' }],
    })
  }
})

it('sessions of an organisation see no mail, not even by a right that they should not have', async () => {
  await enqueue()
  const count = (tx: Tx) =>
    tx.rows<{ n: number }>({ text: 'SELECT count(*)::int AS n FROM portico.mail_message', values: [] })
  for (const organizationId of [northwind, contoso]) {
    await expect(test.database.inOrganization(organizationId, count)).rejects.toMatchObject({ code: '42501' })
  }
  expect(await test.database.as('portico_system', count)).toEqual([{ n: 1 }])
  await admin.query('GRANT SELECT ON portico.mail_message TO portico_app')
  try {
    for (const organizationId of [northwind, contoso]) {
      expect(await test.database.inOrganization(organizationId, count)).toEqual([{ n: 0 }])
    }
    expect(await test.database.as('portico_owner', count)).toEqual([{ n: 0 }])
  } finally {
    await admin.query('REVOKE SELECT ON portico.mail_message FROM portico_app')
  }
})

it('a bound transaction writes for what it is bound to, and a visitor for whoever was found', async () => {
  const ofAccount: NewMail = {
    accountId,
    to: { name: '', address: 'ann@example.com' },
    kind: 'builder_invitation',
    variables: { ...variables, accountName: 'Northwind', role: 'developer' },
  }
  const inContoso: Within = (work) => test.database.inOrganization(contoso, work)
  const asVisitor: Within = (work) => test.database.as('portico_app', work)
  const inAccount: Within = (work) =>
    test.database.as('portico_app', async (tx) => {
      await tx.rows({ text: `SELECT set_config('portico.account_id', $1, true)`, values: [accountId] })
      return work(tx)
    })
  const written = async (mail: NewMail, within: Within) => rowOf(await enqueue(mail, undefined, within))
  const refused: readonly (readonly [NewMail, Within])[] = [
    [invitation(), inContoso],
    [ofAccount, inContoso],
    [invitation(), inAccount],
  ]
  for (const [mail, within] of refused) await expect(written(mail, within)).rejects.toMatchObject({ code: '42501' })
  for (const within of [inAccount, asVisitor]) {
    expect(await written(ofAccount, within)).toMatchObject({ account_id: accountId, organization_id: null })
  }
  for (const within of [inNorthwind, asVisitor]) {
    expect(await written(invitation(), within)).toMatchObject({ account_id: null, organization_id: northwind })
  }
})

it('what was finished 30 days ago is removed, and nothing else', async () => {
  const sent = await enqueue()
  await startWorker().wake()
  const waiting = await enqueue()
  expect(await removeOldMail(test.database, now + 30 * dayMs)).toBe(0)
  expect(await removeOldMail(test.database, now + 30 * dayMs + 1)).toBe(1)
  expect(await rowOf(sent)).toBeUndefined()
  expect(await rowOf(waiting)).toMatchObject({ state: 'queued' })
})
