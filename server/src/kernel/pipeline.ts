import type { AnyCaller } from './caller.ts'
import { Failure, fail } from './errors.ts'
import {
  type Exchange,
  type PipelineParts,
  type Request,
  type Response,
  type Stage,
  StaleIdentity,
} from './exchange.ts'
import { execute } from './execute.ts'
import type { BaseContext, Operation } from './operation.ts'
import { failed } from './serialise.ts'
import {
  allowKind,
  authenticate,
  limitRate,
  matchApplication,
  requireActivity,
  requireScope,
  validate,
} from './steps.ts'

/**
 * The one way into an operation. HTTP and MCP both call `invoke`, so neither can skip a step. The steps run in the order
 * of the table `steps`; each is small, named by a verb, and either passes or throws a `Failure`.
 */
type Step = <Context extends BaseContext<AnyCaller>>(exchange: Exchange<Context>) => void | Promise<void>

const steps: readonly (readonly [name: string, step: Step])[] = [
  ['authenticate', authenticate],
  ['allow the credential kind', allowKind],
  ['match the application', matchApplication],
  ['require activity', requireActivity],
  ['require the scope', requireScope],
  ['limit the rate', limitRate],
  ['validate', validate],
  ['execute', execute],
]

export type Invoke<Context extends BaseContext<AnyCaller>> = (
  operation: Operation<Context>,
  request: Request,
) => Promise<Response>

export function createPipeline<Context extends BaseContext<AnyCaller>>(parts: PipelineParts<Context>): Invoke<Context> {
  return async function invoke(operation, request) {
    const started = performance.now()
    const exchange = { operation, request, parts, now: parts.clock.now() } as Exchange<Context>
    const stages: Stage[] = []
    let failure: Failure | undefined
    let response: Response
    try {
      await runSteps(exchange, stages)
      response = exchange.response
    } catch (error) {
      failure = error instanceof Failure ? error : fail('internal_error', { cause: error })
      response = failed(failure, request.correlationId, exchange.rate)
    }
    parts.record({
      correlationId: request.correlationId,
      operation: operation as unknown as Operation<never>,
      caller: exchange.caller,
      status: response.status,
      code: failure?.code,
      startedAtMs: exchange.now,
      durationMs: performance.now() - started,
      stages,
      failure,
    })
    return response
  }
}

async function runSteps<Context extends BaseContext<AnyCaller>>(
  exchange: Exchange<Context>,
  stages: Stage[],
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    stages.length = 0
    try {
      for (const [name, step] of steps) {
        const started = performance.now()
        try {
          // Most steps decide at once; awaiting only promises keeps a request from waiting a turn for each step.
          const pending = step(exchange)
          if (pending) await pending
        } finally {
          stages.push({ name, durationMs: performance.now() - started })
        }
      }
      return
    } catch (error) {
      const stale = error instanceof StaleIdentity || (attempt === 1 && (await isOutdated(exchange, error, stages)))
      // Rights can change again while they are read again, but not forever.
      if (!stale || attempt === 5) throw error
      exchange.parts.forget(exchange.caller)
    }
  }
}

/**
 * Does a refusal before the first transaction rest on a caller that has changed since? Without asking, who was just given
 * a scope, or just lost its credential, would be answered from memory. Asking costs an empty transaction; a used-up budget
 * is not asked about, since that refusal is there to make a flood cheap.
 */
async function isOutdated<Context extends BaseContext<AnyCaller>>(
  exchange: Exchange<Context>,
  refusal: unknown,
  stages: readonly Stage[],
): Promise<boolean> {
  const { caller, parts } = exchange
  if (!(refusal instanceof Failure) || refusal.code === 'rate_limited') return false
  if (caller === undefined || stages.at(-1)?.name === 'execute') return false
  // Who is refused before its budget was asked draws from it here: otherwise refusals would be free.
  if (exchange.rate === undefined) await limitRate(exchange)
  try {
    await parts.transact('read', caller, async () => undefined, {})
    return false
  } catch (error) {
    // A database that cannot say leaves the refusal as it is: it was right a moment ago.
    return error instanceof StaleIdentity
  }
}
