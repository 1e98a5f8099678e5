import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { expectRefusal, send } from '../support/api.ts'
import type { Target } from '../support/target.ts'

/** The document that clients are generated from, the log of one's own requests, and what the process tells of itself. */
export function walkContract(target: Target): void {
  interface OpenApi {
    readonly openapi: string
    readonly info: { readonly version: string }
    readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly operationId: string }>>>>
  }

  describe('openapi.json', () => {
    it('has the headers of specification 4.1, to the letter', async () => {
      const { status, headers, text, body } = await target.live.get<OpenApi>('/openapi.json')
      const sha256 = createHash('sha256').update(text).digest('hex')
      expect(status).toBe(200)
      expect(headers.get('x-service-contract-sha256')).toBe(sha256)
      expect(headers.get('etag')).toBe(`"${sha256}"`)
      expect(headers.get('cache-control')).toBe('private, no-store')
      expect(headers.get('content-type')).toMatch(/^application\/json/)
      expect([body.openapi, body.info.version]).toEqual(['3.1.1', '1.0.0-developer-platform'])
      const context = await target.live.get<{ contractSha256: string }>('/auth/context')
      expect(context.body.contractSha256).toBe(sha256)
    })

    it('answers 304 with the same headers to who holds it', async () => {
      const { headers } = await target.live.get('/openapi.json')
      const etag = headers.get('etag')!
      for (const held of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const unchanged = await target.live.get('/openapi.json', { 'if-none-match': held })
        expect([unchanged.status, unchanged.text]).toEqual([304, ''])
        for (const name of ['etag', 'x-service-contract-sha256', 'cache-control']) {
          expect(unchanged.headers.get(name)).toBe(headers.get(name))
        }
      }
      expect((await target.live.get('/openapi.json', { 'if-none-match': '"other"' })).status).toBe(200)
    })

    it('shows each credential what it could invoke, and the same to equals', async () => {
      const { credentials } = target.organization
      const read = async (token: string) => (await target.with(token).get<OpenApi>('/openapi.json')).body
      const ids = (document: OpenApi) =>
        Object.values(document.paths)
          .flatMap((path) => Object.values(path))
          .map((o) => o.operationId)
      const all = ids(await read(credentials.live))
      const reading = ids(await read(credentials.liveRecordsRead))
      const nothing = ids(await read(credentials.liveNoScopes))
      expect(all).toEqual(expect.arrayContaining(reading))
      expect(reading).toContain('developerRecordsSearch')
      expect(reading).not.toContain('developerRecordsCreate')
      expect(nothing).toContain('developerContractGet')
      expect(nothing).not.toContain('developerRecordsSearch')
      const again = await target.live.get('/openapi.json')
      expect(again.text).toBe((await target.live.get('/openapi.json')).text)
    })
  })

  describe('correlations', () => {
    it('tell what became of a request of one’s own', async () => {
      const refused = await target.live.create('deal', { fields: { name: 'x', amount: 'much' } })
      const { correlationId } = expectRefusal(refused, 400, 'field_value_invalid')
      const { status, body } = await target.live.get<Record<string, unknown>>(`/logs/correlations/${correlationId}`)
      expect(status).toBe(200)
      expect(body).toMatchObject({
        correlationId,
        operationId: 'developerRecordsCreate',
        method: 'POST',
        route: '/v1/apps/{saasAppId}/objects/{objectKey}/records',
        status: 400,
        code: 'field_value_invalid',
        credentialKind: 'live',
      })
      expect(Object.keys(body).sort()).toEqual([
        'code',
        'correlationId',
        'credentialKind',
        'durationMs',
        'entries',
        'method',
        'occurredAt',
        'operationId',
        'route',
        'stages',
        'status',
      ])
      expect(JSON.stringify(body)).not.toContain('much')
    })

    it('are found after they were written, too', async () => {
      const { headers } = await target.live.create('deal', { fields: { name: 'Logged' } })
      await new Promise((resolve) => setTimeout(resolve, 1500))
      const { body } = await target.live.get(`/logs/correlations/${headers.get('x-correlation-id')}`)
      expect(body).toMatchObject({ status: 201, code: null, operationId: 'developerRecordsCreate' })
    })

    it('of somebody else do not exist', async () => {
      const [, other] = target.app.organizations
      const theirs = await target.with(other!.credentials.live).search('deal')
      const id = theirs.headers.get('x-correlation-id')
      expectRefusal(await target.live.get(`/logs/correlations/${id}`), 404, 'correlation_not_found')
      expectRefusal(await target.live.get(`/logs/correlations/nonsense`), 400, 'validation_failed')
    })
  })

  describe('the process', () => {
    it('is alive and ready, and counts what it does', async () => {
      expect((await send(`${target.baseUrl}/healthz`)).body).toEqual({ status: 'ok' })
      expect((await send(`${target.baseUrl}/readyz`)).body).toEqual({ status: 'ready', checks: { database: true } })
      const { status, text, headers } = await send(`${target.baseUrl}/metrics`)
      expect(status).toBe(200)
      expect(headers.get('content-type')).toMatch(/^text\/plain/)
      expect(text).toMatch(/^# HELP /m)
      expect(text).toContain('developerAuthGetContext')
    })

    it('has a reference page that needs nobody else’s server', async () => {
      const { status, headers, text } = await send(`${target.baseUrl}/docs`)
      expect(status).toBe(200)
      expect(headers.get('content-type')).toMatch(/^text\/html/)
      expect(text).not.toMatch(/(src|href)="(https?:)?\/\//)
    })

    it('knows what it does not know', async () => {
      expectRefusal(await send(`${target.baseUrl}/v1/nothing`), 404, 'route_not_found')
      const wrong = await target.live.send('PUT', '/objects')
      expectRefusal(wrong, 405, 'method_not_allowed')
      expect(wrong.headers.get('allow')).toBe('GET, HEAD')
      const headers = { 'content-type': 'application/json' }
      const broken = {
        method: 'POST',
        body: '{"a":',
        headers: { ...headers, authorization: `Bearer ${target.organization.credentials.live}` },
      }
      const answer = await send(`${target.live.base}/objects/deal/records/search`, broken)
      expectRefusal(answer, 400, 'invalid_json')
      const typed = { ...broken, headers: { ...broken.headers, 'content-type': 'text/csv' } }
      expectRefusal(await send(`${target.live.base}/objects/deal/records/search`, typed), 415, 'unsupported_media_type')
    })

    it('sends the headers of every answer', async () => {
      const { headers } = await target.live.search('deal', { pageSize: 1 })
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      if (target.dataDir === undefined) return // somebody else's service may have other limits, or none
      expect(headers.get('ratelimit')).toMatch(/^"search";r=\d+;t=\d+$/)
      expect(headers.get('ratelimit-policy')).toBe('"search";q=3000;w=60')
    })
  })
}
