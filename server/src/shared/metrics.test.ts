import { expect, test } from 'vitest'
import type { Outcome } from '../kernel/exchange.ts'
import type { Operation } from '../kernel/operation.ts'
import { createMetrics } from './metrics.ts'

const outcome = (id: string, status: number, durationMs: number, code?: Outcome['code']): Outcome => ({
  correlationId: 'canary-correlation',
  operation: { id, rateClass: 'search' } as Operation<never>,
  caller: { keyId: 'canary-key', tenantId: 'canary-organization' } as Outcome['caller'],
  status,
  code,
  startedAtMs: 0,
  durationMs,
  stages: [],
  failure: undefined,
})

test('durations are counted by operation and status, and by nothing that a request brings', async () => {
  const metrics = createMetrics()
  metrics.observe(outcome('developerRecordsSearch', 200, 4))
  metrics.observe(outcome('developerRecordsSearch', 200, 40))
  metrics.observe(outcome('developerRecordsSearch', 429, 0.1, 'rate_limited'))
  const text = await metrics.metricsText()
  expect(text).toContain(
    'portico_operation_duration_seconds_bucket{le="0.005",operation="developerRecordsSearch",status="200"} 1',
  )
  expect(text).toContain('portico_operation_duration_seconds_count{operation="developerRecordsSearch",status="200"} 2')
  expect(text).toContain('portico_operation_duration_seconds_count{operation="developerRecordsSearch",status="429"} 1')
  expect(text).toContain('portico_rate_limited_total{rate_class="search"} 1')
  expect(text).not.toContain('canary')
})

test('gauges are read when they are asked for', async () => {
  let waiting = 1
  const metrics = createMetrics({ pool: () => ({ total: 10, idle: 3, waiting }) })
  metrics.requestStarted()
  metrics.requestStarted()
  metrics.requestEnded()
  metrics.diagnosticsDropped(5)
  waiting = 7
  const text = await metrics.metricsText()
  expect(text).toMatch(/^portico_requests_in_flight 1$/m)
  expect(text).toMatch(/^portico_database_connections 10$/m)
  expect(text).toMatch(/^portico_database_connections_idle 3$/m)
  expect(text).toMatch(/^portico_database_waiting 7$/m)
  expect(text).toMatch(/^portico_diagnostics_dropped_total 5$/m)
  expect(text).toMatch(/^process_resident_memory_bytes \d+$/m)
  expect(metrics.contentType).toContain('text/plain')
})
