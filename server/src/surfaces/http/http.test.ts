import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { isUuid } from '../../kernel/ids.ts'
import { appId, at, call, type Sent, sendRaw, startSurface, streamed, thingId, token } from './http-test-support.ts'

let service: Awaited<ReturnType<typeof startSurface>>
beforeAll(async () => {
  service = await startSurface()
})
afterAll(() => service.surface.drain(2_000))

const get = (path: string, sent?: Sent) => call(service.port, 'GET', path, sent)
const post = (path: string, sent?: Sent) => call(service.port, 'POST', path, sent)
const create = (body: string | Uint8Array, headers = {}) => post(at('/things'), { body, headers })

describe('streams', () => {
  test('leave whole, with the headers of every answer; HEAD asks for nothing of them', async () => {
    const answer = await get(at('/stream?chunks=3'))
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/plain', 'x-content-type-options': 'nosniff' },
    })
    expect(answer.text).toBe('x'.repeat(3 * 1024 * 1024))
    expect(isUuid(answer.headers['x-correlation-id'])).toBe(true)
    const before = streamed.chunks
    const head = await call(service.port, 'HEAD', at('/stream?chunks=3'))
    expect([head.status, head.text, streamed.chunks]).toEqual([200, '', before])
  })

  test('that fail end the connection, so that nobody takes a part for the whole', async () => {
    await expect(get(at('/stream?chunks=1&breaksOff=true'))).rejects.toThrow(/aborted|socket hang up|terminated/)
    expect(service.errors.splice(0)).toMatchObject([{ err: { message: 'secret words of a stream' } }])
  })

  test('are made at the pace of whoever reads them', async () => {
    const before = streamed.chunks
    const socket = connect(service.port, '127.0.0.1')
    socket.pause()
    socket.write(
      `GET ${at('/stream?chunks=500')} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    )
    let last = -1
    while (streamed.chunks === before || streamed.chunks !== last) {
      last = streamed.chunks
      await pause(200)
    }
    expect(streamed.chunks - before).toBeLessThan(100)
    socket.destroy()
  })
})

describe('routes', () => {
  test('an action after a colon is its own route, and its parameter holds no colon', async () => {
    const answer = await post(at(`/things/${thingId}:restore`))
    expect(answer).toMatchObject({ status: 200, json: { restored: thingId } })
    const batch = await post(at('/things:batch'), { body: '{"items":[1,2]}' })
    expect(batch).toMatchObject({ status: 200, json: { count: 2 } })
  })

  test('a wrong method on an action is 405 and names the right one; an unknown action is 404', async () => {
    const wrong = await get(at(`/things/${thingId}:restore`))
    expect(wrong).toMatchObject({ status: 405, json: { code: 'method_not_allowed' }, headers: { allow: 'POST' } })
    expect((await post(at(`/things/${thingId}:explode`))).json['code']).toBe('route_not_found')
    expect((await get(at('/things:batch'))).headers['allow']).toBe('POST')
  })

  test('a parameter is one segment, decoded once', async () => {
    const put = (key: string) => call(service.port, 'PUT', at(`/things/by-key/${key}`))
    expect((await put('a%2Fb%20%C3%A9:1')).json['externalKey']).toBe('a/b é:1')
    expect((await put('a/b')).status).toBe(404)
    expect((await put(encodeURIComponent('😀'.repeat(255)))).json['externalKey']).toBe('😀'.repeat(255))
    expect((await put('x'.repeat(4000))).json['code']).toBe('route_not_found')
  })

  test.each(['PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'TRACE', 'QUERY'])('%s is 405 with Allow', async (method) => {
    const answer = await call(service.port, method, at('/things'))
    expect(answer).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD, POST' } })
    expect(isUuid(answer.headers['x-correlation-id'])).toBe(true)
  })

  test('an unknown route is 404, also with a trailing slash or another case', async () => {
    for (const path of ['/v1/nothing', at('/things/'), at('/Things'), '/v1/apps//things', '/v1']) {
      const answer = await get(path)
      expect(answer.json).toMatchObject({ code: 'route_not_found', correlationId: answer.headers['x-correlation-id'] })
      expect(answer.status).toBe(404)
    }
  })

  test('HEAD answers like GET, without a body', async () => {
    const answer = await call(service.port, 'HEAD', at(`/things/${thingId}`))
    const same = await get(at(`/things/${thingId}`))
    expect(answer).toMatchObject({ status: 200, text: '', headers: { etag: '"7"' } })
    expect(answer.headers['content-length']).toBe(same.headers['content-length'])
  })

  test('percent-encoding that is not valid is a catalogued 400', async () => {
    for (const path of [at('/things/%zz'), at('/things/%C3%28'), at('/things/%'), '/%ff']) {
      const answer = await get(path)
      expect(answer.status, path).toBeOneOf([400, 404])
      expect(answer.json['code'], path).toBeOneOf(['malformed_request', 'route_not_found'])
      expect(isUuid(answer.headers['x-correlation-id'])).toBe(true)
    }
  })

  test('an absolute request target reaches the same route', async () => {
    const path = `http://127.0.0.1:${service.port}${at('/things')}`
    expect((await get(path)).status).toBe(200)
  })
})

describe('headers', () => {
  test('a correlation id is issued for each request, and a client cannot choose it', async () => {
    const chosen = '0199a1b2-0000-7000-8000-000000000bad'
    const answer = await get(at('/things'), { headers: { 'x-correlation-id': chosen, 'x-request-id': chosen } })
    const id = answer.headers['x-correlation-id']
    expect(isUuid(id)).toBe(true)
    expect(id).not.toBe(chosen)
    expect(service.outcomes.at(-1)!.correlationId).toBe(id)
  })

  test('every answer forbids sniffing, tells nothing of the software, and has no CORS headers', async () => {
    const { headers } = await get(at('/things'), { headers: { origin: 'https://evil.example' } })
    expect(headers['x-content-type-options']).toBe('nosniff')
    expect(headers['content-type']).toBe('application/json; charset=utf-8')
    expect(Object.keys(headers).filter((name) => /^access-control|powered|^server$/.test(name))).toEqual([])
  })

  test('the length counts bytes, not characters', async () => {
    const answer = await create(JSON.stringify({ name: 'é😀' }))
    expect(Number(answer.headers['content-length'])).toBe(Buffer.byteLength(answer.text))
    expect(answer.json).toEqual({ body: { name: 'é😀' } })
  })

  test.each(['"7"', 'W/"7"', '"1", "7"', '*', ' "0",W/"7" '])('If-None-Match: %s is 304', async (held) => {
    const answer = await get(at(`/things/${thingId}`), { headers: { 'if-none-match': held } })
    expect(answer).toMatchObject({ status: 304, text: '', headers: { etag: '"7"' } })
    expect(answer.headers['x-correlation-id']).toBeDefined()
  })

  test('If-None-Match with another tag is answered in full', async () => {
    const answer = await get(at(`/things/${thingId}`), { headers: { 'if-none-match': '"8", 7, "77"' } })
    expect(answer.status).toBe(200)
  })
})

describe('credentials', () => {
  const metadata = `http://127.0.0.1:8080/.well-known/oauth-protected-resource/v1/apps/${appId}/mcp`

  test('the scheme is case-insensitive', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      expect((await get(at('/things'), { headers: { authorization: `${scheme} ${token}` } })).status).toBe(200)
    }
  })

  test('no credential is 401 and says where to get one; a token in the query string is only an unknown name', async () => {
    const bare = await call(service.port, 'GET', at(`/things?token=${token}&access_token=${token}`), {
      headers: { authorization: undefined },
    })
    expect(bare).toMatchObject({ status: 401, json: { code: 'credential_missing' } })
    expect(bare.headers['www-authenticate']).toBe(`Bearer resource_metadata="${metadata}"`)
    const named = await get(at(`/things?access_token=${token}`))
    expect(named).toMatchObject({ status: 400, json: { code: 'unknown_field' } })
  })

  test.each(['Basic dXNlcjpwdw==', token, 'Bearer', 'Bearer ', `Bearer ${token} x`, 'Bearer "a"', ''])(
    'Authorization: %s is not valid',
    async (authorization) => {
      const answer = await get(at('/things'), { headers: { authorization } })
      expect(answer).toMatchObject({ status: 401, json: { code: 'credential_invalid' } })
    },
  )

  test('two Authorization headers are refused, whichever comes first', async () => {
    const authorization = [`Bearer ${token}`, `Bearer ${token}`]
    const answer = await get(at('/things'), { headers: { authorization } })
    expect(answer.json['code']).toBe('credential_invalid')
  })

  test('a challenge never repeats what a client put into the path', async () => {
    const answer = await get('/v1/apps/x%22%0d%0aset-cookie:a/things', { headers: { authorization: 'x' } })
    expect(answer.headers['www-authenticate']).toBe('Bearer')
    expect(answer.headers['set-cookie']).toBeUndefined()
  })
})

describe('query strings', () => {
  test('repeated names become a list, and names of prototypes stay names', async () => {
    const answer = await get(at('/things?tag=a&tag=b%20c&q=%E0%A4%A'))
    expect(answer.json).toEqual({ query: { tag: ['a', 'b c'], q: '%E0%A4%A' } })
    for (const name of ['__proto__', 'constructor', 'hasOwnProperty']) {
      const refused = await get(at(`/things?${name}=x&${name}=y`))
      expect(refused.json, name).toMatchObject({ code: 'unknown_field', details: [{ field: name }] })
    }
  })
})

describe('bodies', () => {
  test.each(['application/json', 'text/json', 'Application/Vnd.Thing+JSON; charset="UTF-8"; v=1'])(
    '%s is read',
    async (type) => {
      expect((await create('{"name":1}', { 'content-type': type })).status).toBe(201)
    },
  )

  test.each([
    ['text/plain', 'Content-Type'],
    ['application/json; charset=latin1', 'Content-Type'],
    ['application/jsonp', 'Content-Type'],
    ['garbage', 'Content-Type'],
    [undefined, 'Content-Type'],
  ])('media type %j is 415', async (type, field) => {
    const answer = await create('{"name":1}', { 'content-type': type })
    expect(answer).toMatchObject({ status: 415, json: { code: 'unsupported_media_type', details: [{ field }] } })
  })

  test('a compressed body is 415, not bad JSON', async () => {
    const answer = await create('{"name":1}', { 'content-encoding': 'gzip' })
    expect(answer).toMatchObject({ status: 415, json: { details: [{ field: 'Content-Encoding' }] } })
  })

  test('bad JSON is 400 and names the position', async () => {
    const cases: readonly [body: string, field: string][] = [
      ['{"name": x}', 'position 9'],
      ['{"name": "a" "b"}', 'position 13'],
      ['{"name": [1,2,]}', 'position 14'],
      ['{"name": "\u0001"}', 'position 9'],
      ['{"name"', 'position 7'],
      ['{"name":1}}', 'position 10'],
      ["{'name':1}", 'position 1'],
      ['{"name":01}', 'position 9'],
      ['{"name":"\\x"}', 'position 8'],
      [' ', 'position 1'],
      ['{"name":1,}', 'position 10'],
      ['[1}', 'position 2'],
      ['NaN', 'position 0'],
    ]
    for (const [body, field] of cases) {
      const answer = await create(body)
      expect(answer, body).toMatchObject({ status: 400, json: { code: 'invalid_json', details: [{ field }] } })
    }
  })

  test('names of prototypes and bytes that are not UTF-8 are refused; as values they are plain text', async () => {
    for (const body of ['{"name":{"__proto__":{"a":1}}}', '{"name":{"constructor":{"prototype":1}}}']) {
      expect((await create(body)).json, body).toMatchObject({ code: 'invalid_json', details: [{ field: '__proto__' }] })
    }
    expect((await create(Buffer.from([0x22, 0xff, 0x22]))).json).toMatchObject({ code: 'invalid_json' })
    expect((await create('{"name":"__proto__"}')).json).toEqual({ body: { name: '__proto__' } })
  })

  test('nesting of 64 levels is read; 65, and a million, are refused at once', async () => {
    const nested = (levels: number) => `{"name":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
    expect((await create(nested(64))).status).toBe(201)
    expect((await create(nested(65))).json['code']).toBe('json_too_deep')
    expect((await create('['.repeat(1_000_000))).json['code']).toBe('json_too_deep')
  })

  test('brackets inside strings are not levels', async () => {
    const name = `${'["\\'.repeat(200)}é`
    expect((await create(JSON.stringify({ name }))).json).toEqual({ body: { name } })
  })

  test('an empty body is none', async () => {
    const details = [{ field: 'body', code: 'invalid_json', message: 'A JSON body is required.' }]
    expect((await create('')).json).toMatchObject({ code: 'invalid_json', details })
  })

  test('a body of exactly the limit is read; one byte more is 413, declared or chunked', async () => {
    const sized = (size: number) => `{"items":["${'x'.repeat(size - 14)}"]}`
    const batch = (body: string, headers = {}) => post(at('/things:batch'), { body, headers })
    expect((await batch(sized(1000))).status).toBe(200)
    expect((await batch(sized(1001))).json['code']).toBe('payload_too_large')
    expect((await batch(sized(1000), { 'transfer-encoding': 'chunked' })).status).toBe(200)
    expect((await batch(sized(1001), { 'transfer-encoding': 'chunked' })).json['code']).toBe('payload_too_large')
  })

  test('a client that sends far more than the limit still reads its 413', async () => {
    const answer = await create(`{"name":"${'x'.repeat(8 * 1024 * 1024)}"}`)
    expect(answer).toMatchObject({ status: 413, json: { code: 'payload_too_large' } })
  })

  test('a caller without a credential learns nothing about its body', async () => {
    const headers = { authorization: 'Bearer nobody' }
    for (const body of ['{', 'x'.repeat(2_000_000), '['.repeat(100_000)]) {
      expect((await create(body, headers)).json['code']).toBe('credential_invalid')
    }
    expect((await create('{', { ...headers, 'content-type': 'garbage' })).json['code']).toBe('credential_invalid')
  })

  test('a client that leaves in the middle of its body does no harm', async () => {
    const head = `POST ${at('/things')} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\nContent-Length: 100\r\n`
    const before = service.outcomes.length
    const { connect } = await import('node:net')
    const socket = connect(service.port, '127.0.0.1')
    socket.write(`${head}\r\n{"na`, () => setTimeout(() => socket.resetAndDestroy(), 30))
    await new Promise((resolve) => socket.once('close', resolve))
    expect((await get(at('/things'))).status).toBe(200)
    expect(service.outcomes.slice(before).map((outcome) => outcome.code)).toEqual(['malformed_request', undefined])
    expect(service.errors).toEqual([])
  })

  test('a body that drips is answered 408 after a minute, and its connection ends', async () => {
    const { connect } = await import('node:net')
    vi.useFakeTimers({ toFake: ['setTimeout'] })
    try {
      const socket = connect(service.port, '127.0.0.1')
      let answer = ''
      let ended = false
      socket.on('data', (bytes) => {
        answer += bytes
      })
      socket.on('close', () => {
        ended = true
      })
      socket.write(`${head('Content-Length: 100\r\n', token)}{"na`)
      for (let turn = 0; !ended && turn < 5000; turn++) {
        // A second at a time, each some turns of the event loop, in which the head arrives and the answer leaves.
        if (turn % 10 === 9) vi.advanceTimersByTime(1000)
        await new Promise((resolve) => setImmediate(resolve))
      }
      expect(answer).toMatch(/^HTTP\/1\.1 408 /)
      expect(answer).toContain('"code":"request_timeout"')
      expect(ended).toBe(true)
    } finally {
      vi.useRealTimers()
    }
  })

  const head = (more: string, bearer = 'nobody') =>
    `POST ${at('/things')} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${bearer}\r\nContent-Type: application/json\r\n${more}\r\n`
  const statuses = (answers: string) => answers.match(/HTTP\/1\.1 \d+/g)?.map((line) => Number(line.slice(9)))

  test('strangers are refused before any of the megabytes that they announce', async () => {
    const { connect } = await import('node:net')
    for (const length of ['Content-Length: 8000000', 'Transfer-Encoding: chunked']) {
      const sockets = Array.from({ length: 50 }, () => connect(service.port, '127.0.0.1'))
      const answers = sockets.map(async (socket) => {
        socket.write(head(`${length}\r\n`))
        // The body never comes; whoever waits for it answers nothing.
        const [answer] = await once(socket, 'data')
        socket.destroy()
        return String(answer)
      })
      for (const answer of await Promise.all(answers)) expect(answer).toMatch(/^HTTP\/1.1 401 /)
    }
  })

  test('a connection goes on after a body that nobody wanted', async () => {
    const bytes = 3_000_000
    const refused = `${head(`Content-Length: ${bytes}\r\n`)}${' '.repeat(bytes)}`
    const nowhere = `POST /v1/nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n${' '.repeat(100_000)}`
    const last = `${head('Content-Length: 10\r\nConnection: close\r\n', token)}{"name":1}`
    expect(statuses(await sendRaw(service.port, refused + nowhere + last))).toEqual([401, 404, 201])
  })

  test('a connection ends where more is announced than is worth reading', async () => {
    const answer = await sendRaw(service.port, head('Content-Length: 99000000000\r\n'))
    expect(statuses(answer)).toEqual([401])
    expect(answer).toMatch(/^connection: close\r$/im)
  })

  test('Expect: 100-continue is granted when the body is wanted, and only then', async () => {
    const expecting = 'Expect: 100-continue\r\nConnection: close\r\n'
    const wanted = await sendRaw(service.port, `${head(`${expecting}Content-Length: 10\r\n`, token)}{"name":1}`)
    expect(statuses(wanted)).toEqual([100, 201])
    expect(statuses(await sendRaw(service.port, head(`${expecting}Content-Length: 10\r\n`)))).toEqual([401])
    const tooLarge = await sendRaw(service.port, head(`${expecting}Content-Length: 8000000\r\n`, token))
    expect(statuses(tooLarge)).toEqual([413])
  })
})

describe('failures', () => {
  test('an unexpected failure is 500 and its words stay inside', async () => {
    const answer = await get(at('/broken'))
    expect(answer).toMatchObject({ status: 500, json: { code: 'internal_error' } })
    expect(answer.text).not.toContain('secret words')
    expect(service.outcomes.at(-1)!.failure?.cause).toBeInstanceOf(Error)
  })

  test.each([
    ['nonsense\r\n\r\n', 400, 'malformed_request'],
    ['GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n', 400, 'malformed_request'],
    [`GET / HTTP/1.1\r\nHost: a\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'request_headers_too_large'],
    [`GET ${at('/things')} HTTP/1.1\r\nConnection: close\r\n\r\n`, 400, 'malformed_request'],
    [`GET ${at('/things')} HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n`, 400, 'malformed_request'],
  ])('bytes that are not HTTP are answered with a code and a correlation id (%#)', async (bytes, status, code) => {
    const answer = await sendRaw(service.port, bytes)
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    expect(answer).toMatch(/^x-correlation-id: [0-9a-f-]{36}\r$/im)
    expect(answer).toContain(`"code":"${code}"`)
  })

  test('an unknown expectation is ignored', async () => {
    expect((await get(at('/things'), { headers: { expect: 'miracles' } })).status).toBe(200)
  })
})

describe('connections', () => {
  const getSlow = `GET ${at('/slow')} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n`

  test('who stops reading is cut, and who waits for a slow answer is not', async () => {
    const { surface, port } = await startSurface({ stalledAfterMs: 600 })
    const { connect } = await import('node:net')
    const stalled = connect(port, '127.0.0.1')
    const gone = new Promise<void>((resolve) => stalled.once('close', () => resolve()))
    stalled.on('error', () => undefined)
    stalled.write(`${getSlow.replace('/slow', '/huge')}Connection: close\r\n\r\n`)
    await once(stalled, 'data')
    stalled.pause()
    expect((await call(port, 'GET', at('/slow'))).status).toBe(200)
    await new Promise((resolve) => setTimeout(resolve, 2_000))
    // What the operating systems had on the way still arrives; the rest of the 32 MB does not.
    stalled.resume()
    await gone
    expect(stalled.bytesRead).toBeLessThan(32 * 1024 * 1024)
    await surface.drain(1_000)
  })

  test('64 requests may be at work on one connection; with one more it is cut', async () => {
    const allowed = await sendRaw(service.port, `${`${getSlow}\r\n`.repeat(63)}${getSlow}Connection: close\r\n\r\n`)
    expect(allowed.match(/HTTP\/1\.1 200/g)).toHaveLength(64)
    const cut = await sendRaw(service.port, `${getSlow}\r\n`.repeat(65)).catch(() => '')
    expect(cut).toBe('')
    expect((await get(at('/things'))).status).toBe(200)
  })
})

describe('hosts', () => {
  test('API routes do not exist on a tenant host, and exist under any other name', async () => {
    const on = (host: string, path = at('/things')) => get(path, { headers: { host } })
    for (const host of ['northwind.localhost:8080', 'NORTHWIND.localhost', 'northwind.localhost.']) {
      expect((await on(host)).json['code'], host).toBe('route_not_found')
      expect((await on(host, '/docs')).status, host).toBe(404)
      expect((await on(host, '/healthz')).status, host).toBe(200)
    }
    for (const host of ['localhost:1', 'portico', '10.0.0.7:8080', '[::1]:8080', 'api.example.com', 'a.b.localhost']) {
      expect((await on(host)).status, host).toBe(200)
    }
    expect((await call(service.port, 'PATCH', at('/things'), { headers: { host: 'a.localhost' } })).status).toBe(404)
  })
})

describe('the process', () => {
  test('healthz, readyz and metrics answer', async () => {
    expect((await get('/healthz')).json).toEqual({ status: 'ok' })
    expect((await get('/readyz')).json).toEqual({ status: 'ready', checks: { database: true } })
    service.ready.database = false
    expect(await get('/readyz')).toMatchObject({ status: 503, json: { checks: { database: false } } })
    service.ready.database = true
    expect(await get('/metrics')).toMatchObject({ text: 'portico_up 1\n' })
    expect((await get('/')).headers['location']).toBe('/docs')
  })

  test('metrics want their token where there is one, and do not exist where nobody may read them', async () => {
    const metricsToken = 'a-token-for-prometheus/01=='
    const guarded = await startSurface({ metricsToken })
    const ask = (port: number, authorization?: string) => call(port, 'GET', '/metrics', { headers: { authorization } })
    expect(await ask(guarded.port, `Bearer ${metricsToken}`)).toMatchObject({ status: 200, text: 'portico_up 1\n' })
    const wrong = [undefined, 'Bearer', metricsToken, `Bearer ${token}`, `Bearer ${metricsToken}=`, 'Bearer a']
    for (const authorization of wrong) {
      const answer = await ask(guarded.port, authorization)
      expect(answer, authorization).toMatchObject({ status: 401, json: { code: 'credential_invalid' } })
      expect(answer.headers['www-authenticate']).toBe('Bearer')
    }
    await guarded.surface.drain(1_000)
    const hidden = await startSurface({ metricsToken: null })
    const answer = await ask(hidden.port, 'Bearer null')
    expect(answer).toMatchObject({ status: 404, json: { code: 'route_not_found' } })
    await hidden.surface.drain(1_000)
  })

  test('the reference page comes from this origin alone', async () => {
    const page = await get('/docs')
    expect(page.headers['content-security-policy']).toContain("default-src 'none'")
    const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, source]) => source!)
    expect(sources.every((source) => source.startsWith('/docs/') || source === 'data:,')).toBe(true)
    for (const source of sources.filter((one) => one.startsWith('/'))) {
      const file = await get(source, { headers: { 'accept-encoding': 'gzip' } })
      expect(file).toMatchObject({ status: 200, headers: { 'content-encoding': 'gzip' } })
      const again = await get(source, { headers: { 'if-none-match': file.headers.etag } })
      expect(again).toMatchObject({ status: 304, text: '' })
    }
    expect((await get('/docs/..%2f..%2fpackage.json')).status).toBe(404)
  })
})

describe('draining', () => {
  test('requests in flight and on open connections are answered, new connections are not accepted', async () => {
    const { surface, port } = await startSurface()
    const { Agent, request } = await import('undici')
    const dispatcher = new Agent({ connections: 1, pipelining: 1 })
    const headers = { authorization: `Bearer ${token}` }
    const origin = `http://127.0.0.1:${port}`
    const first = await request(`${origin}${at('/things')}`, { dispatcher, headers })
    await first.body.dump()
    const slow = call(port, 'GET', at('/slow'))
    await new Promise((resolve) => setTimeout(resolve, 50))

    const drained = surface.drain(5_000)
    await new Promise((resolve) => setTimeout(resolve, 50))
    const late = await request(`${origin}/readyz`, { dispatcher })
    expect(late.statusCode).toBe(503)
    expect(late.headers['connection']).toBe('close')
    expect(await late.body.json()).toEqual({ status: 'draining' })
    await expect(call(port, 'GET', at('/things'))).rejects.toThrow(/ECONNREFUSED/)
    expect(await slow).toMatchObject({ status: 200, json: { waited: true }, headers: { connection: 'close' } })
    expect(await drained).toEqual({ connectionsCut: 0 })
    await dispatcher.close()
  })

  test('what is still open at the deadline is cut', async () => {
    const { surface, port } = await startSurface()
    const slow = call(port, 'GET', at('/slow')).catch((error: Error) => error)
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(await surface.drain(100)).toEqual({ connectionsCut: 1 })
    expect(await slow).toBeInstanceOf(Error)
  })
})
