import type { Caller } from '../kernel/caller.ts'
import { type BaseContext, operationFor } from '../kernel/operation.ts'
import type { AccessProfile } from './access/permissions.ts'
import type { Catalogue } from './catalogue/catalogue.ts'
import type { Cursors } from './cursors.ts'
import type { Diagnostics } from './diagnostics.ts'
import type { Operations } from './operations/operations.ts'
import type { SafeFetch } from './safe-fetch/safe-fetch.ts'
import type { Secrets } from './secrets.ts'

/** What handlers receive beside the caller and the transaction. Wired once, in `main.ts`. */
export interface Context extends BaseContext {
  readonly catalogue: Catalogue
  readonly cursors: Cursors
  readonly contract: {
    /** The OpenAPI document as the caller may see it, canonical, with its fingerprint (specification 4.1). */
    project(caller: Caller, profile: AccessProfile): { readonly text: string; readonly sha256: string }
  }
  /**
   * Requests that still wait to be written. A handler must not flush: it holds a connection, the flush would wait for a
   * second one, and a pool full of such handlers would stand still.
   */
  readonly diagnostics: Pick<Diagnostics, 'find'>
  readonly secrets: Secrets
  /** Says whether requests may go where somebody wants them. A handler sends none: that is the work of workers. */
  readonly destinations: Pick<SafeFetch, 'check'>
  /** Work that goes on after the answer. */
  readonly operations: Operations
}

/** Declares an operation of this service; see `kernel/operation.ts`. */
export const operation = operationFor<Context>()
