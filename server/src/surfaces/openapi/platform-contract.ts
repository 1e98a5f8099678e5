import type { BuilderCaller } from '../../kernel/caller.ts'
import type { Operation } from '../../kernel/operation.ts'
import type { Contract } from './contract.ts'

/** The contract of `/v1/platform`, projected to the role of the member who asks. */
export function createPlatformContract(
  operations: readonly Operation<never>[],
  baseUrl: string,
): (caller: BuilderCaller) => Contract {
  return () => {
    throw new Error(`No contract of ${operations.length} operations at ${baseUrl} yet.`)
  }
}
