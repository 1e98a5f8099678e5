import { type BaseContext, operationFor } from '../kernel/operation.ts'

/** What handlers receive beside the caller and the transaction. Wired once, in `main.ts`. */
export interface Context extends BaseContext {
  readonly diagnostics: {
    /** Writes what is still waiting, so that a request can be looked up right after its answer. */
    flush(): Promise<void>
  }
}

/** Declares an operation of this service; see `kernel/operation.ts`. */
export const operation = operationFor<Context>()
