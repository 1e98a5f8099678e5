import { fail } from '../../kernel/errors.ts'
import type { Operation } from '../../kernel/operation.ts'
import { type Context, operation } from '../../shared/context.ts'
import { CorrelationParams, RequestDiagnostics } from './schema.ts'
import { findRequest } from './store.ts'

const getCorrelation = operation({
  id: 'developerLogsGetCorrelation',
  method: 'GET',
  path: '/v1/apps/{saasAppId}/logs/correlations/{correlationId}',
  area: 'Diagnostics',
  summary: 'Read what is known of a request by its correlation id.',
  description: `What became of one request of the caller's own organization: its outcome, the steps it took, and what was
wrong, in names and never in values. Kept for 7 days. Every change is kept; reads and failures are sampled beyond 200 a
second. A request is known to other processes within a second.`,
  credentials: ['live', 'dat'],
  scope: 'logs.read',
  rateClass: 'read',
  transaction: 'read',
  mcp: true,
  params: CorrelationParams,
  responses: { 200: RequestDiagnostics },
  errors: ['correlation_not_found'],

  async handler({ caller, tx, diagnostics, now }, { params }) {
    const correlationId = params.correlationId.toLowerCase()
    // In this order: a request leaves the queue only after its row can be read.
    const request = diagnostics.find(caller, correlationId) ?? (await findRequest(tx, caller, correlationId, now))
    if (!request) throw fail('correlation_not_found')
    return { status: 200, body: request }
  },
})

export const diagnosticsOperations: readonly Operation<Context>[] = [getCorrelation]
