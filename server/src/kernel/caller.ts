import type { BuilderRole } from './scopes.ts'

/**
 * Who is calling. A caller is made from a verified credential and from nothing else (specification 1): identifiers in
 * paths, bodies and headers select targets, they never widen or replace it. No caller means no access.
 */
export const credentialKinds = ['live', 'draft', 'bld', 'dat', 'drt', 'ses'] as const
export type CredentialKind = (typeof credentialKinds)[number]

/**
 * Credential kinds that act inside one application and one organisation, as opposed to a builder. `ses` is the session of
 * a user on the tenant host: it travels in a cookie, and nothing takes it as a bearer token.
 */
export type ApplicationCredentialKind = 'live' | 'draft' | 'dat' | 'ses'

/** What acts: a credential of one of the kinds, or nobody that is known yet. */
export type CallerKind = CredentialKind | 'none'

/** What is known of every caller, wherever it acts. */
export interface AnyCaller {
  readonly credentialKind: CallerKind
  readonly keyId: string
  /** The application that the caller is bound to; null for those who are bound to none. */
  readonly appId: string | null
  /** Whose data it works in: an organisation, or the account of a builder. Budgets and idempotency keys are kept by it. */
  readonly tenantId: string
  /** What a change by this caller is recorded under. */
  readonly actor: Actor
  readonly scopes: ReadonlySet<string>
}

export interface CallerUser {
  readonly userId: string
  readonly displayName: string
  readonly email: string
  readonly userTypeKey: string
  readonly isOwner: boolean
}

/** Acts inside one organisation of one application. */
export interface Caller extends AnyCaller {
  readonly credentialKind: ApplicationCredentialKind
  /** ISO 8601, or null where the credential does not expire. */
  readonly expiresAt: string | null
  readonly appId: string
  readonly organizationId: string
  readonly organizationName: string
  readonly organizationSlug: string
  /** Present on delegated credentials only. */
  readonly user: CallerUser | null
  readonly dataRoles: readonly { readonly dataRoleId: string; readonly key: string }[]
  readonly dataRoleIds: readonly string[]
  readonly locationIds: 'all' | readonly string[]
  /**
   * Sees and may do everything inside the organisation: its active owner, or a live credential without an envelope of
   * its own (data.md, envelope rule 5).
   */
  readonly unrestricted: boolean
  /** The state of the organisation and of the application that this caller was read at; see `shared/identity`. */
  readonly epochs: Epochs
}

/** Counters that move in the transaction of any change that could alter what a caller may do. */
export interface Epochs {
  readonly organization: string
  readonly application: string
}

/** A member of a builder account, signed in. Acts on what the account owns, never inside an organisation by itself. */
export interface BuilderCaller extends AnyCaller {
  readonly credentialKind: 'bld'
  readonly accountId: string
  readonly builderId: string
  readonly email: string
  readonly displayName: string
  readonly role: BuilderRole
  /** The state of the account that this caller was read at. */
  readonly accountEpoch: string
}

/** Somebody who has not signed in. Knows nothing and owns nothing; budgets are kept by its address. */
export interface Visitor extends AnyCaller {
  readonly credentialKind: 'none'
  readonly address: string
}

/** A visitor on the host of an organisation. */
export interface TenantVisitor extends Visitor {
  readonly appId: string
  readonly organizationId: string
  readonly organizationName: string
  readonly organizationSlug: string
}

/** What a record says of who changed it. */
export interface Actor {
  readonly kind: 'user' | 'credential' | 'builder' | 'visitor' | 'system'
  readonly id: string
}
