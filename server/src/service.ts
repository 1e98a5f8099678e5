import { type Clock, systemClock } from './kernel/clock.ts'
import { createPipeline, type Invoke } from './kernel/pipeline.ts'
import { registry } from './operations.ts'
import type { ConnectionSettings } from './ports/database/port.ts'
import type { AccessProfile } from './shared/access/permissions.ts'
import { createCatalogue } from './shared/catalogue/catalogue.ts'
import type { Context } from './shared/context.ts'
import { createCursors } from './shared/cursors.ts'
import { type Database, openDatabase } from './shared/database/database.ts'
import { createDiagnostics } from './shared/diagnostics.ts'
import { createFairShare } from './shared/fair-share.ts'
import { createIdempotency } from './shared/idempotency.ts'
import { createAuthenticator } from './shared/identity/authenticate.ts'
import type { Keys } from './shared/keys.ts'
import type { Log } from './shared/log.ts'
import { startMaintenance } from './shared/maintenance.ts'
import { createMetrics } from './shared/metrics.ts'
import { createRateLimits } from './shared/rate-limits.ts'
import { fieldsSchemas } from './shared/records/json-schema.ts'
import { family } from './surfaces/http/family.ts'
import { createHttpSurface, type HttpSurface } from './surfaces/http/server.ts'
import { type Contract, projectContract } from './surfaces/openapi/contract.ts'

/** The service on a database that is there: what `main.ts`, the tests and the benchmark start. */
export interface ServiceOptions {
  readonly connection: ConnectionSettings
  readonly poolSize: number
  readonly keys: Keys
  readonly baseUrl: string
  readonly rateLimitScale: number
  /** Null: `/metrics` does not exist. Undefined: it is open. */
  readonly metricsToken?: string | null | undefined
  readonly log: Log
  readonly clock?: Clock
  /** Holds every answer against its declared schema; for tests. */
  readonly checkResponses?: boolean
}

export interface Service {
  readonly database: Database
  readonly invoke: Invoke<Context>
  readonly http: HttpSurface
  /** After the HTTP surface has drained. */
  close(): Promise<void>
}

export function createService(options: ServiceOptions): Service {
  const {
    connection,
    poolSize,
    keys,
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
  })
  const metrics = createMetrics({ pool: database.pool })
  const diagnostics = createDiagnostics({ database, clock, log, metrics })
  const authenticator = createAuthenticator({ database, clock, pepper: keys.pepper })
  const limits = createRateLimits({ scale: rateLimitScale })
  // Three quarters: one tenant alone still gets nearly all, and never all.
  const share = createFairShare(Math.max(1, Math.floor((poolSize * 3) / 4)))
  const pipeline = createPipeline<Context>({
    clock,
    authenticate: authenticator.authenticate,
    forget: authenticator.forget,
    consume: limits.consume,
    transact: (mode, caller, work) => share.run(caller.tenantId, () => database.transact(mode, caller, work)),
    idempotency: createIdempotency({ clock }),
    services: {
      catalogue: createCatalogue(),
      cursors: createCursors(keys.cursors),
      contract: { project: createContractSource(baseUrl) },
      diagnostics,
    },
    record: (outcome) => diagnostics.record(outcome),
    checkResponses,
  })
  const invoke: Invoke<Context> = async (operation, request) => {
    metrics.requestStarted()
    try {
      return await pipeline(operation, request)
    } finally {
      metrics.requestEnded()
    }
  }
  const http = createHttpSurface({
    families: [family('api', registry.operations, invoke)],
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
    async close() {
      stopMaintenance()
      await diagnostics.close()
      await database.close()
    },
  }
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
 * Contracts by what they depend on: the profile (model and roles), the kind and the scopes of the credential. Making one
 * takes 10 ms or more, so callers who differ in nothing share it; when the model changes, the profile does, and the old
 * ones go with it.
 */
function createContractSource(baseUrl: string): Context['contract']['project'] {
  const made = new WeakMap<AccessProfile, Map<string, Contract>>()
  return (caller, profile) => {
    const ofProfile = made.get(profile) ?? new Map<string, Contract>()
    made.set(profile, ofProfile)
    const key = [caller.credentialKind, ...[...caller.scopes].sort()].join(' ')
    const known = ofProfile.get(key)
    if (known) return known
    const objects = [...profile.objects.values()].map((access) => ({
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
    const contract = projectContract({ registry, caller, objects, baseUrl })
    ofProfile.set(key, contract)
    return contract
  }
}
