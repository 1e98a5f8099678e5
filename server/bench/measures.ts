import type { LoadPlan } from './load.ts'
import type { Tenant } from './tenant.ts'

/** What is measured: the same question to both servers, and the ratio that the service must reach (quality.md). */
export interface Measure {
  readonly name: string
  readonly connections: number
  readonly status: number
  /** Records in one request, where the rate that counts is that of records. */
  readonly recordsEach?: number
  readonly ratioMin?: number
  readonly service: readonly string[]
  readonly baseline: readonly string[]
}

interface Question {
  readonly method: 'GET' | 'POST'
  readonly path: string
  readonly token?: string
  readonly body?: unknown
  readonly idempotencyKey?: true
}

function httpRequest({ method, path, token, body, idempotencyKey }: Question): string {
  // Latin-1 on the wire: escape what is not ASCII, so that characters are bytes.
  const text = body === undefined ? undefined : JSON.stringify(body)
  return [
    `${method} ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...(idempotencyKey ? ['Idempotency-Key: {unique}'] : []),
    ...(text === undefined ? [] : ['Content-Type: application/json', `Content-Length: ${text.length}`]),
    '',
    text ?? '',
  ].join('\r\n')
}

export interface MeasureInput {
  readonly tenant: Tenant
  readonly dealIds: readonly string[]
  readonly companyIds: readonly string[]
  readonly connections: number
}

export function recordMeasures({ tenant, dealIds, companyIds, connections }: MeasureInput): Measure[] {
  const { organization } = tenant
  const service = (question: Question, token = organization.liveToken) =>
    httpRequest({ ...question, token, path: `/v1/apps/${tenant.appId}${question.path}` })
  const records = '/objects/deal/records'
  const searches = ['open', 'won', 'lost'].map((stage) => ({
    filter: { field: 'stage', op: 'eq', value: stage },
    sort: 'created_desc',
    pageSize: 50,
  }))
  const bodies = Array.from({ length: 1000 }, (_, n) => ({ fields: newFields(n, companyIds) }))
  const batches = Array.from({ length: 20 }, (_, n) =>
    bodies.slice(n * 50, n * 50 + 200).concat(bodies.slice(0, Math.max(0, n * 50 + 200 - bodies.length))),
  )
  const searchAs = (name: string, token: string, path: string, ratioMin?: number): Measure => ({
    name,
    connections,
    status: 200,
    ...(ratioMin !== undefined && { ratioMin }),
    service: searches.map((body) => service({ method: 'POST', path: `${records}/search`, body }, token)),
    baseline: searches.map((body) => httpRequest({ method: 'POST', path, body })),
  })
  const create = (name: string, keyed: { idempotencyKey?: true }): Measure => ({
    name,
    connections,
    status: 201,
    ratioMin: 0.5,
    service: bodies.map((body) => service({ method: 'POST', path: records, body, ...keyed })),
    baseline: bodies.map((body) => httpRequest({ method: 'POST', path: '/records', body, ...keyed })),
  })
  return [
    searchAs('search, live credential', organization.liveToken, '/search', 0.6),
    searchAs('  against one plan for everybody', organization.liveToken, '/search-fixed'),
    searchAs('search, user with role and location', organization.sales.token, '/search-as-sales', 0.6),
    searchAs('  against one plan for everybody', organization.sales.token, '/search-as-sales-fixed'),
    {
      name: 'get one record',
      connections,
      status: 200,
      ratioMin: 0.6,
      service: dealIds.map((id) => service({ method: 'GET', path: `${records}/${id}` })),
      baseline: dealIds.map((id) => httpRequest({ method: 'GET', path: `/records/${id}` })),
    },
    create('create', {}),
    create('create, Idempotency-Key', { idempotencyKey: true }),
    {
      name: 'batch of 200 creates',
      connections: 2,
      status: 200,
      recordsEach: 200,
      service: batches.map((batch) => {
        const items = batch.map((body) => ({ operation: 'create', ...body }))
        return service({ method: 'POST', path: `${records}:batch`, body: { items } })
      }),
      baseline: batches.map((items) => httpRequest({ method: 'POST', path: '/batch', body: { items } })),
    },
    {
      name: 'openapi.json, cached',
      connections: 1,
      status: 200,
      service: [service({ method: 'GET', path: '/openapi.json' })],
      baseline: [httpRequest({ method: 'GET', path: '/contract' })],
    },
  ]
}

function newFields(n: number, companyIds: readonly string[]) {
  return {
    name: `Expansion ${2026 + (n % 2)} no. ${n}`,
    stage: ['open', 'won', 'lost'][n % 3],
    amount: `${((n * 7919) % 90_000) + 500}.${String(n % 100).padStart(2, '0')}`,
    probability: (n % 90) / 100,
    closeDate: new Date(Date.UTC(2026, n % 12, (n % 28) + 1)).toISOString().slice(0, 10),
    company: companyIds[n % companyIds.length],
    notes: n % 4 === 0 ? 'Spoke about the expansion; next step is an offer.' : null,
  }
}

/** A question about records outside the table above. */
export function deepRequest(tenant: Tenant, token: string, path: string, body: unknown): string {
  return httpRequest({ method: 'POST', path: `/v1/apps/${tenant.appId}/objects/deal/records/${path}`, token, body })
}

export function planOf(measure: Measure, side: 'service' | 'baseline', port: number, durationMs: number): LoadPlan {
  const { connections, status } = measure
  return { port, connections, durationMs, requests: measure[side], status }
}
