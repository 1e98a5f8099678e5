import type { AnyCaller } from '../../kernel/caller.ts'
import type { Request, Response } from '../../kernel/exchange.ts'
import type { BaseContext, Operation } from '../../kernel/operation.ts'
import type { Invoke } from '../../kernel/pipeline.ts'

/** Operations behind one door: one host, one way to verify who calls. */
export interface Family {
  readonly host: 'api' | 'tenant'
  readonly operations: readonly Operation<never>[]
  invoke(operation: Operation<never>, request: Request): Promise<Response>
}

/** Operations and the pipeline that runs them, with the type of their context taken out of sight. */
export function family<Context extends BaseContext<AnyCaller>>(
  host: Family['host'],
  operations: readonly Operation<Context>[],
  invoke: Invoke<Context>,
): Family {
  return { host, operations, invoke } as unknown as Family
}
