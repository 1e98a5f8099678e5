import { randomBytes } from 'node:crypto'
import { insertBuilderSession } from '../../src/features/platform/account/session-store.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import { createService, type Service } from '../../src/service.ts'
import { hashSecret, makeToken } from '../../src/shared/identity/tokens.ts'
import { createLog } from '../../src/shared/log.ts'
import type { ModelDocument } from '../../src/shared/modelling/document.ts'
import { createAccount } from './accounts.ts'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { type Answer, createHttpClient, type HttpClient } from './http-client.ts'
import { createMailbox, type Mailbox } from './mailbox.ts'
import { openTestSecrets } from './secrets.ts'
import { createTenant, type OrganizationPlan, pepper, type Tenant } from './tenants.ts'
import { otherModel, testModel } from './test-model.ts'

/**
 * The whole service on a free port, over a database of its own, with two applications; in the first there are two
 * organisations that have everything alike. Every answer is held against its declared schema, by the service, and against
 * the contract's rules for errors, by the client.
 */
export interface TestService extends Instance {
  readonly db: TestDatabase
  /** The first application, with the organisations `a`, `b` and the inactive `dormant`. */
  readonly app: AppOf<'a' | 'b' | 'dormant'>
  /** The second one, with the organisation `c`. */
  readonly otherApp: AppOf<'c'>
  /** A session of a builder, good or over. */
  readonly builderTokens: { readonly valid: string; readonly expired: string }
  /** Everything that was logged, one line each. */
  readonly logLines: string[]
  readonly mailbox: Mailbox
  /** Every answer that was given. */
  readonly answers: Answer<unknown>[]
  /** One more process, as it were, on the same database, behind the same log. */
  startAnother(options?: Pick<TestServiceOptions, 'rateLimitScale' | 'trustedProxies'>): Promise<Instance>
  stop(): Promise<void>
}

export interface Instance extends Pick<HttpClient, 'call' | 'sendBytes'> {
  readonly service: Service
  readonly port: number
  /** Drains and stops; whoever reads what was written at the end closes it before the test does. */
  close(): Promise<void>
}

export interface TestServiceOptions {
  /** How the names of an organisation's people and its own begin. */
  readonly labels?: Readonly<Record<string, string>>
  /** Do the applications have the native modules, of which the role `sales` may do everything with contacts? */
  readonly modules?: boolean
  /** True unless said otherwise: receivers of tests are on this machine. */
  readonly allowPrivateDestinations?: boolean
  readonly rateLimitScale?: number
  readonly trustedProxies?: readonly string[]
  /** Does it carry long-running operations on? It does unless said otherwise. */
  readonly runsOperations?: boolean
  readonly clock?: Clock
}

function organizationPlan(label: string, status: 'active' | 'inactive' = 'active') {
  const person = <const P>(name: string, plan: P) => ({ displayName: `${label} ${name}`, ...plan })
  return {
    name: label,
    status,
    locations: ['north', 'south'],
    users: {
      owner: person('owner', { owner: true, locations: 'all' }),
      sales: person('sales', { roles: ['sales'], locations: ['north'] }),
      salesSouth: person('south', { roles: ['sales'], locations: ['south'] }),
      support: person('support', { roles: ['support'], locations: 'all' }),
      clerk: person('clerk', { roles: ['clerk'], locations: 'all' }),
      outsider: person('outsider', {}),
      inactive: person('inactive', { owner: true, status: 'inactive' }),
    },
    credentials: {
      live: {},
      noScopes: { scopes: [] },
      draft: { kind: 'draft' },
      enveloped: { envelope: { roles: ['sales'], locations: ['north'] } },
      expired: { expiresAt: new Date(0) },
      revoked: { revoked: true },
    },
  } as const satisfies OrganizationPlan
}

function withContacts(model: ModelDocument): ModelDocument {
  const { sales } = model.roles!
  const contacts = { read: true, create: true, update: true, archive: true }
  return { ...model, roles: { ...model.roles, sales: { ...sales!, objects: { ...sales!.objects, contacts } } } }
}

type AppOf<Keys extends string> = Tenant<{
  readonly organizations: Readonly<Record<Keys, ReturnType<typeof organizationPlan>>>
}>

export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const { labels = {} } = options
  const db = await createTestDatabase({ poolSize: 4 })
  const planOf = (key: string, status?: 'inactive') => organizationPlan(labels[key] ?? `Organization ${key}`, status)
  const { modules = false } = options
  const app = await createTenant(db.database, {
    modules,
    model: modules ? withContacts(testModel) : testModel,
    organizations: { a: planOf('a'), b: planOf('b'), dormant: planOf('dormant', 'inactive') },
  })
  const otherApp = await createTenant(db.database, { modules, model: otherModel, organizations: { c: planOf('c') } })
  const builderTokens = await makeBuilder(db)

  const logLines: string[] = []
  const answers: Answer<unknown>[] = []
  const cursors = randomBytes(32)
  const mailbox = createMailbox()
  const secrets = await openTestSecrets(db.database)
  const instances: Instance[] = []

  async function startInstance({
    rateLimitScale = 0,
    trustedProxies,
  }: TestServiceOptions = options): Promise<Instance> {
    const service = createService({
      connection: db.login,
      // As many as the client opens sockets: on a busy machine nobody waits for a connection until that is a 503.
      poolSize: 16,
      keys: { pepper, cursors },
      secrets,
      mail: mailbox,
      baseUrl: 'http://127.0.0.1:8080',
      rateLimitScale,
      trustedProxies,
      allowPrivateDestinations: options.allowPrivateDestinations ?? true,
      log: createLog({ level: 'trace', pretty: false, destination: { write: (line) => void logLines.push(line) } }),
      checkResponses: true,
      runsOperations: options.runsOperations ?? true,
      ...(options.clock && { clock: options.clock }),
    })
    const { port } = await service.http.listen({ host: '127.0.0.1', port: 0 })
    const client = createHttpClient(port, {
      onAnswer: (answer) => answers.push(answer),
      onFault: (correlationId) => logLines.filter((line) => line.includes(correlationId)).join(''),
    })
    let closing: Promise<void> | undefined
    const close = async () => {
      client.close()
      await service.http.drain(1000)
      await service.close()
    }
    const instance: Instance = {
      service,
      port,
      call: client.call,
      sendBytes: client.sendBytes,
      close: () => {
        closing ??= close()
        return closing
      },
    }
    instances.push(instance)
    return instance
  }

  return {
    ...(await startInstance()),
    db,
    app,
    otherApp,
    builderTokens,
    logLines,
    answers,
    mailbox,
    startAnother: (more = {}) => startInstance(more),
    async stop() {
      await Promise.all(instances.map((instance) => instance.close()))
      await db.drop()
    },
  }
}

async function makeBuilder({ database }: TestDatabase): Promise<TestService['builderTokens']> {
  const { accountId, builderId } = await createAccount(database)
  const session = async (expiresAt: string) => {
    const token = makeToken('bld')
    const secretHash = hashSecret(pepper, token.secret)
    await database.as('portico_owner', (tx) =>
      insertBuilderSession(tx, { keyId: token.keyId, accountId, builderId, secretHash, expiresAt }),
    )
    return token.text
  }
  return {
    valid: await session(new Date(Date.now() + 3_600_000).toISOString()),
    expired: await session(new Date(0).toISOString()),
  }
}
