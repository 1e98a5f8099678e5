import { setTimeout as pause } from 'node:timers/promises'
import type { Entry, Ledger } from './ledger.ts'

/** The client of the fault tests: it creates deals, and keeps book of what it was told. */
export interface DealsAt {
  readonly baseUrl: string
  readonly saasAppId: string
  readonly token: string
}

export interface Attempt {
  readonly startedAt: number
  readonly endedAt: number
  /** The status of the answer, or why there was none. */
  readonly result: number | string
  readonly code?: string
  readonly retryAfter: string | null
  readonly replayed: boolean
}

function urlOf({ baseUrl, saasAppId }: DealsAt, path = ''): string {
  return `${baseUrl}/v1/apps/${saasAppId}/objects/deal/records${path}`
}

function headersOf({ token }: DealsAt): Record<string, string> {
  return { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
}

/** Sends a creation once, and notes in the entry what is known of it afterwards. */
export async function attemptCreation(at: DealsAt, entry: Entry): Promise<Attempt> {
  const startedAt = performance.now()
  try {
    const response = await fetch(urlOf(at), {
      method: 'POST',
      headers: { ...headersOf(at), 'idempotency-key': entry.key },
      body: JSON.stringify({ fields: { name: entry.name, stage: 'open', amount: '12.50' } }),
    })
    const body = (await response.json()) as { recordId?: string; code?: string }
    if (response.status === 201) {
      entry.outcome = 'acknowledged'
      entry.recordId = body.recordId!
    } else if (response.status < 500 && body.code !== 'idempotency_in_progress') {
      entry.outcome = 'refused'
    }
    return {
      startedAt,
      endedAt: performance.now(),
      result: response.status,
      ...(body.code !== undefined && { code: body.code }),
      retryAfter: response.headers.get('retry-after'),
      replayed: response.headers.get('idempotency-replayed') === 'true',
    }
  } catch (error) {
    const { code } = ((error as Error).cause ?? error) as { code?: string }
    // Nobody listens: what was not sent was not done.
    if (code === 'ECONNREFUSED') entry.outcome = 'refused'
    return {
      startedAt,
      endedAt: performance.now(),
      result: code ?? String(error),
      retryAfter: null,
      replayed: false,
    }
  }
}

export interface Writers {
  readonly attempts: readonly Attempt[]
  /** Lets what is on its way end. */
  stop(): Promise<void>
}

/** Writes as fast as answers come, several at a time. Whoever finds the door shut waits a moment and knocks again. */
export function startWriters(at: DealsAt, ledger: Ledger, count: number): Writers {
  const attempts: Attempt[] = []
  let stopping = false
  const writer = async () => {
    while (!stopping) {
      const attempt = await attemptCreation(at, ledger.open())
      attempts.push(attempt)
      if (attempt.result !== 201) await pause(20)
    }
  }
  const running = Array.from({ length: count }, writer)
  return {
    attempts,
    async stop() {
      stopping = true
      await Promise.all(running)
    },
  }
}

/** Repeats what nobody knows, under the same keys, until it is known. Resolves to how many had been done already. */
export async function settleUnknown(at: DealsAt, ledger: Ledger): Promise<number> {
  let replayed = 0
  for (const entry of ledger.with('unknown')) {
    for (let left = 50; entry.outcome === 'unknown'; left--) {
      if (left === 0) throw new Error(`${entry.name} cannot be settled.`)
      const attempt = await attemptCreation(at, entry)
      if (attempt.replayed) replayed++
      if (attempt.result !== 201) await pause(100)
    }
    if (entry.outcome !== 'acknowledged') throw new Error(`${entry.name} was refused when it was repeated.`)
  }
  return replayed
}

/** The records of a ledger, as a client finds them: by cursor, to the end. */
export async function findAll(at: DealsAt, prefix: string): Promise<{ recordId: string; name: string }[]> {
  const found: { recordId: string; name: string }[] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await searchPage(at, {
      filter: { field: 'name', op: 'startsWith', value: `${prefix}-` },
      sort: 'created_asc',
      pageSize: 200,
      fields: ['name'],
      ...(cursor && { cursor }),
    })
    found.push(...page.records.map(({ recordId, displayName }) => ({ recordId, name: displayName })))
    cursor = page.nextCursor
  }
  return found
}

interface Page {
  readonly records: readonly { readonly recordId: string; readonly displayName: string }[]
  readonly nextCursor: string | null
}

/** A read may be repeated as the service asks for it. */
async function searchPage(at: DealsAt, body: object): Promise<Page> {
  for (let left = 10; ; left--) {
    const response = await fetch(urlOf(at, '/search'), {
      method: 'POST',
      headers: headersOf(at),
      body: JSON.stringify(body),
    })
    if (response.ok) return (await response.json()) as Page
    const refusal = await response.text()
    if (response.status !== 503 || left === 0) throw new Error(`The search was refused: ${refusal}`)
    await pause(Number(response.headers.get('retry-after')) * 1000)
  }
}
