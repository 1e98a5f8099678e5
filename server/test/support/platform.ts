import { randomBytes } from 'node:crypto'
import { insertBuilderSession } from '../../src/features/platform/account/session-store.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { uuidv7 } from '../../src/kernel/ids.ts'
import type { BuilderRole } from '../../src/kernel/scopes.ts'
import { createService, type Service } from '../../src/service.ts'
import { createMint } from '../../src/shared/identity/mint.ts'
import { createLog } from '../../src/shared/log.ts'
import { createMailQueue } from '../../src/shared/mail/queue.ts'
import { createAccount } from './accounts.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { type NameServer, startNameServer } from './dns.ts'
import { createHttpClient, type HttpClient } from './http-client.ts'
import { createMailbox, type Mailbox } from './mailbox.ts'
import { openTestSecrets } from './secrets.ts'
import { pepper } from './tenants.ts'

/**
 * The whole service over HTTP on an empty database, for tests that begin as a builder does. Every answer is held against
 * its schema, mail is collected, nothing is limited by rate.
 */
export interface Platform extends HttpClient {
  readonly db: TestDatabase
  readonly service: Service
  readonly port: number
  readonly mailbox: Mailbox
  /** What the service asks about domains. */
  readonly dns: NameServer
  readonly logLines: readonly string[]
  /** A new account with one member of that role (owner unless said otherwise), signed in. */
  newAccount(role?: BuilderRole): Promise<TestBuilder>
  /** One more member of an account, signed in. */
  newMember(accountId: string, role: BuilderRole): Promise<TestBuilder>
  /** The token of one more session of a member; good for an hour unless said otherwise. */
  newSession(member: Pick<TestBuilder, 'accountId' | 'builderId'>, expiresAt?: Date): Promise<string>
  /** Another process on the same database. */
  startAnother(options?: { readonly rateLimitScale?: number }): Promise<HttpClient & Pick<Platform, 'service'>>
  stop(): Promise<void>
}

export interface TestBuilder {
  readonly accountId: string
  readonly builderId: string
  readonly email: string
  readonly token: string
}

interface PlatformOptions {
  readonly clock?: Clock
  readonly acceptReservedDomains?: boolean
  readonly dnsServers?: readonly string[]
  /** Mail waits in the database, as in a service, instead of being collected. */
  readonly queuesMail?: boolean
}

export async function startPlatform({ queuesMail, ...options }: PlatformOptions = {}): Promise<Platform> {
  const db = await createTestDatabase({ poolSize: 4 })
  const mailbox = createMailbox()
  const dns = await startNameServer()
  const logLines: string[] = []
  const cursors = randomBytes(32)
  const closing: (() => Promise<void>)[] = []

  async function start({ rateLimitScale = 0 }: { readonly rateLimitScale?: number } = {}) {
    const secrets = await openTestSecrets(db.database)
    const service = createService({
      connection: db.login,
      poolSize: 16,
      keys: { pepper, cursors },
      secrets,
      mail: queuesMail ? createMailQueue({ secrets, wake: () => {} }) : mailbox,
      baseUrl: 'http://127.0.0.1:8080',
      rateLimitScale,
      dnsServers: [dns.address],
      log: createLog({ level: 'info', pretty: false, destination: { write: (line) => void logLines.push(line) } }),
      checkResponses: true,
      ...options,
    })
    const { port } = await service.http.listen({ host: '127.0.0.1', port: 0 })
    const client = createHttpClient(port, {
      onAnswer: () => undefined,
      onFault: (correlationId) => logLines.filter((line) => line.includes(correlationId)).join(''),
    })
    closing.push(async () => {
      client.close()
      await service.http.drain(1000)
      await service.close()
    })
    return { service, port, ...client }
  }

  return {
    ...(await start()),
    db,
    mailbox,
    dns,
    logLines,
    newAccount: (role = 'owner') => newAccount(db, role),
    newMember: (accountId, role) => newMember(db, accountId, role),
    newSession: (member, expiresAt) => newSession(db, member, expiresAt),
    startAnother: start,
    async stop() {
      await Promise.all(closing.map((close) => close()))
      await Promise.all([dns.close(), db.drop()])
    },
  }
}

/** Accounts always have an owner; for another role the member joins beside one who never signs in. */
async function newAccount(db: TestDatabase, role: BuilderRole): Promise<TestBuilder> {
  const { accountId, builderId, email } = await createAccount(db.database)
  if (role !== 'owner') return newMember(db, accountId, role)
  return { accountId, builderId, email, token: await newSession(db, { accountId, builderId }) }
}

async function newMember(db: TestDatabase, accountId: string, role: BuilderRole): Promise<TestBuilder> {
  const builderId = uuidv7(Date.now())
  const email = `builder-${builderId.slice(-8)}@portico.example`
  await db.database.as('portico_owner', (tx) =>
    tx.rows({
      text: `WITH b AS (INSERT INTO portico.builder (builder_id, email, display_name, password_hash)
               VALUES ($1, $2, 'Test builder', 'none') RETURNING builder_id)
             INSERT INTO portico.account_member (account_id, builder_id, role) SELECT $3, builder_id, $4 FROM b`,
      values: [builderId, email, accountId, role],
    }),
  )
  return { accountId, builderId, email, token: await newSession(db, { accountId, builderId }) }
}

async function newSession(
  { database }: TestDatabase,
  { accountId, builderId }: Pick<TestBuilder, 'accountId' | 'builderId'>,
  expiresAt = new Date(Date.now() + 3_600_000),
): Promise<string> {
  const { keyId, secretHash, text } = createMint(pepper).token('bld')
  const session = { keyId, accountId, builderId, secretHash, expiresAt: expiresAt.toISOString() }
  await database.as('portico_owner', (tx) => insertBuilderSession(tx, session))
  return text
}
