import { expect } from 'vitest'

/** A client that hides nothing: status, headers and body of every answer. */
export interface Answer<Body = unknown> {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Body
}

export interface ApiError {
  readonly error: string
  readonly code: string
  readonly correlationId: string
  readonly details?: readonly { readonly field: string; readonly code: string; readonly message: string }[]
}

export interface ApiRecord {
  readonly recordId: string
  readonly objectKey: string
  readonly displayName: string | null
  readonly fields: Readonly<Record<string, unknown>>
  readonly ownerUserId: string | null
  readonly dataRoleId: string | null
  readonly locationId: string | null
  readonly externalKey: string | null
  readonly createdAt: string
  readonly createdBy: { readonly kind: string; readonly id: string }
  readonly updatedAt: string
  readonly updatedBy: { readonly kind: string; readonly id: string }
  readonly archivedAt: string | null
  readonly revision: number
  readonly access: { readonly canUpdate: boolean; readonly canArchive: boolean }
  readonly expanded?: Readonly<Record<string, ApiRecord | null>>
}

export interface Page {
  readonly records: readonly ApiRecord[]
  readonly hasMore: boolean
  readonly page: number | null
  readonly pageSize: number
  readonly nextCursor: string | null
  readonly totalRecords?: number
  readonly totalIsExact?: boolean
}

type RequestHeaders = Readonly<Record<string, string>>

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Sends a request; every answer is held to what the contract says of all of them. */
export async function send<Body>(url: string, init: RequestInit = {}): Promise<Answer<Body>> {
  const response = await fetch(url, { redirect: 'manual', ...init })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json') === true
  expect(response.headers.get('x-correlation-id'), `${url} has a correlation id`).toMatch(uuid)
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: (isJson && text !== '' ? JSON.parse(text) : undefined) as Body,
  }
}

/** One application as one credential reaches it. */
export class Api {
  readonly base: string
  readonly #token: string | undefined

  constructor(baseUrl: string, saasAppId: string, token?: string) {
    this.base = `${baseUrl}/v1/apps/${saasAppId}`
    this.#token = token
  }

  send<Body>(method: string, path: string, body?: unknown, headers: RequestHeaders = {}): Promise<Answer<Body>> {
    return send<Body>(this.base + path, {
      method,
      headers: {
        ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  }

  get<Body>(path: string, headers: RequestHeaders = {}): Promise<Answer<Body>> {
    return this.send<Body>('GET', path, undefined, headers)
  }

  search(objectKey: string, body: unknown = {}): Promise<Answer<Page>> {
    return this.send('POST', `/objects/${objectKey}/records/search`, body)
  }

  create(objectKey: string, body: unknown, headers: RequestHeaders = {}): Promise<Answer<ApiRecord>> {
    return this.send('POST', `/objects/${objectKey}/records`, body, headers)
  }

  record<Body = ApiRecord>(method: string, of: ApiRecord, suffix = '', body?: unknown, headers: RequestHeaders = {}) {
    return this.send<Body>(method, `/objects/${of.objectKey}/records/${of.recordId}${suffix}`, body, headers)
  }
}

/** Holds a refusal to specification 2.2: these properties and no others, and the id that the header has. */
export function expectRefusal(answer: Answer, status: number, code: string): ApiError {
  const body = answer.body as ApiError
  expect([answer.status, body?.code], answer.text).toEqual([status, code])
  const { error, correlationId, details, ...rest } = body
  expect(rest).toEqual({ code })
  expect(error).toMatch(/^[A-Z].*\.$/)
  expect(correlationId).toBe(answer.headers.get('x-correlation-id'))
  for (const detail of details ?? []) expect(Object.keys(detail).sort()).toEqual(['code', 'field', 'message'])
  return body
}
