import type { AnyCaller } from './kernel/caller.ts'
import { type Clock, systemClock } from './kernel/clock.ts'
import type { Outcome, Request } from './kernel/exchange.ts'
import type { BaseContext } from './kernel/operation.ts'
import { createPipeline, type Invoke } from './kernel/pipeline.ts'
import { requireToken } from './kernel/steps.ts'
import { nativeModules } from './native-modules.ts'
import { platformRegistry, registry, tenantRegistry, tenantVisitorRegistry, visitorRegistry } from './operations.ts'
import type { ConnectionSettings } from './ports/database/port.ts'
import { type AccessProfile, withinScopes } from './shared/access/permissions.ts'
import { type BillingCatalog, defaultCatalog } from './shared/billing-catalog.ts'
import { createCatalogue } from './shared/catalogue/catalogue.ts'
import type { Context } from './shared/context.ts'
import { createCursors } from './shared/cursors.ts'
import { type Database, openDatabase } from './shared/database/database.ts'
import { keepPresence } from './shared/database/presence.ts'
import { createDiagnostics } from './shared/diagnostics.ts'
import { createDomainOwnership } from './shared/domain-ownership.ts'
import { createFairShare } from './shared/fair-share.ts'
import { createIdempotency } from './shared/idempotency.ts'
import { createAuthenticator } from './shared/identity/authenticate.ts'
import { createBuilderAuthenticator } from './shared/identity/builders.ts'
import { createFailedCredentials } from './shared/identity/failed-credentials.ts'
import { createLastUse } from './shared/identity/last-use.ts'
import { createMint } from './shared/identity/mint.ts'
import { createPasswords } from './shared/identity/passwords.ts'
import { createSignInThrottle } from './shared/identity/sign-in-throttle.ts'
import { createTenantDoor, visitorOf } from './shared/identity/visitors.ts'
import type { Keys } from './shared/keys.ts'
import { createLinks } from './shared/links.ts'
import type { Log } from './shared/log.ts'
import type { MailQueue } from './shared/mail/queue.ts'
import { startMaintenance } from './shared/maintenance.ts'
import { createMetrics } from './shared/metrics.ts'
import { createIndexBuilder } from './shared/modelling/index-builder.ts'
import { createNativeUpgrade, type NativeUpgrade } from './shared/modelling/native-upgrade.ts'
import type { AttemptParts } from './shared/operations/attempt.ts'
import { createOperations } from './shared/operations/operations.ts'
import { createOperationRunner, type OperationRunner } from './shared/operations/runner.ts'
import { createDispatcher, type Dispatcher } from './shared/outbox/dispatcher.ts'
import { hasEmitted, hasQueued } from './shared/outbox/emitted.ts'
import { audibleEvents } from './shared/outbox/envelope-schema.ts'
import { createKnock, listenForKnocks } from './shared/outbox/knock.ts'
import { createStandings } from './shared/outbox/standings.ts'
import type { PlatformContext, VisitorContext } from './shared/platform-context.ts'
import { createRateLimits } from './shared/rate-limits.ts'
import { fieldsSchemas } from './shared/records/json-schema.ts'
import { createSafeFetch, type SafeFetch } from './shared/safe-fetch/safe-fetch.ts'
import type { Secrets } from './shared/secrets.ts'
import { createSessionCookie } from './shared/session-cookie.ts'
import type { TenantContext, TenantVisitorContext } from './shared/tenant-context.ts'
import { createTenantDomains } from './shared/tenant-domains.ts'
import { family } from './surfaces/http/family.ts'
import { createHttpSurface, type HttpSurface } from './surfaces/http/server.ts'
import { type Contract, projectContract } from './surfaces/openapi/contract.ts'
import { createPlatformContract } from './surfaces/openapi/platform-contract.ts'
import { webhookDeliveries } from './webhook-deliveries.ts'
import { workKinds } from './work.ts'

/** The service on a database that is there: what `main.ts`, the tests and the benchmark start. */
export interface ServiceOptions {
  readonly connection: ConnectionSettings
  readonly poolSize: number
  readonly keys: Keys
  readonly secrets: Secrets
  /** Takes the mail of invitations and password resets. */
  readonly mail: MailQueue
  readonly baseUrl: string
  /** Addresses and networks of proxies that are believed when they say where a request comes from. */
  readonly trustedProxies?: readonly string[] | undefined
  /** Name servers that are asked about domains of organisations and destinations; the system's unless said otherwise. */
  readonly dnsServers?: readonly string[] | undefined
  /** Domains that nobody can hold (`.test`, `.example`) count as verified at once. For development. */
  readonly acceptReservedDomains?: boolean | undefined
  /** Webhooks may go to private addresses, and with http. For development. */
  readonly allowPrivateDestinations?: boolean | undefined
  /** A PEM file of authorities to trust beside those of Node.js. */
  readonly extraCaFile?: string | undefined
  readonly rateLimitScale: number
  /** Null: `/metrics` does not exist. Undefined: it is open. */
  readonly metricsToken?: string | null | undefined
  /** What accounts can subscribe to; the software itself asks for no money. */
  readonly billingCatalog?: BillingCatalog | undefined
  /** Does this process answer requests, beside those about itself? It does unless said otherwise. */
  readonly answers?: boolean
  /** Does this process dispatch events, once `dispatcher` is started? It does unless said otherwise; else it wakes those that do. */
  readonly dispatches?: boolean | undefined
  /** Does this process carry long-running operations on? It does unless said otherwise. */
  readonly runsOperations?: boolean
  readonly log: Log
  readonly clock?: Clock
  /** Holds every answer against its declared schema; for tests. */
  readonly checkResponses?: boolean
}

type DeliveryWorker = ReturnType<typeof webhookDeliveries.createWorker>

export interface Service {
  readonly database: Database
  readonly invoke: Invoke<Context>
  readonly http: HttpSurface
  /** The way out for whatever goes where a tenant says. */
  readonly safeFetch: SafeFetch
  /** Brings applications that miss native modules or fields of them to these, in the background. */
  readonly nativeUpgrade: Pick<NativeUpgrade, 'start' | 'idle'>
  /** Carries long-running operations on, from the start; undefined where the service was told to leave them to others. */
  readonly operationRunner: Pick<OperationRunner, 'wake' | 'close'> | undefined
  /** Takes events out of the outbox, once it is started. */
  readonly dispatcher: Pick<Dispatcher, 'start' | 'dispatchAll'>
  /** Sends the deliveries of webhooks, once it is started. */
  readonly deliveries: Pick<DeliveryWorker, 'start' | 'deliverAll'>
  /** After the HTTP surface has drained. */
  close(): Promise<void>
}

export function createService(options: ServiceOptions): Service {
  const {
    connection,
    poolSize,
    keys,
    secrets,
    baseUrl,
    rateLimitScale,
    log,
    clock = systemClock,
    checkResponses = false,
  } = options
  const database = openDatabase({
    connection,
    poolSize,
    onIdleError: (error) => log.warn({ err: error }, 'A connection to the database was lost.'),
    onCommit: (tx) => {
      if (hasEmitted(tx)) (options.dispatches === false ? knock : dispatcher.wake)()
      if (hasQueued(tx)) deliveries.wake()
    },
  })
  const metrics = createMetrics({ pool: database.pool })
  const diagnostics = createDiagnostics({ database, clock, log, metrics })
  const failed = createFailedCredentials({ scale: rateLimitScale })
  const authenticator = createAuthenticator({ database, clock, pepper: keys.pepper, failed })
  const lastUse = createLastUse({ database, clock, log })
  const limits = createRateLimits({ scale: rateLimitScale })
  // Three quarters: one tenant alone still gets nearly all, and never all.
  const share = createFairShare(Math.max(1, Math.floor((poolSize * 3) / 4)))
  const indexBuilder = createIndexBuilder({ database, log, behaviours: nativeModules.behaviours })
  indexBuilder.resume()
  const nativeUpgrade = createNativeUpgrade({ database, native: nativeModules.objects, indexBuilder, log })
  const idempotency = createIdempotency({ clock, secrets })
  const cursors = createCursors(keys.cursors)
  const links = createLinks(baseUrl)
  const catalogue = createCatalogue(nativeModules)
  const standings = createStandings({ database, catalogue, clock })
  const safeFetch = createSafeFetch({
    allowLoopback: options.allowPrivateDestinations ?? false,
    ...(options.extraCaFile !== undefined && { extraCaFile: options.extraCaFile }),
    dnsServers: options.dnsServers ?? [],
  })
  const presence = keepPresence(connection)
  const deliveries = webhookDeliveries.createWorker({
    database,
    presence,
    metrics,
    standings,
    secrets,
    safeFetch,
    clock,
    log,
  })
  const knock = createKnock(database)
  let stopListening: (() => Promise<void>) | undefined
  const dispatcher = createDispatcher({ database, standings, clock, log, onDeliveries: deliveries.wake })
  const transact: AttemptParts['transact'] = (mode, caller, work) =>
    share.run(caller.tenantId, () => database.transact(mode, caller, work))
  const operationRunner =
    options.runsOperations === false
      ? undefined
      : createOperationRunner({ database, transact, catalogue, cursors, clock, log }, workKinds)
  const pipeline = createPipeline<Context>({
    clock,
    authenticate: byToken(authenticator.authenticate),
    forget: authenticator.forget,
    consume: limits.consume,
    transact,
    idempotency,
    services: {
      operations: createOperations({ database, wake: () => void operationRunner?.wake() }),
      catalogue,
      cursors,
      contract: { project: createContractSource(baseUrl) },
      diagnostics,
      secrets,
      destinations: safeFetch,
    },
    record,
    checkResponses,
  })
  const invoke = counted(pipeline)
  const common = {
    clock,
    consume: limits.consume,
    idempotency,
    record,
    checkResponses,
  }
  const door = createTenantDoor({ database, authenticator, links })
  const people = {
    mint: createMint(keys.pepper),
    passwords: createPasswords(),
    throttle: createSignInThrottle({ database, clock, knowsProxies: (options.trustedProxies ?? []).length > 0 }),
    links,
    mail: options.mail,
  }
  const platform = createPipeline<PlatformContext>({
    ...common,
    authenticate: byToken(createBuilderAuthenticator({ database, clock, pepper: keys.pepper, failed })),
    forget: () => {},
    transact: (mode, caller, work, named) =>
      share.run(caller.tenantId, () => database.transactForBuilder(mode, caller, work, named)),
    services: {
      ...people,
      secrets,
      cursors,
      domains: createDomainOwnership({
        pepper: keys.pepper,
        dnsServers: options.dnsServers ?? [],
        acceptReservedDomains: options.acceptReservedDomains ?? false,
      }),
      contract: {
        project: createPlatformContract([...visitorRegistry.operations, ...platformRegistry.operations], baseUrl),
      },
      billing: { catalog: options.billingCatalog ?? defaultCatalog },
      modelling: { buildIndexes: indexBuilder.build, nativeObjects: nativeModules.objects },
    },
  })
  const visitors = createPipeline<VisitorContext>({
    ...common,
    authenticate: visitorOf,
    forget: () => {},
    transact: (mode, _, work) => database.transactForVisitor(mode, null, work),
    services: { ...people, secrets },
  })
  const cookie = createSessionCookie(baseUrl)
  const tenants = createPipeline<TenantContext>({
    ...common,
    authenticate: door.user,
    forget: authenticator.forget,
    transact,
    services: { ...people, cookie, catalogue },
  })
  const tenantVisitors = createPipeline<TenantVisitorContext>({
    ...common,
    authenticate: door.visitor,
    forget: () => {},
    transact: (mode, { organizationId }, work) =>
      share.run(organizationId, () => database.transactForVisitor(mode, organizationId, work)),
    services: { ...people, cookie, catalogue },
  })
  function record(outcome: Outcome): void {
    diagnostics.record(outcome)
    lastUse.note(outcome)
  }
  function counted<C extends BaseContext<AnyCaller>>(pipeline: Invoke<C>): Invoke<C> {
    return async (operation, request) => {
      metrics.requestStarted()
      try {
        return await pipeline(operation, request)
      } finally {
        metrics.requestEnded()
      }
    }
  }

  const http = createHttpSurface({
    families: [
      family('api', registry.operations, invoke),
      family('api', platformRegistry.operations, counted(platform)),
      family('api', visitorRegistry.operations, counted(visitors)),
      family('tenant', tenantRegistry.operations, counted(tenants)),
      family('tenant', tenantVisitorRegistry.operations, counted(tenantVisitors)),
    ],
    onlyProbes: options.answers === false,
    cookieName: cookie.name,
    isTenantDomain: createTenantDomains({ database, clock }).isTenantDomain,
    trustedProxies: options.trustedProxies,
    clock,
    baseUrl,
    log,
    metricsToken: options.metricsToken,
    readiness: async () => ({ database: await reachable(database) }),
    metrics: async () => ({ contentType: metrics.contentType, text: await metrics.metricsText() }),
  })
  const stopMaintenance = startMaintenance({ database, clock, log })
  return {
    database,
    invoke,
    http,
    safeFetch,
    nativeUpgrade,
    operationRunner,
    dispatcher: {
      start() {
        stopListening ??= listenForKnocks(connection, dispatcher.wake)
        dispatcher.start()
      },
      dispatchAll: dispatcher.dispatchAll,
    },
    deliveries,
    async close() {
      stopMaintenance()
      await Promise.all([stopListening?.(), dispatcher.close(), deliveries.close()])
      await operationRunner?.close()
      const upgraded = nativeUpgrade.stop()
      await Promise.all([diagnostics.close(), lastUse.close(), safeFetch.close()])
      // Ends what takes longer, indexes among it: the next start takes it up.
      await database.close()
      await Promise.all([upgraded, indexBuilder.idle()])
    },
  }
}

/** The token of the `Authorization` header decides who calls. */
function byToken<T>(authenticate: (token: string, address: string) => T): (request: Request) => T {
  return (request) => authenticate(requireToken(request), request.address)
}

const readinessWithinMs = 1000

/** A database that does not answer in a second is not there, as far as a load balancer is concerned. */
async function reachable(database: Database): Promise<boolean> {
  const asked = database.as('portico_app', (tx) => tx.rows({ text: 'SELECT 1', values: [] }))
  const late = new Promise<never>((_, reject) => setTimeout(reject, readinessWithinMs).unref())
  return Promise.race([asked, late]).then(
    () => true,
    () => false,
  )
}

/**
 * Contracts by what they depend on: the profile (model and roles), the kind, the scopes and the envelope of the credential. Making one
 * takes 10 ms or more, so callers who differ in nothing share it; when the model changes, the profile does, and the old
 * ones go with it.
 */
function createContractSource(baseUrl: string): Context['contract']['project'] {
  const made = new WeakMap<AccessProfile, Map<string, Contract>>()
  return (caller, profile) => {
    const ofProfile = made.get(profile) ?? new Map<string, Contract>()
    made.set(profile, ofProfile)
    const key = [caller.credentialKind, caller.unrestricted, ...[...caller.scopes].sort()].join(' ')
    const known = ofProfile.get(key)
    if (known) return known
    const objects = [...withinScopes(profile, caller).objects.values()].map((access) => ({
      objectKey: access.object.objectKey,
      label: access.object.label,
      create: access.create,
      update: access.update,
      archive: access.archive,
      jsonSchema: fieldsSchemas(access),
      nameField: access.readable.find((field) => field === access.object.nameField)?.fieldKey,
      expandable: access.readable
        .filter((field) => field.referenceObjectId !== null && profile.byObjectId.has(field.referenceObjectId))
        .map((field) => field.fieldKey),
      uniqueFields: access.readable.filter((field) => field.unique).map((field) => field.fieldKey),
    }))
    const contract = projectContract({ registry, caller, objects, events: audibleEvents(caller), baseUrl })
    ofProfile.set(key, contract)
    return contract
  }
}
