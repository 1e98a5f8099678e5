import type { AnyCaller } from './caller.ts'
import { type ErrorCode, errorTable } from './errors.ts'
import { type BaseContext, type Operation, takesIdempotencyKey } from './operation.ts'

/** All operations of the service, by id and by route. Built once, from the explicit list in `operations.ts`. */
export interface Registry<Context extends BaseContext<AnyCaller> = BaseContext> {
  readonly operations: readonly Operation<Context>[]
  get(id: string): Operation<Context> | undefined
}

/** Collects operations and refuses two with one id, or with one method and route. */
export function createRegistry<Context extends BaseContext<AnyCaller>>(operations: readonly Operation<Context>[]) {
  const byId = new Map<string, Operation<Context>>()
  const routes = new Set<string>()
  for (const operation of operations) {
    const route = `${operation.method} ${operation.path.replaceAll(/\{\w+\}/g, '{}')}`
    if (byId.has(operation.id)) throw new Error(`Two operations have the id ${operation.id}.`)
    if (routes.has(route)) throw new Error(`Two operations answer ${route}.`)
    byId.set(operation.id, operation)
    routes.add(route)
  }
  return { operations, get: (id: string) => byId.get(id) } satisfies Registry<Context>
}

const always: readonly ErrorCode[] = [
  'validation_failed',
  'unknown_field',
  'rate_limited',
  'internal_error',
  'database_unavailable',
  'query_too_expensive',
  'result_too_large',
  'shutting_down',
]

/** Where somebody has to say who it is. */
const ofCredentials: readonly ErrorCode[] = [
  'credential_missing',
  'credential_invalid',
  'credential_expired',
  'credential_kind_not_allowed',
]

/** Where the caller works inside one application and one organisation of it. */
const ofApplications: readonly ErrorCode[] = ['application_archived', 'organization_inactive', 'user_inactive']

/** On the host of an organisation, which may belong to nobody. */
const ofTenantHosts: readonly ErrorCode[] = ['organization_not_found', 'cross_site_request']

function doorCodesOf({ credentials, path }: Pick<Operation, 'credentials' | 'path'>): ErrorCode[] {
  const isOnTenantHost = path.startsWith('/api/')
  const isOpen = credentials.includes('none')
  const isForBuilders = credentials.includes('bld')
  return [
    ...(isOpen ? [] : ofCredentials),
    ...(isOnTenantHost ? ofTenantHosts : []),
    ...(isForBuilders || (isOpen && !isOnTenantHost) ? [] : ofApplications),
    ...(isForBuilders || isOpen ? [] : (['draft_credential_not_allowed'] as const)),
    ...(path.includes('{saasAppId}') ? (['application_not_found'] as const) : []),
    ...(path.includes('{organizationId}') ? (['organization_not_found'] as const) : []),
  ]
}

/** Every code that the operation can answer with: its own and those that its declaration implies. */
export function errorCodesOf(operation: Operation<never>): ErrorCode[] {
  const codes = new Set<ErrorCode>([...always, ...doorCodesOf(operation), ...operation.errors])
  if (operation.scope) codes.add('scope_missing')
  if (operation.body) {
    for (const code of ['invalid_json', 'json_too_deep', 'payload_too_large', 'unsupported_media_type'] as const) {
      codes.add(code)
    }
  }
  if (takesIdempotencyKey(operation)) {
    for (const code of ['idempotency_key_invalid', 'idempotency_key_reused', 'idempotency_in_progress'] as const) {
      codes.add(code)
    }
  }
  // Its answer is sealed for a replay, or opened for one.
  if (operation.confidential) codes.add('secrets_unavailable')
  // Not localeCompare: the order reaches the contract, whose bytes must not depend on a locale.
  return [...codes].sort((a, b) => errorTable[a].status - errorTable[b].status || (a < b ? -1 : 1))
}
