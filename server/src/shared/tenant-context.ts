import type { TenantVisitor } from '../kernel/caller.ts'
import { type BaseContext, operationFor } from '../kernel/operation.ts'
import type { Catalogue } from './catalogue/catalogue.ts'
import type { Mint } from './identity/mint.ts'
import type { Passwords } from './identity/passwords.ts'
import type { SignInThrottle } from './identity/sign-in-throttle.ts'
import type { Links } from './links.ts'
import type { MailQueue } from './mail/queue.ts'
import type { SessionCookie } from './session-cookie.ts'

interface TenantServices {
  readonly catalogue: Catalogue
  readonly mint: Mint
  readonly passwords: Passwords
  readonly throttle: SignInThrottle
  readonly links: Links
  readonly mail: MailQueue
  readonly cookie: SessionCookie
}

/** What handlers of `/api/*` on the tenant host receive: a user of the organisation, signed in with a cookie. */
export interface TenantContext extends BaseContext, TenantServices {}

/** Declares an operation for users who are signed in on the host of their organisation. */
export const tenantOperation = operationFor<TenantContext>()

/** What those receive who are not signed in: the transaction is bound to the organisation whose host was asked. */
export interface TenantVisitorContext extends BaseContext<TenantVisitor>, TenantServices {}

/** Declares an operation on the tenant host that needs no session. */
export const tenantVisitorOperation = operationFor<TenantVisitorContext>()
