import { Agent, request } from 'undici'
import { rounded } from './report.ts'
import { type Kind, kinds, type Question, type Samples } from './search-questions.ts'
import type { Tenant } from './tenant.ts'

export interface Callers {
  readonly owner: string
  readonly 'role and location': string
  readonly participant: string
  readonly outsider: string
}
export type CallerName = keyof Callers

export interface Asking {
  /** Of the API of the application. */
  readonly base: string
  readonly tenant: Tenant
  readonly tokens: Callers
  readonly participantId: string
  readonly samples: Samples
  /** Only measures with this in their names. */
  readonly only: string
  /** Of each measure and caller. */
  readonly questions: number
}

export interface SearchFigures {
  readonly name: string
  readonly callers: { readonly [caller in CallerName]: { p50Ms: number; p95Ms: number; maxMs: number; asked: number } }
}

export interface Request {
  readonly path: string
  readonly body?: unknown
}

interface Measure {
  readonly name: string
  readonly requestFor: (n: number) => Request
}

const module = '/modules/contacts'
const everything = '/modules/global-search'
const listed = (path: string, query: Readonly<Record<string, string | number>>): Request => ({
  path: `${path}?${new URLSearchParams(Object.entries(query).map(([key, value]): [string, string] => [key, String(value)]))}`,
})
const searched = (body: object): Request => ({
  path: '/objects/contacts/records/search',
  body: { pageSize: 50, ...body },
})

function measuresOf({ tenant, samples }: Asking): Measure[] {
  const locationId = tenant.organization.locations.north
  const same = (name: string, request: Request): Measure => ({ name, requestFor: () => request })
  const each = (kind: Kind, name: string, make: (question: Question) => Request): Measure => ({
    name: `${name}: ${kind}`,
    requestFor: (n) => make(kinds[kind](n, samples)),
  })
  return [
    same('contacts: first page', listed(module, { pageSize: 50 })),
    same('contacts: page 100', listed(module, { pageSize: 50, pageNumber: 100 })),
    same('contacts of a location: first page', listed(module, { pageSize: 50, locationId })),
    same('contacts: count', listed(`${module}/count`, {})),
    same('contacts of a location: count', listed(`${module}/count`, { locationId })),
    same('records search: page 100', searched({ page: 100 })),
    same('possible duplicates: first page', listed(`${module}/duplicates`, {})),
    same('types of contacts', listed(`${module}/types`, {})),
    ...(Object.keys(kinds) as Kind[]).flatMap((kind) => [
      each(kind, 'contacts', (search) => listed(module, { search })),
      each(kind, 'contacts, count', (search) => listed(`${module}/count`, { search })),
      each(kind, 'records search', (search) => searched({ search })),
      each(kind, 'everything', (query) => listed(everything, { query })),
      each(kind, 'everything, count', (query) => listed(`${everything}/count`, { query })),
      each(kind, 'everything, suggestions', (query) => listed(`${everything}/suggest`, { query })),
    ]),
  ]
}

const agent = new Agent({ connections: 1 })

export async function ask<T>(base: string, token: string, { path, body }: Request): Promise<T> {
  const answer = await request(base + path, {
    dispatcher: agent,
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await answer.body.text()
  if (answer.statusCode !== 200) throw new Error(`${path}: ${answer.statusCode} ${text}`)
  return JSON.parse(text) as T
}

/** What takes long is asked less often. */
const patienceMs = 2_000

export async function askAll(asking: Asking, say: (sentence: string) => void): Promise<SearchFigures[]> {
  const figures: SearchFigures[] = []
  for (const measure of measuresOf(asking).filter(({ name }) => name.includes(asking.only))) {
    const callers: Record<string, object> = {}
    for (const [caller, token] of Object.entries(asking.tokens)) callers[caller] = await timed(asking, measure, token)
    figures.push({ name: measure.name, callers } as unknown as SearchFigures)
    say(
      `${measure.name}: ${Object.entries(callers)
        .map(([caller, figure]) => `${caller} ${Object.values(figure).slice(0, 3).join(' / ')}`)
        .join(', ')}`,
    )
  }
  return figures
}

/** Every question twice: the first time its pages may be cold, and what all of them share is not warm. */
async function timed({ base, questions }: Asking, { requestFor }: Measure, token: string) {
  const times: number[] = []
  const began = performance.now()
  for (const isWarm of [false, true]) {
    for (let n = 0; n < questions; n++) {
      const from = performance.now()
      await ask(base, token, requestFor(n))
      if (isWarm) times.push(performance.now() - from)
      if (performance.now() - began > (isWarm ? 2 : 1) * patienceMs && n >= 2) break
    }
  }
  times.sort((a, b) => a - b)
  const at = (share: number) => rounded(times[Math.ceil(times.length * share) - 1]!, 1)
  return { p50Ms: at(0.5), p95Ms: at(0.95), maxMs: at(1), asked: times.length }
}
