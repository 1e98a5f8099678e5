import { deepRequest } from './measures.ts'
import type { Contestant, LoadClient } from './processes.ts'
import { aligned, median, rounded } from './report.ts'
import type { Tenant } from './tenant.ts'

/** What must not grow with the size of an organisation: the page that a cursor leads to, and exact counts. */
export interface Depth {
  readonly measure: string
  readonly p50Ms: number
  /** Page 10,000 against page 1; null for counts. */
  readonly ratio: number | null
  readonly must: string
}

const page = 10_000
const pageSize = 50

export async function measureDepth(client: LoadClient, service: Contestant, tenant: Tenant): Promise<Depth[]> {
  const { liveToken, sales } = tenant.organization
  const results: Depth[] = []
  for (const sort of ['created_desc', 'amount_asc']) {
    const first = { sort, pageSize }
    const deep = { ...first, cursor: await cursorTo(service, tenant, sort) }
    const times = { first: [] as number[], deep: [] as number[] }
    for (let round = 0; round < 5; round++) {
      times.first.push(await p50Of(client, service, deepRequest(tenant, liveToken, 'search', first)))
      times.deep.push(await p50Of(client, service, deepRequest(tenant, liveToken, 'search', deep)))
    }
    const [p50First, p50Deep] = [median(times.first), median(times.deep)]
    const name = `cursor to page ${page}, ${sort}`
    results.push({ measure: name, p50Ms: rounded(p50Deep, 2), ratio: rounded(p50Deep / p50First, 2), must: '≤ 1.5×' })
  }
  const counts = [
    { who: 'live credential', token: liveToken, must: '≤ 150 ms' },
    { who: 'user with role and location', token: sales.token, must: '' },
  ]
  for (const { who, token, must } of counts) {
    const p50Ms = await p50Of(client, service, deepRequest(tenant, token, 'count', {}))
    results.push({ measure: `exact count, ${who}`, p50Ms: rounded(p50Ms, 1), ratio: null, must })
  }
  return results
}

async function p50Of(client: LoadClient, { port }: Contestant, request: string): Promise<number> {
  const { p50Ms } = await client.run({ port, connections: 1, durationMs: 2000, requests: [request], status: 200 })
  return p50Ms
}

/** The cursor that continues behind page 10,000, from one request by page number. */
async function cursorTo({ port }: Contestant, tenant: Tenant, sort: string): Promise<string> {
  const largest = 200
  const answer = await fetch(`http://127.0.0.1:${port}/v1/apps/${tenant.appId}/objects/deal/records/search`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.organization.liveToken}`, 'content-type': 'application/json' },
    body: JSON.stringify({ sort, pageSize: largest, page: (page * pageSize) / largest }),
  })
  const { nextCursor } = (await answer.json()) as { nextCursor: string | null }
  if (nextCursor === null) throw new Error(`There is no page ${page}.`)
  return nextCursor
}

export function depthTable(rows: readonly Depth[]): string {
  const cells = rows.map(({ measure, p50Ms, ratio, must }) => [
    measure,
    `${p50Ms}`,
    ratio === null ? '' : ratio.toFixed(2),
    must,
  ])
  return aligned([['', 'p50 ms', 'against page 1', 'must'], ...cells])
}
