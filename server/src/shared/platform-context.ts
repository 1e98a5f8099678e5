import type { BuilderCaller, Visitor } from '../kernel/caller.ts'
import { type BaseContext, operationFor } from '../kernel/operation.ts'
import type { BillingCatalog } from './billing-catalog.ts'
import type { Cursors } from './cursors.ts'
import type { DomainOwnership } from './domain-ownership.ts'
import type { Mint } from './identity/mint.ts'
import type { Passwords } from './identity/passwords.ts'
import type { SignInThrottle } from './identity/sign-in-throttle.ts'
import type { Links } from './links.ts'
import type { MailQueue } from './mail/queue.ts'
import type { NativeObjects } from './modelling/native-objects.ts'
import type { Secrets } from './secrets.ts'

/** What builders and those who want to become one share. */
interface PlatformServices {
  readonly mint: Mint
  readonly passwords: Passwords
  readonly throttle: SignInThrottle
  readonly links: Links
  readonly mail: MailQueue
  readonly secrets: Secrets
}

/**
 * What handlers under `/v1/platform` receive. The transaction is bound to the account of the caller, and to the
 * application and the organisation that the path names as `{saasAppId}` and `{organizationId}`: they have been found to
 * be the account's. Every statement names them all the same.
 */
export interface PlatformContext extends BaseContext<BuilderCaller>, PlatformServices {
  readonly cursors: Cursors
  readonly domains: DomainOwnership
  readonly contract: {
    /** The OpenAPI document of what this member of the account may do, canonical, with its fingerprint. */
    project(caller: BuilderCaller): { readonly text: string; readonly sha256: string }
  }
  /** What accounts can subscribe to. */
  readonly billing: { readonly catalog: BillingCatalog }
  readonly modelling: {
    /** What every application is born with. */
    readonly nativeObjects: NativeObjects
    /** Builds the indexes that the fields of an application still wait for, in the background. Call it after the commit. */
    buildIndexes(saasAppId: string): void
  }
}

/** Declares an operation for members of a builder account. */
export const platformOperation = operationFor<PlatformContext>()

/** What those receive who sign in, accept an invitation to a team, or have forgotten their password. */
export interface VisitorContext extends BaseContext<Visitor>, PlatformServices {}

/** Declares an operation under `/v1/platform` that needs no credential. */
export const visitorOperation = operationFor<VisitorContext>()
